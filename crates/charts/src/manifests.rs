//! What rendering gave: manifests in the order of installing, hooks, and the notes.

use crate::Error;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The template that it comes from.
    pub source: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its text, without separators.
    pub text: String,
}

/// An object that is applied at an event of the release.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// The object.
    pub manifest: Manifest,
    /// Such as `pre-install`.
    pub events: Vec<String>,
    /// Hooks of a lower weight come first.
    pub weight: i64,
    /// When it is deleted; `before-hook-creation` unless it says otherwise.
    pub delete_policies: Vec<String>,
}

/// All that a chart rendered to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// In the order of installing.
    pub manifests: Vec<Manifest>,
    /// By weight, then by name.
    pub hooks: Vec<Hook>,
    /// What `NOTES.txt` of the chart itself says.
    pub notes: String,
}

/// Kinds in the order of installing. All others come behind, by name.
const ORDER: [&str; 35] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
];

/// Splits the rendered templates of a chart.
///
/// # Errors
/// If a manifest is no YAML.
pub fn split(chart: &str, files: &BTreeMap<String, String>) -> Result<Rendered, Error> {
    let mut rendered = Rendered::default();
    for (source, text) in files {
        if source.ends_with("NOTES.txt") {
            if *source == format!("{chart}/templates/NOTES.txt") {
                rendered.notes.clone_from(text);
            }
            continue;
        }
        for text in documents(text) {
            let object = windlass_template::yaml::read(&text).map_err(|error| {
                Error(format!("YAML parse error on {source}: error converting YAML to JSON: {error}"))
            })?;
            if object.is_null() {
                continue;
            }
            let field =
                |path: &str| object.pointer(path).and_then(Json::as_str).unwrap_or_default().to_owned();
            let manifest = Manifest {
                source: source.clone(),
                kind: field("/kind"),
                name: field("/metadata/name"),
                text,
            };
            match object.pointer("/metadata/annotations/helm.sh~1hook").and_then(Json::as_str) {
                None => rendered.manifests.push(manifest),
                Some(events) => rendered.hooks.push(hook(manifest, &object, events)),
            }
        }
    }
    let rank = |kind: &str| ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len());
    rendered.manifests.sort_by(|a, b| {
        let ranks = (rank(&a.kind), rank(&b.kind));
        ranks.0.cmp(&ranks.1).then_with(|| {
            if ranks.0 == ORDER.len() { a.kind.cmp(&b.kind) } else { std::cmp::Ordering::Equal }
        })
    });
    rendered.hooks.sort_by(|a, b| {
        rank(&a.manifest.kind)
            .cmp(&rank(&b.manifest.kind))
            .then_with(|| a.manifest.kind.cmp(&b.manifest.kind))
    });
    Ok(rendered)
}

fn hook(manifest: Manifest, object: &Json, events: &str) -> Hook {
    let words = |text: &str| -> Vec<String> {
        text.split(',').map(|word| word.trim().to_ascii_lowercase()).filter(|word| !word.is_empty()).collect()
    };
    let annotation = |name: &str| {
        object
            .pointer(&format!("/metadata/annotations/helm.sh~1{name}"))
            .and_then(Json::as_str)
            .unwrap_or_default()
    };
    let mut delete_policies = words(annotation("hook-delete-policy"));
    if delete_policies.is_empty() {
        delete_policies.push("before-hook-creation".into());
    }
    let weight = annotation("hook-weight").parse().unwrap_or(0);
    Hook { manifest, events: words(events), weight, delete_policies }
}

/// The documents of a text, without those that are empty.
fn documents(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.trim().split_inclusive('\n') {
        if line.starts_with("---") && line.trim_end().len() == 3 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push_str(line);
        }
    }
    parts
        .into_iter()
        .map(|part| part.trim_start_matches(['\n', ' ']).trim_end().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}
