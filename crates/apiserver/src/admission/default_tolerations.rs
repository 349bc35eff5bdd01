//! DefaultTolerationSeconds: tolerate nodes that are not ready or unreachable for five minutes.

use crate::object::{child, list_mut, text};
use serde_json::{Value, json};

/// Lets a pod stay on a node that is not ready, or cannot be reached, for five minutes.
pub(super) fn mutate(pod: &mut Value) {
    let Some(tolerations) = list_mut(child(pod, "spec"), "tolerations") else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let (its_key, effect) = (text(toleration, &["key"]), text(toleration, &["effect"]));
            (its_key == key || its_key.is_empty()) && matches!(effect, "NoExecute" | "")
        });
        if !tolerated {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}
