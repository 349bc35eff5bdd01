//! A tenant of a vault: waits for the vault, then gets a token and the way in; both are taken back in order.

use super::named;
use super::reasons::Why;
use super::vault::Vault;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Controller, Generate, Observed, Plan, Refusal, Relation, Until};

/// What a tenant should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "sample.windlass.dev", version = "v1", kind = "Tenant", namespaced, status = "TenantStatus")]
#[serde(rename_all = "camelCase")]
pub struct TenantSpec {
    /// Whose tenant it is: the name of a vault in the same namespace.
    pub vault: String,
    /// How much it may keep there.
    pub quota: u32,
}

/// What a tenant is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// The vault it was let into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted_to: Option<String>,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// What a tenant needs, given what is there: an open vault, then a token and the way in.
pub fn decide(tenant: &Tenant, observed: &Observed) -> Result<Plan, Refusal> {
    let name = &tenant.spec.vault;
    let Some(vault) = observed.get::<Vault>(name)? else {
        return Ok(Plan::waiting(Why::WaitsForTheVault(name.clone())).status(TenantStatus::default()));
    };
    if !vault.status.as_ref().is_some_and(|status| status.open) {
        return Ok(Plan::waiting(Why::WaitsForTheVaultToOpen(name.clone())).status(TenantStatus::default()));
    }
    let token = Generate::new().text("/stringData/token", 40);
    let status = TenantStatus { admitted_to: Some(name.clone()), ..Default::default() };
    Ok(Plan::new()
        .create_once(token_secret(tenant), token, Why::ProvesTheTenant)
        .apply(access(tenant, &vault), Why::ShowsTheWay)
        .status(status))
}

/// What is to be taken back before a tenant goes: the token first, and the way in once the token is gone.
pub fn undo(tenant: &Tenant, observed: &Observed) -> Result<Plan, Refusal> {
    let token = token_name(tenant);
    if observed.get::<Secret>(&token)?.is_some() {
        return Ok(Plan::new()
            .delete::<Secret>(token, Why::RevokesTheToken)
            .wait(Why::WaitsForTheRevocation, Until::Change));
    }
    Ok(Plan::new().delete::<ConfigMap>(access_name(tenant), Why::ClosesTheWay))
}

/// The controller of tenants.
pub fn controller() -> Controller<Tenant> {
    Controller::deciding(decide)
        .owns::<ConfigMap>()
        .owns::<Secret>()
        .watches::<Vault>(|tenant| Relation::named(&tenant.spec.vault))
        .prunes::<ConfigMap>()
        .deletes::<Secret>()
        .finalizer(undo)
        .concurrency(2)
}

fn token_name(tenant: &Tenant) -> String {
    format!("{}-token", tenant.name_any())
}

fn access_name(tenant: &Tenant) -> String {
    format!("{}-access", tenant.name_any())
}

fn token_secret(tenant: &Tenant) -> Secret {
    Secret { metadata: named(token_name(tenant)), ..Default::default() }
}

fn access(tenant: &Tenant, vault: &Vault) -> ConfigMap {
    let shards = vault.status.as_ref().map(|status| status.shards.join(",")).unwrap_or_default();
    let data = [
        ("vault".to_owned(), tenant.spec.vault.clone()),
        ("quota".to_owned(), tenant.spec.quota.to_string()),
        ("shards".to_owned(), shards),
    ];
    ConfigMap { metadata: named(access_name(tenant)), data: Some(data.into()), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::vault::{VaultSpec, VaultStatus};

    fn tenant() -> Tenant {
        Tenant::new("t", TenantSpec { vault: "v".into(), quota: 7 })
    }

    fn vault(open: bool) -> Vault {
        let mut vault = Vault::new("v", VaultSpec { shards: 1, region: None });
        vault.status = Some(VaultStatus { open, shards: vec!["v-shard-0".into()], ..Default::default() });
        vault
    }

    fn waits_for(plan: &Plan) -> &str {
        plan.waits()[0].reason.name()
    }

    #[test]
    fn a_tenant_waits_for_its_vault_and_for_it_to_open() {
        let plan = decide(&tenant(), &Observed::empty()).unwrap();
        assert_eq!(waits_for(&plan), "WaitsForTheVault");
        let plan = decide(&tenant(), &Observed::empty().with(vault(false))).unwrap();
        assert_eq!(waits_for(&plan), "WaitsForTheVaultToOpen");
        assert!(plan.steps().is_empty());
    }

    #[test]
    fn an_open_vault_admits_its_tenant() {
        let plan = decide(&tenant(), &Observed::empty().with(vault(true))).unwrap();
        assert!(plan.is_complete());
        assert!(plan.applied::<Secret>("t-token").is_some());
        let access = plan.applied::<ConfigMap>("t-access").unwrap().data.unwrap();
        assert_eq!((access["quota"].as_str(), access["shards"].as_str()), ("7", "v-shard-0"));
        assert_eq!(plan.reported_as::<TenantStatus>().unwrap().admitted_to.as_deref(), Some("v"));
    }

    #[test]
    fn the_token_is_revoked_before_the_way_in_is_closed() {
        let token = Secret { metadata: named("t-token"), ..Default::default() };
        let first = undo(&tenant(), &Observed::empty().with(token)).unwrap();
        assert!(first.deletes::<Secret>("t-token") && !first.is_complete());
        let then = undo(&tenant(), &Observed::empty()).unwrap();
        assert!(then.deletes::<ConfigMap>("t-access") && then.is_complete());
    }

    #[test]
    fn no_plan_shows_a_token() {
        let plan = decide(&tenant(), &Observed::empty().with(vault(true))).unwrap();
        assert!(plan.to_string().contains("create once Secret t-token (ProvesTheTenant"), "{plan}");
    }
}
