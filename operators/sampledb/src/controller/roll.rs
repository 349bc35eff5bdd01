//! Another image of the same major version: servers run it one after the other, replicas first.
//!
//! A primary that is left hands over before, which is decided where primaries are elected.

use super::upgrade::server_image;
use crate::api::v1alpha1::SampleDBInstance;
use crate::children::CONTAINER;
use crate::data_version::DataVersion;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use windlass::health::is_ready;
use windlass::{Observed, Plan, Reasoned, Refusal, Until};

#[derive(Debug)]
enum Why {
    RunsOtherImage { instance: String, from: String, to: String },
    ImageRolls { left: Vec<String> },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::RunsOtherImage { instance, from, to } => {
                format!("{instance} restarts with {to}, instead of {from}")
            }
            Self::ImageRolls { left } => format!("still of another image: {}", left.join(", ")),
        }
    }
}

/// The pod of the next server that is of another image is deleted: one that does not run at once, and one that does while all are
/// ready.
pub(super) fn decide(
    observed: &Observed,
    data: Option<&DataVersion>,
    image: &str,
    holder: Option<&str>,
    instances: &[String],
    plan: Plan,
) -> Result<Plan, Refusal> {
    if data.is_some_and(|data| data.upgrade.is_some()) {
        return Ok(plan);
    }
    let (mut outdated, mut all_ready) = (Vec::new(), true);
    for name in instances {
        let Some(pod) = observed.get::<Pod>(name)? else {
            all_ready = false;
            continue;
        };
        let status = observed.get::<SampleDBInstance>(name)?.and_then(|one| one.status.clone());
        let is_reported = status.is_some_and(|status| status.ready && status.pod_uid == pod.metadata.uid);
        all_ready &= is_reported && is_ready(&pod) && pod.metadata.deletion_timestamp.is_none();
        if let Some(its) = server_image(&pod).filter(|its| its != image) {
            outdated.push((pod, its));
        }
    }
    if outdated.is_empty() {
        return Ok(plan);
    }
    let left = outdated.iter().map(|(pod, _)| pod.name_any()).collect();
    let plan = plan.wait(Why::ImageRolls { left }, Until::Change);
    let is_alone = instances.len() == 1;
    let may_end = |pod: &Pod| is_alone || holder != Some(pod.name_any().as_str());
    let next = outdated.into_iter().find(|(pod, _)| {
        let ends = pod.metadata.deletion_timestamp.is_some();
        !ends && (!runs(pod) || (all_ready && may_end(pod)))
    });
    Ok(match next {
        Some((pod, from)) => {
            let instance = pod.name_any();
            let why = Why::RunsOtherImage { instance: instance.clone(), from, to: image.to_owned() };
            plan.delete::<Pod>(instance, why)
        }
        None => plan,
    })
}

/// Whether a pod's server was ever started: where its image cannot be pulled, nothing is lost with it.
pub(super) fn runs(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let status = statuses.and_then(|all| all.iter().find(|one| one.name == CONTAINER));
    let Some(status) = status else { return false };
    let waits = status.state.as_ref().is_some_and(|state| state.waiting.is_some());
    !waits || status.restart_count > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, image: &str, state: &str, ready: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": name},
            "spec": {"containers": [{"name": CONTAINER, "image": image}]},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"name": CONTAINER, "image": image, "imageID": "", "ready": ready == "True",
                                       "restartCount": 0, "state": {state: {}}}],
            },
        }))
        .unwrap()
    }

    fn instance(name: &str, ready: bool) -> SampleDBInstance {
        serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDBInstance", "metadata": {"name": name},
            "spec": {"database": "db", "instances": 2}, "status": {"ready": ready, "podUid": name},
        }))
        .unwrap()
    }

    fn deleted(pods: &[Pod], ready: bool) -> Vec<String> {
        let names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        let observed = pods.iter().cloned().fold(Observed::empty(), Observed::with);
        let observed = names.iter().map(|name| instance(name, ready)).fold(observed, Observed::with);
        let plan = decide(&observed, None, "postgres:2", Some("db-0"), &names, Plan::new()).unwrap();
        plan.steps().iter().map(|step| step.effect.name().to_owned()).collect()
    }

    #[test]
    fn replicas_come_first_and_the_primary_hands_over_before() {
        let old = |name| pod(name, "postgres:1", "running", "True");
        let new = |name| pod(name, "postgres:2", "running", "True");
        assert_eq!(deleted(&[old("db-0"), old("db-1")], true), ["db-1"]);
        assert!(deleted(&[old("db-0"), old("db-1")], false).is_empty());
        assert!(deleted(&[old("db-0"), new("db-1")], true).is_empty());
        assert_eq!(deleted(&[old("db-0")], true), ["db-0"]);
        assert!(deleted(&[new("db-0"), new("db-1")], true).is_empty());
    }

    #[test]
    fn one_that_cannot_start_is_replaced_at_once() {
        let stuck = pod("db-0", "postgres:nosuch", "waiting", "False");
        assert_eq!(deleted(&[stuck, pod("db-1", "postgres:2", "running", "False")], false), ["db-0"]);
    }
}
