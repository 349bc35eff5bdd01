//! The pods of a Job: their names, labels, annotations and environment.

use super::decide::{TRACKING, View};
use super::policies::{FailureAction, failure_action};
use crate::pods;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
const VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The longest prefix of a generated name.
const MAX_PREFIX: usize = 58;

/// The index of a pod of an indexed Job.
pub(super) fn index(pod: &Pod) -> Option<u32> {
    annotation(pod, INDEX)
}

/// The failures of this index before: counted, and ignored.
pub(super) fn failures_before(pod: &Pod) -> (u32, u32) {
    (annotation(pod, FAILURES).unwrap_or_default(), annotation(pod, IGNORED_FAILURES).unwrap_or_default())
}

fn annotation(pod: &Pod, name: &str) -> Option<u32> {
    let number: i32 = pod.metadata.annotations.as_ref()?.get(name)?.parse().ok()?;
    u32::try_from(number).ok()
}

/// A new pod of a Job, with this index if it is indexed, as the replacement of a failed one.
pub(super) fn pod(job: &View, owner: OwnerReference, index: Option<u32>, replaces: Option<&Pod>) -> Pod {
    let mut pod = pods::from_template(&job.spec.template, job.meta.namespace.as_deref(), owner);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING) {
        finalizers.push(TRACKING.to_owned());
    }
    let Some(index) = index else {
        pod.metadata.generate_name = Some(pods::prefix(job.name));
        return pod;
    };
    let number = index.to_string();
    let end = format!("-{number}-");
    let kept = job.name.floor_char_boundary(MAX_PREFIX.saturating_sub(end.len()));
    pod.metadata.generate_name = Some(format!("{}{end}", &job.name[..kept]));
    pod.metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), number.clone());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.to_owned(), number.clone());
    if job.spec.backoff_limit_per_index.is_some() {
        let (mut counted, mut ignored) = replaces.map(failures_before).unwrap_or_default();
        if let Some(failed) = replaces {
            match failure_action(job.spec.pod_failure_policy.as_ref(), failed) {
                FailureAction::Ignore => ignored += 1,
                _ => counted += 1,
            }
        }
        annotations.insert(FAILURES.to_owned(), counted.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED_FAILURES.to_owned(), ignored.to_string());
        }
    }
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{}-{number}", job.name));
        let inits = spec.init_containers.iter_mut().flatten();
        spec.containers.iter_mut().chain(inits).for_each(add_index_env);
    }
    pod
}

/// Sets `JOB_COMPLETION_INDEX` in a container, unless it is set.
fn add_index_env(container: &mut Container) {
    let environment = container.env.get_or_insert_default();
    if environment.iter().any(|variable| variable.name == VARIABLE) {
        return;
    }
    let field_ref =
        ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), api_version: None };
    let from = EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() };
    environment.push(EnvVar { name: VARIABLE.to_owned(), value_from: Some(from), value: None });
}
