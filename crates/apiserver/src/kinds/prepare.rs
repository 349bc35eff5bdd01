//! What the server sets on new and changed objects whatever the client sent, where one kind differs from others.

use super::{RuleContext, child, text};
use serde_json::{Value, json};

/// Adds a finalizer that a controller takes away when nothing uses the object any more.
fn protect(object: &mut Value, finalizer: &str) {
    let finalizers = child(object, "metadata").entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.contains(&json!(finalizer))
    {
        finalizers.push(json!(finalizer));
    }
}

pub(super) fn claim(_: &RuleContext<'_>, claim: &mut Value) {
    protect(claim, "kubernetes.io/pvc-protection");
    let spec = child(claim, "spec");
    let old = |source: &Value| match (text(source, &["apiGroup"]), text(source, &["kind"])) {
        ("", "PersistentVolumeClaim") => !text(source, &["name"]).is_empty(),
        ("snapshot.storage.k8s.io", "VolumeSnapshot") => !text(source, &["name"]).is_empty(),
        _ => false,
    };
    // The old field never said anything else, and is not refused for it.
    if spec.get("dataSourceRef").is_none_or(Value::is_null) && !spec.get("dataSource").is_some_and(old) {
        spec.remove("dataSource");
    }
    claim_source(claim);
}

/// What a claim's volume begins with is said in an old field and in a new one, and both say the same.
pub(super) fn claim_source(claim: &mut Value) {
    let spec = child(claim, "spec");
    for (from, to) in [("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")] {
        if let Some(Value::Object(source)) = spec.get(from).cloned()
            && spec.get(to).is_none_or(Value::is_null)
        {
            let mut copy = source;
            copy.remove("namespace");
            if to == "dataSourceRef" && copy.get("apiGroup").is_some_and(Value::is_null) {
                copy.remove("apiGroup");
            }
            spec.insert(to.to_owned(), Value::Object(copy));
        }
    }
}

/// Of the secrets that an account may use only the names are kept.
pub(super) fn service_account(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten();
    secrets.filter_map(Value::as_object_mut).for_each(|secret| secret.retain(|field, _| field == "name"));
}

/// Of a new claim the phase is known only when it is read again.
pub(super) fn unsettled_claim(claim: &Value) -> Option<Value> {
    let mut written = claim.clone();
    child(&mut written, "status").remove("phase").map(|_| written)
}

/// Of a new job, too, the labels that it has from its pods: they are given after it was looked through for what is missing.
pub(super) fn unsettled_job(job: &Value) -> Option<Value> {
    let labels = job.pointer("/metadata/labels")?;
    if Some(labels) != job.pointer("/spec/template/metadata/labels") {
        return None;
    }
    let mut written = job.clone();
    child(&mut written, "metadata").remove("labels").map(|_| written)
}

/// The first of a node's networks has a field of its own, from before there could be several. That field counts.
pub(super) fn node_addresses(node: &mut Value) {
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let first = spec.get("podCIDRs").and_then(|all| all.get(0)).and_then(Value::as_str).unwrap_or_default();
    let own = spec.get("podCIDR").and_then(Value::as_str).unwrap_or_default();
    match (own.to_owned(), first.to_owned()) {
        (own, first) if own == first => {}
        (own, first) if own.is_empty() => _ = spec.insert("podCIDR".to_owned(), json!(first)),
        (own, _) => _ = spec.insert("podCIDRs".to_owned(), json!([own])),
    }
}

pub(super) fn volume(context: &RuleContext<'_>, volume: &mut Value) {
    protect(volume, "kubernetes.io/pv-protection");
    child(volume, "status").insert("lastPhaseTransitionTime".to_owned(), json!(context.now()));
}

/// When the phase changes, the time is noted, unless the client did so.
pub(super) fn volume_status(context: &RuleContext<'_>, new: &mut Value, old: &Value) {
    const TIME: &str = "lastPhaseTransitionTime";
    let before = old["status"].get(TIME).cloned();
    let same = text(new, &["status", "phase"]) == text(old, &["status", "phase"]);
    let status = child(new, "status");
    let given = status.get(TIME).cloned();
    match before {
        Some(before) if same && given.is_none() => _ = status.insert(TIME.to_owned(), before),
        before if !same && (given.is_none() || given == before) => {
            status.insert(TIME.to_owned(), json!(context.now()));
        }
        _ => {}
    }
}

pub(super) fn attributes_class(_: &RuleContext<'_>, class: &mut Value) {
    protect(class, "kubernetes.io/vac-protection");
}

/// A node is not ready until its kubelet says so.
pub(super) fn node(_: &RuleContext<'_>, node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let taints = child(node, "spec").entry("taints").or_insert_with(|| json!([]));
    if let Some(taints) = taints.as_array_mut()
        && !taints
            .iter()
            .any(|taint| text(taint, &["key"]) == NOT_READY && text(taint, &["effect"]) == "NoSchedule")
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn daemon_set(_: &RuleContext<'_>, set: &mut Value) {
    number_template(set, 1);
}

pub(super) fn daemon_set_update(new: &mut Value, old: &Value) {
    let before = text(old, &["metadata", "annotations", TEMPLATE_GENERATION]).parse().unwrap_or(0_i64);
    let changed = new.pointer("/spec/template") != old.pointer("/spec/template");
    number_template(new, before.saturating_add(i64::from(changed)));
}

fn number_template(set: &mut Value, number: i64) {
    let annotations = child(set, "metadata").entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), json!(number.to_string()));
    }
}

/// A job finds its pods by its own UID, unless it was told another way.
pub(super) fn job(_: &RuleContext<'_>, job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let (uid, name) =
        (text(job, &["metadata", "uid"]).to_owned(), text(job, &["metadata", "name"]).to_owned());
    let spec = child(job, "spec");
    let template = spec.entry("template").or_insert_with(|| json!({}));
    let metadata = child(template, "metadata");
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        for prefix in ["batch.kubernetes.io/", ""] {
            labels.entry(format!("{prefix}controller-uid")).or_insert_with(|| json!(uid));
            labels.entry(format!("{prefix}job-name")).or_insert_with(|| json!(name));
        }
    }
    let selector = spec.entry("selector").or_insert_with(|| json!({}));
    let wanted = child(selector, "matchLabels");
    wanted.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| json!(uid));
}

/// What was asked for once stays what was asked for, without a word.
pub(super) fn keep_spec(new: &mut Value, old: &Value) {
    if let (Some(new), Some(spec)) = (new.as_object_mut(), old.get("spec")) {
        new.insert("spec".to_owned(), spec.clone());
    }
}
