//! The smallest operator there is: each ConfigMap in a namespace has a Secret of its name, with the same data.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use windlass::{Controller, Observed, Plan, Reasoned, Refusal};
use windlass_testing::{TestCluster, secret};

/// Its one reason.
#[derive(Debug)]
pub enum Why {
    /// A Secret is what its ConfigMap is.
    Mirrors,
}

impl Reasoned for Why {}

/// What a ConfigMap needs: its mirror.
///
/// # Errors
/// Never.
pub fn decide(map: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
    let mut mirror = secret(map.name_any());
    let bytes = |text: &String| ByteString(text.clone().into_bytes());
    mirror.data =
        map.data.as_ref().map(|data| data.iter().map(|(key, text)| (key.clone(), bytes(text))).collect());
    Ok(Plan::new().apply(mirror, Why::Mirrors))
}

/// The controller, named `mirror`.
pub fn controller() -> Controller<ConfigMap> {
    Controller::deciding(decide).named("mirror").owns::<Secret>()
}

/// Waits until the mirror of this name shows this under the key `k`.
///
/// # Errors
/// When it does not.
pub async fn shows(cluster: &TestCluster, name: &str, value: &str) -> anyhow::Result<()> {
    let shown = |secret: &Secret| shown_by(secret).as_deref() == Some(value);
    cluster.eventually::<Secret>(name).is(&format!("shows {value}"), shown).await.map(drop)
}

/// What a mirror shows under the key `k`.
pub fn shown_by(secret: &Secret) -> Option<String> {
    let bytes = secret.data.as_ref()?.get("k")?;
    Some(String::from_utf8_lossy(&bytes.0).into_owned())
}
