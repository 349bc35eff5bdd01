//! Runs the sample operator on the cluster of the environment: creates its kinds, then keeps them until Ctrl-C.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use windlass::Manager;
use windlass_tests::sample;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let kinds: Api<CustomResourceDefinition> = Api::all(Client::try_default().await?);
    for kind in sample::crds() {
        kinds.patch(&kind.name_any(), &PatchParams::apply("sample").force(), &Patch::Apply(&kind)).await?;
    }
    sample::operator(Manager::from_env()?).run().await?;
    Ok(())
}
