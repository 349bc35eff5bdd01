//! The code of `docs/deciding-purely.md`, which shows it piece by piece: a database, decided about and never touched.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use windlass::{
    Action, Apply, Controller, Fact, Failure, Generate, Guard, Observed, Outcome, Plan, Reason, Refusal,
    Relation, Until,
};
use windlass_testing::{Data, config_map, named, object, secret};

/// What a database should be.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Database", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// Which version of the server.
    pub version: u32,
    /// The Secret with its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}

fn why(name: &'static str) -> Reason {
    Reason::new(name, name.to_lowercase())
}

/// Made once, and held by nothing but the Secret.
fn password(database: &Database) -> Plan {
    let password = Generate::new().text("/stringData/password", 32);
    let name = format!("{}-password", database.name_any());
    Plan::new().create_once(secret(name), password, why("Secures"))
}

/// Waits for time to pass: a backup of each hour.
fn hourly(last: windlass::clock::Timestamp, observed: &Observed) -> Plan {
    let due = last + Duration::from_secs(3600);
    match observed.now() < due {
        true => Plan::new().wait(why("NotDue"), Until::At(due)),
        false => Plan::new().action(Action::new("backup", due.to_string()), why("Due")),
    }
}

/// Who leads cannot be observed: it is claimed, and the claim decides.
fn primary(database: &Database, observed: &Observed) -> Result<Plan, Refusal> {
    let name = format!("{}-primary", database.name_any());
    let pods = observed.names::<Pod>()?;
    let claimed = observed.get::<ConfigMap>(&name)?;
    let leads = claimed.as_ref().and_then(|map| map.data.as_ref()?.get("is").cloned());
    match (leads, pods.first()) {
        (Some(leads), _) if pods.contains(&leads) => {
            let promote = Action::new("promote", &leads).only_if(Guard::NotDeleted);
            Ok(Plan::new().action(promote, why("Leads")))
        }
        (_, None) => Ok(Plan::waiting(why("NobodyCanLead"))),
        (_, Some(first)) => {
            let claim = claimed.map(|map| (*map).clone()).unwrap_or_else(|| config_map(&name));
            Ok(Plan::new().claim(claim.data("is", first), why("Elected")))
        }
    }
}

/// What is outside the cluster is known or unknown; unknown is not absent.
fn lag(observed: &Observed) -> Result<Plan, Refusal> {
    Ok(match observed.fact::<u64>("lag")? {
        Fact::Known { value: 0..100, .. } => Plan::new(),
        Fact::Known { .. } => Plan::waiting(why("Lags")),
        Fact::Unknown { why } => Plan::waiting(Reason::new("LagUnknown", why)),
    })
}

/// A reference must be there before it can be used.
fn certificate(database: &Database, observed: &Observed) -> Result<Plan, Refusal> {
    if let Some(name) = &database.spec.certificate {
        observed.referenced::<Secret>(name)?;
    }
    let replicas = Apply::new(replicas(database)).initially("/spec/replicas");
    Ok(Plan::new().apply(replicas, why("Runs")))
}

fn replicas(database: &Database) -> StatefulSet {
    let labels = json!({ "app": database.name_any() });
    let spec = json!({
        "replicas": 3,
        "serviceName": database.name_any(),
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "db", "image": format!("db:{}", database.spec.version)}]},
        },
    });
    object(database.name_any(), json!({ "spec": spec }))
}

/// What deleting the children does not undo is undone first.
fn undo(database: &Database, observed: &Observed) -> Result<Plan, Refusal> {
    let snapshot = Action::new("snapshot", database.uid().unwrap_or_default());
    Ok(match observed.action("snapshot", snapshot.key())? {
        Outcome::Done { .. } => Plan::new(),
        _ => Plan::waiting(why("SnapshotRuns")).action(snapshot, why("KeepsTheData")),
    })
}

fn decide(database: &Database, observed: &Observed) -> Result<Plan, Refusal> {
    match lag(observed)? {
        caught_up if caught_up.is_complete() => certificate(database, observed),
        _ => primary(database, observed),
    }
}

fn controller() -> Controller<Database> {
    Controller::deciding(decide)
        .owns::<StatefulSet>()
        .owns::<ConfigMap>()
        .claims::<ConfigMap>()
        .owns::<Secret>()
        .watches::<Pod>(|database| Relation::labelled([("app", database.name_any())]))
        .references::<Secret>(|database| Relation::names(database.spec.certificate.clone()))
        .action("promote", |_, _, _| async { Ok::<_, Failure>(()) })
        .action("backup", |_, _, _| async { Ok::<_, Failure>(()) })
        .action("snapshot", |_, _, _| async { Ok::<_, Failure>(()) })
        .fact("lag", |_, _| async { Ok::<u64, Failure>(0) }, Duration::from_secs(10), Duration::from_secs(2))
        .finalizer(undo)
}

fn database() -> Database {
    Database::new("db", DatabaseSpec { version: 17, certificate: None })
}

#[test]
fn a_password_is_never_in_a_plan() {
    let plan = password(&database());
    assert!(plan.applied::<Secret>("db-password").unwrap().string_data.is_none());
    assert!(plan.to_string().contains("create once Secret db-password"), "{plan}");
}

#[test]
fn an_hour_is_waited_for_and_not_a_second_more() {
    let last = "2026-01-01T00:00:00Z".parse().unwrap();
    let early = Observed::empty().now_is(last + Duration::from_secs(3599));
    assert_eq!(hourly(last, &early).due(early.now()), Some(Duration::from_secs(1)));
    let due = Observed::empty().now_is(last + Duration::from_secs(3600));
    assert_eq!(hourly(last, &due).actions().next().unwrap().key(), "2026-01-01T01:00:00Z");
}

#[test]
fn a_primary_is_claimed_first_and_promoted_then() {
    let pods = Observed::empty().with(named::<Pod>("db-0")).with(named::<Pod>("db-1"));
    let first = primary(&database(), &pods).unwrap();
    assert_eq!(first.applied::<ConfigMap>("db-primary").unwrap().data.unwrap()["is"], "db-0");
    let claimed = pods.with(config_map("db-primary").data("is", "db-1"));
    let then = primary(&database(), &claimed).unwrap();
    assert_eq!(then.actions().next().unwrap().key(), "db-1", "the claim decides, not who is first");
}

#[test]
fn what_is_not_known_is_waited_for() {
    assert!(!lag(&Observed::empty()).unwrap().is_complete());
    assert!(lag(&Observed::empty().with_fact("lag", 7)).unwrap().is_complete());
}

#[test]
fn a_certificate_that_is_missing_is_named() {
    let mut database = database();
    database.spec.certificate = Some("tls".into());
    let refusal = certificate(&database, &Observed::empty()).unwrap_err();
    assert_eq!(refusal.to_string(), "ReferenceMissing: Secret tls is not there");
    assert!(certificate(&database, &Observed::empty().with(secret("tls"))).is_ok());
}

#[test]
fn nothing_goes_before_its_snapshot_is_there() {
    assert!(!undo(&database(), &Observed::empty()).unwrap().is_complete());
    let done = Outcome::Done { at: windlass::clock::Timestamp::UNIX_EPOCH, said: json!("s3://bucket") };
    assert!(undo(&database(), &Observed::empty().with_action("snapshot", "", done)).unwrap().is_complete());
}

#[test]
fn what_was_seen_can_be_saved_and_seen_again() {
    let observed = Observed::empty().with(named::<Pod>("db-0"));
    let again = Observed::from_json(&observed.to_json()).unwrap();
    assert_eq!(again.names::<Pod>().unwrap(), ["db-0"]);
}

#[test]
fn the_controller_knows_every_part() {
    let shown = format!("{:?}", controller());
    assert!(shown.contains("StatefulSet") && shown.contains("Pod"), "{shown}");
}
