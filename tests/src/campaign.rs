//! The crash campaign: the sample runs through a small life, undisturbed and then with one fault at every point of it, and
//! must end in the same state each time.

mod life;
mod state;

pub use life::{Ended, OPERATORS, live, run_operator};
pub use state::{Orphans, State};

use crate::grounds::{Embedded, embedded_in_process};
use crate::sample;
use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::Target;

/// A target with the sample's kinds and a namespace for one life. On the embedded API it is a fresh cluster; elsewhere the
/// kinds stay and the namespace is new.
///
/// # Errors
/// When the target refuses.
pub async fn world(target: &Target) -> anyhow::Result<(Target, String)> {
    let target = match target.extra::<Embedded>() {
        Some(_) => embedded_in_process().open().await?,
        None => target.clone(),
    };
    let kinds: Api<CustomResourceDefinition> = Api::all(target.client());
    for kind in sample::crds() {
        let name = kind.name_any();
        kinds.patch(&name, &PatchParams::apply("tester").force(), &Patch::Apply(&kind)).await?;
        until(&format!("{name} is served"), || async {
            let found = kinds.get(&name).await?;
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            Ok(conditions.iter().any(|one| one.type_ == "Established" && one.status == "True"))
        })
        .await?;
    }
    let namespace = target.namespace().await?;
    Ok((target, namespace))
}

/// How long anything in a life may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `holds` does.
///
/// # Errors
/// When it fails, or does not hold in time.
pub async fn until<F, Fut>(what: &str, holds: F) -> anyhow::Result<()>
where
    F: Fn() -> Fut,
    Fut: Future<Output = anyhow::Result<bool>>,
{
    let clock = Clock::real();
    let deadline = clock.moment() + PATIENCE;
    while clock.moment() < deadline {
        if holds().await.with_context(|| format!("looking whether {what}"))? {
            return Ok(());
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
    anyhow::bail!("it is not so that {what}, after {PATIENCE:?}")
}
