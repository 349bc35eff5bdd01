//! Rolling restarts: pods that are replaced when what they read at their start has changed.

use crate::fingerprint::fingerprint;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::Serialize;

/// On a pod template: the fingerprint of what its pods read at their start.
pub const RESTART_ANNOTATION: &str = "windlass.dev/restart-on-change";

/// Makes the pods of a template be replaced, by whatever rolling update their workload has, when `contents` changes: the
/// configuration or the credentials that they read only at their start. It sets the annotation [`RESTART_ANNOTATION`] to the
/// [`fingerprint`] of it.
///
/// Give it what is in a ConfigMap or a Secret, not the whole object, which also changes when a label does. As long as it is
/// not there, wait before applying the workload: otherwise its first pods are replaced at once. What cannot be serialized
/// changes nothing.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, PodTemplateSpec};
/// let mut settings = ConfigMap::default();
/// settings.data = Some([("maxmemory".to_owned(), "64mb".to_owned())].into());
///
/// let mut template = PodTemplateSpec::default();
/// windlass::restart_on_change(&mut template, &settings.data);
/// let annotations = template.metadata.unwrap().annotations.unwrap();
/// assert_eq!(annotations["windlass.dev/restart-on-change"].len(), 32);
/// ```
pub fn restart_on_change(template: &mut PodTemplateSpec, contents: &impl Serialize) {
    let Ok(fingerprint) = fingerprint(contents) else { return };
    let annotations = template.metadata.get_or_insert_default().annotations.get_or_insert_default();
    annotations.insert(RESTART_ANNOTATION.to_owned(), fingerprint);
}
