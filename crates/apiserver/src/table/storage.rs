//! Cells of volumes, claims and their classes.

use super::cells::{has, items, text, texts};
use jiff::Timestamp;
use serde_json::Value;

pub(super) fn phase(object: &Value, _: Timestamp) -> Value {
    match has(object, "/metadata/deletionTimestamp") {
        true => "Terminating".into(),
        false => text(object, "/status/phase").into(),
    }
}

/// Access modes by their initials, each once, in one order.
fn modes(object: &Value, path: &str) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = texts(object, path);
    let shown: Vec<&str> =
        SHORT.iter().filter(|(mode, _)| given.contains(mode)).map(|(_, short)| *short).collect();
    shown.join(",")
}

pub(super) fn volume_modes(object: &Value, _: Timestamp) -> Value {
    modes(object, "/spec/accessModes").into()
}

pub(super) fn claim_modes(object: &Value, _: Timestamp) -> Value {
    match text(object, "/spec/volumeName") {
        "" => "".into(),
        _ => modes(object, "/status/accessModes").into(),
    }
}

pub(super) fn claimed(object: &Value, _: Timestamp) -> Value {
    let capacity = object.pointer("/status/capacity/storage").and_then(Value::as_str);
    match text(object, "/spec/volumeName") {
        "" => "".into(),
        _ => capacity.unwrap_or("0").into(),
    }
}

pub(super) fn claim(object: &Value, _: Timestamp) -> Value {
    match object.pointer("/spec/claimRef") {
        Some(claim) if !claim.is_null() => {
            format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")).into()
        }
        _ => "".into(),
    }
}

/// The class, by the annotation that once named it or by its field.
pub(super) fn class(object: &Value, _: Timestamp) -> Value {
    let annotation = object.pointer("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    match annotation.and_then(Value::as_str) {
        Some(class) => class.into(),
        None => text(object, "/spec/storageClassName").into(),
    }
}

pub(super) fn class_name(object: &Value, _: Timestamp) -> Value {
    let default = [
        "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
        "/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class",
        "/metadata/annotations/volumeattributesclass.alpha.kubernetes.io~1is-default-class",
    ];
    let default = default.iter().any(|path| text(object, path) == "true");
    format!("{}{}", text(object, "/metadata/name"), if default { " (default)" } else { "" }).into()
}

pub(super) fn audiences(object: &Value, _: Timestamp) -> Value {
    if !has(object, "/spec/tokenRequests") {
        return "<unset>".into();
    }
    let requests = items(object, "/spec/tokenRequests").iter();
    requests.map(|request| text(request, "/audience")).collect::<Vec<_>>().join(",").into()
}

pub(super) fn lifecycle_modes(object: &Value, _: Timestamp) -> Value {
    match texts(object, "/spec/volumeLifecycleModes").join(",").as_str() {
        "" => "<none>".into(),
        modes => modes.into(),
    }
}
