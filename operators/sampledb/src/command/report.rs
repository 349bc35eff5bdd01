//! `report`: everything that helps to understand what happened to a database, in one stream of YAML documents. No Secret is read.

use super::{Failure, Name, Place, said};
use crate::api::v1alpha1::{SampleDB, SampleDBArchive, SampleDBBackup, SampleDBInstance};
use crate::children::{CONTAINER, DATABASE_LABEL};
use clap::Args;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, LogParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    database: Name,
    /// Write it into a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lines of the log of each instance
    #[arg(long, value_name = "LINES", default_value_t = 500, value_parser = clap::value_parser!(i64).range(0..=1_000_000))]
    log_lines: i64,
}

pub(super) async fn run(place: &Place, options: &Options) -> Result<ExitCode, Failure> {
    let name = options.database.name.as_str();
    let database = place.api::<SampleDB>().get(name).await.map_err(|error| said(&error))?;
    let labelled = ListParams::default().labels(&format!("{DATABASE_LABEL}={name}"));
    let mut documents = vec![document(&database)];
    documents.extend(all::<SampleDBInstance>(place, &labelled, |_| true).await);
    documents.extend(all::<Lease>(place, &ListParams::default(), |lease| lease.name_any() == name).await);
    documents.extend(all::<StatefulSet>(place, &labelled, |_| true).await);
    documents.extend(all::<Pod>(place, &labelled, |_| true).await);
    documents.extend(all::<PersistentVolumeClaim>(place, &labelled, |_| true).await);
    documents.extend(all::<EndpointSlice>(place, &labelled, |_| true).await);
    documents.extend(all::<Job>(place, &labelled, |_| true).await);
    documents.extend(all::<SampleDBArchive>(place, &labelled, |_| true).await);
    let of_database = |backup: &SampleDBBackup| backup.spec.database == name;
    documents.extend(all::<SampleDBBackup>(place, &ListParams::default(), of_database).await);
    let concerns = |event: &Event| {
        let about = event.involved_object.name.as_deref().unwrap_or_default();
        about == name || about.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
    };
    documents.extend(all::<Event>(place, &ListParams::default(), concerns).await);
    let pods = place.api::<Pod>();
    for pod in pods.list(&labelled).await.map_err(|error| said(&error))? {
        let lines = LogParams {
            container: Some(CONTAINER.to_owned()),
            tail_lines: Some(options.log_lines),
            ..LogParams::default()
        };
        let log = pods.logs(&pod.name_any(), &lines).await.unwrap_or_else(|error| said(&error));
        documents.push(json!({ "log": { "pod": pod.name_any(), "lines": log.lines().collect::<Vec<_>>() } }));
    }
    let mut text = String::new();
    for document in &documents {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(document).map_err(|error| error.to_string())?);
    }
    match &options.output {
        Some(file) => {
            std::fs::write(file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
            println!("{} documents are in {}", documents.len(), file.display());
        }
        None => std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// All objects of a kind that a report is about; where they may not be read, why.
async fn all<K>(place: &Place, which: &ListParams, is_told: impl Fn(&K) -> bool) -> Vec<Value>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize,
{
    match place.api::<K>().list(which).await {
        Ok(list) => list.items.iter().filter(|object| is_told(object)).map(document).collect(),
        Err(error) => vec![json!({ "missing": K::plural(&()), "why": said(&error) })],
    }
}

fn document<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let mut document = json!(object);
    document["apiVersion"] = json!(K::api_version(&()));
    document["kind"] = json!(K::kind(&()));
    if let Some(metadata) = document["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    document
}
