//! What `kubectl` does already, for the right pod.

use super::{Failure, Place, said};
use crate::api::v1alpha1::SampleDB;
use crate::children::CONTAINER;
use crate::settings::SOCKETS;
use kube::ResourceExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

async fn database(place: &Place, name: &str) -> Result<SampleDB, Failure> {
    place.api::<SampleDB>().get(name).await.map_err(|error| said(&error))
}

/// The instance that takes writes.
fn primary(database: &SampleDB) -> Result<String, Failure> {
    let name = database.name_any();
    let primary = database.status.as_ref().and_then(|status| status.primary.clone());
    primary.ok_or_else(|| format!("{name} has no primary now; `windlass sampledb status {name}` says why"))
}

fn run(place: &Place, arguments: &[String]) -> Result<ExitCode, Failure> {
    let mut command = Command::new("kubectl");
    command.arg("--namespace").arg(&place.namespace).args(arguments);
    let error = command.exec();
    Err(format!("kubectl cannot be started: {error}"))
}

pub(super) async fn psql(place: &Place, name: &str, arguments: &[String]) -> Result<ExitCode, Failure> {
    let database = database(place, name).await?;
    let pod = primary(&database)?;
    let mut words: Vec<String> = ["exec", "--stdin"].map(str::to_owned).to_vec();
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        words.push("--tty".to_owned());
    }
    words.extend([pod, "--container".to_owned(), CONTAINER.to_owned(), "--".to_owned()]);
    let psql = ["psql", "--host", SOCKETS, "--username", "postgres", &database.spec.database];
    words.extend(psql.map(str::to_owned));
    words.extend(arguments.iter().cloned());
    run(place, &words)
}

pub(super) async fn logs(
    place: &Place,
    name: &str,
    instance: Option<String>,
    follow: bool,
) -> Result<ExitCode, Failure> {
    let pod = match instance {
        Some(instance) => instance,
        None => primary(&database(place, name).await?)?,
    };
    let mut words = vec!["logs".to_owned(), pod, "--container".to_owned(), CONTAINER.to_owned()];
    if follow {
        words.push("--follow".to_owned());
    }
    run(place, &words)
}
