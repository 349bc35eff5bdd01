//! Invalid objects and their errors: tables in `invalid_objects/*.yaml`.

use super::merge::merge;
use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::minimal_objects as minimal;
use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};

const PODS: &str = include_str!("../invalid_objects/pods.yaml");
const OTHERS: &str = include_str!("../invalid_objects/others.yaml");

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Row {
    about: String,
    #[serde(default = "pod")]
    kind: String,
    /// Merged into the least object of the kind.
    #[serde(default)]
    with: Value,
    /// Merged into a pod's spec.
    #[serde(default)]
    pod: Value,
    /// Merged into a pod's only container.
    #[serde(default)]
    container: Value,
}

fn pod() -> String {
    "v1 Pod".to_owned()
}

async fn refused(mut script: Script, row: Row) -> anyhow::Result<Script> {
    let all = minimal::all(script.namespace());
    let least = all.into_iter().find(|least| least.title == row.kind);
    let least = least.with_context(|| format!("{} is no kind that is stored", row.kind))?;
    let mut object = least.object;
    for (place, patch) in [("", &row.with), ("/spec", &row.pod), ("/spec/containers/0", &row.container)] {
        if let (Some(part), false) = (object.pointer_mut(place), patch.is_null()) {
            merge(part, patch);
        }
    }
    if row.kind == pod() {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let path = script.path("/api/v1", "serviceaccounts");
        script.quiet(Request::new("POST", path).body(media::JSON, account)).await?;
        object["spec"]["automountServiceAccountToken"] = json!(false);
    }
    script.send(Request::new("POST", least.path).with("dryRun", "All").body(media::JSON, object)).await?;
    Ok(script)
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let options = || serde_saphyr::options! { strict_booleans: true };
    let rows = [PODS, OTHERS].into_iter().flat_map(|text| {
        let rows: Vec<Row> =
            serde_saphyr::from_str_with_options(text, options()).expect("the tables are part of the tests");
        rows
    });
    let behaviour = |row: Row| {
        let kind = row.kind.rsplit(' ').next().unwrap_or_default();
        Behaviour::new(format!("a bad {kind}: {}", row.about), move |script: Script| {
            refused(script, row.clone())
        })
    };
    rows.map(behaviour).collect()
}
