//! The official clients of other languages on the embedded API, over TLS, and on the reference: the same programs, the same
//! output.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::{Environment, Suite, Target};
use windlass_tests::clients::{self, OverTls, Program, Ready};

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(600))
        .test("a program on client-go gets the same results", |target| compared(target, "go", clients::go))
        .test("a program on the Python client gets the same results", |target| {
            compared(target, "python", clients::python)
        })
        .run()
}

async fn compared(
    target: Target,
    language: &'static str,
    make: fn() -> anyhow::Result<Ready>,
) -> anyhow::Result<()> {
    let program = match tokio::task::spawn_blocking(make).await?? {
        Ready::Yes(program) => program,
        Ready::No(missing) => {
            println!("skipped: {language} needs what is not here: {missing}");
            return Ok(());
        }
    };
    let ours = OverTls::start().await?;
    let namespace = target.namespace().await?;
    for client in [ours.client.clone(), target.client()] {
        prepare(&client, &namespace).await?;
    }
    let real = target.kubeconfig().context("the reference has a kubeconfig")?.to_owned();
    let printed = move || -> anyhow::Result<(String, String)> {
        Ok((seen(&program, &ours.kubeconfig(), &namespace)?, seen(&program, &real, &namespace)?))
    };
    let (ours, theirs) = tokio::task::spawn_blocking(printed).await??;
    println!("{language}: {} lines", theirs.lines().count());
    let different = ours.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
    if let Some((ours, theirs)) = different {
        anyhow::bail!("{language} sees\n  {ours}\nwhere the reference shows\n  {theirs}");
    }
    ensure!(ours == theirs, "one of both prints more:\n{ours}\n---\n{theirs}");
    Ok(())
}

/// What a program prints, without what is chance.
fn seen(program: &Program, kubeconfig: &std::path::Path, namespace: &str) -> anyhow::Result<String> {
    let uid = regex::Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")?;
    Ok(uid.replace_all(&program.run(kubeconfig, namespace)?, "UID").into_owned())
}

/// A namespace with the account that a controller would put there.
async fn prepare(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    made(Api::all(client.clone()).create(&PostParams::default(), &namespace).await)?;
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
    made(Api::namespaced(client.clone(), name).create(&PostParams::default(), &account).await)
}

/// Now, or before.
fn made<K>(created: Result<K, kube::Error>) -> anyhow::Result<()> {
    match created {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(drop).context("preparing the namespace"),
    }
}
