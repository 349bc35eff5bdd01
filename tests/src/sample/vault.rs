//! A vault: a password made once, then its shards; what it decides, and the tests of that.

use super::named;
use super::reasons::Why;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Controller, Generate, Observed, Plan, Refusal};

/// What a vault should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "sample.windlass.dev", version = "v1", kind = "Vault", namespaced, status = "VaultStatus")]
#[serde(rename_all = "camelCase")]
pub struct VaultSpec {
    /// Over how many shards it is spread.
    pub shards: u32,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// What a vault is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VaultStatus {
    /// Whether tenants may come.
    #[serde(default)]
    pub open: bool,
    /// The shards that are there.
    #[serde(default)]
    pub shards: Vec<String>,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// More than this is a mistake.
const MOST_SHARDS: u32 = 64;

/// What a vault needs, given what is there: first the password, then the shards.
pub fn decide(vault: &Vault, observed: &Observed) -> Result<Plan, Refusal> {
    if vault.spec.shards == 0 || vault.spec.shards > MOST_SHARDS {
        return Err(Why::NoShards.into());
    }
    let password = Generate::new().text("/stringData/password", 32);
    let plan = Plan::new().create_once(password_secret(vault), password, Why::OpensTheVault);
    let shards = observed.names::<ConfigMap>()?;
    if observed.get::<Secret>(&password_name(vault))?.is_none() {
        let status = VaultStatus { open: false, shards, ..Default::default() };
        return Ok(plan.wait(Why::WaitsForThePassword, windlass::Until::Change).status(status));
    }
    let plan =
        (0..vault.spec.shards).fold(plan, |plan, number| plan.apply(shard(vault, number), Why::HoldsAShard));
    let open = (0..vault.spec.shards).all(|number| shards.contains(&shard_name(vault, number)));
    Ok(plan.status(VaultStatus { open, shards, ..Default::default() }))
}

/// The controller of vaults.
pub fn controller() -> Controller<Vault> {
    Controller::deciding(decide).owns::<ConfigMap>().owns::<Secret>().prunes::<ConfigMap>().concurrency(2)
}

/// The name of the Secret that opens a vault.
pub fn password_name(vault: &Vault) -> String {
    format!("{}-password", vault.name_any())
}

fn shard_name(vault: &Vault, number: u32) -> String {
    format!("{}-shard-{number}", vault.name_any())
}

fn password_secret(vault: &Vault) -> Secret {
    let user = [("user".to_owned(), "root".to_owned())].into();
    Secret { metadata: named(password_name(vault)), string_data: Some(user), ..Default::default() }
}

fn shard(vault: &Vault, number: u32) -> ConfigMap {
    let region = vault.spec.region.clone().unwrap_or_else(|| "anywhere".to_owned());
    let data = [("number".to_owned(), number.to_string()), ("region".to_owned(), region)].into();
    ConfigMap { metadata: named(shard_name(vault, number)), data: Some(data), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(shards: u32) -> Vault {
        Vault::new("v", VaultSpec { shards, region: None })
    }

    fn with_password() -> Observed {
        Observed::empty().with(Secret { metadata: named("v-password"), ..Default::default() })
    }

    #[test]
    fn the_password_comes_first_and_alone() {
        let plan = decide(&vault(2), &Observed::empty()).unwrap();
        assert!(!plan.is_complete());
        assert_eq!(plan.steps().len(), 1);
        assert!(plan.applied::<Secret>("v-password").is_some());
        assert!(!plan.reported_as::<VaultStatus>().unwrap().open);
    }

    #[test]
    fn then_come_as_many_shards_as_declared() {
        let plan = decide(&vault(3), &with_password()).unwrap();
        assert!(plan.is_complete());
        assert_eq!(plan.steps().len(), 4);
        assert_eq!(plan.applied::<ConfigMap>("v-shard-2").unwrap().data.unwrap()["number"], "2");
        assert_eq!(plan.applied::<ConfigMap>("v-shard-3"), None);
    }

    #[test]
    fn a_vault_is_open_when_every_shard_is_there() {
        let there = |name: &str| ConfigMap { metadata: named(name.to_owned()), ..Default::default() };
        let half = with_password().with(there("v-shard-0"));
        assert!(!decide(&vault(2), &half).unwrap().reported_as::<VaultStatus>().unwrap().open);
        let whole = half.with(there("v-shard-1"));
        assert!(decide(&vault(2), &whole).unwrap().reported_as::<VaultStatus>().unwrap().open);
    }

    #[test]
    fn a_vault_without_shards_is_refused() {
        assert_eq!(decide(&vault(0), &Observed::empty()).unwrap_err().reason().name(), "NoShards");
    }
}
