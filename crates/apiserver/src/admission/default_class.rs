//! DefaultStorageClass and DefaultIngressClass: set the default class where an object names none.

use super::all;
use crate::object::{at, child, text};
use crate::operation::Operation;
use serde_json::{Value, json};
use std::cmp::Reverse;

const STORAGE: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const INGRESS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    text(object, &["metadata", "annotations", name])
}

/// Of several classes that are the default, the newest.
fn default_of(operation: &Operation<'_>, resource: &str, marks: &[&str]) -> Option<String> {
    let classes = all(operation, resource, None);
    let defaults = classes.iter().filter(|class| marks.iter().any(|mark| annotation(class, mark) == "true"));
    let newest = defaults.min_by_key(|class| {
        (Reverse(text(class, &["metadata", "creationTimestamp"])), text(class, &["metadata", "name"]))
    });
    newest.map(|class| text(class, &["metadata", "name"]).to_owned())
}

fn fill(operation: &Operation<'_>, object: &mut Value, field: &str, resource: &str, marks: &[&str]) {
    if let Some(class) = default_of(operation, resource, marks) {
        child(object, "spec").insert(field.to_owned(), json!(class));
    }
}

/// A claim may ask for no class at all by an empty name.
pub(super) fn mutate_claim(operation: &Operation<'_>, claim: &mut Value) {
    let asks = at(claim, &["spec", "storageClassName"]).is_some_and(|class| !class.is_null());
    if !asks && annotation(claim, "volume.beta.kubernetes.io/storage-class").is_empty() {
        fill(operation, claim, "storageClassName", "storage.k8s.io/storageclasses", &STORAGE);
    }
}

pub(super) fn mutate_ingress(operation: &Operation<'_>, ingress: &mut Value) {
    let asks = at(ingress, &["spec", "ingressClassName"]).is_some_and(|class| !class.is_null());
    if !asks && ingress.pointer("/metadata/annotations/kubernetes.io~1ingress.class").is_none() {
        fill(operation, ingress, "ingressClassName", "networking.k8s.io/ingressclasses", &INGRESS);
    }
}
