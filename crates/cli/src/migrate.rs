//! `windlass migrate`: writes the stored objects of a custom kind anew, so that all are in the storage version, and then says so in its CRD.
//!
//! An object stays as it was stored until somebody writes it. To write what was read is enough: the API server stores it in the storage
//! version, and stores nothing where that is so already. So a migration that was cut off is run again, and goes on where it was.

use crate::apply::tried;
use crate::connect;
use anyhow::{Context, bail, ensure};
use http::{Method, Request};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass migrate Memcached
      after the storage version of Memcached has changed, and before its old version is removed
  windlass migrate memcacheds.cache.example.com
      the same, where several groups have such a kind";

/// Objects of one list.
const PAGE: usize = 200;
/// A list that takes too long is begun anew this often.
const LISTS: usize = 10;
/// Others may write the CRD at the same time.
const ATTEMPTS: usize = 5;
/// Of the objects that could not be written, this many are named.
const NAMED: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The kind, its plural, or the name of its CRD
    kind: String,

    /// The kubeconfig of the cluster [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Options {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        let (client, _) = connect::to(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = find(&definitions, &self.kind).await?;
        let name = definition.name_any();
        let version = storage_version(&definition)?.to_owned();
        let stored = stored_versions(&definition);
        if stored == [version.as_str()] {
            println!("{name}: every object is stored as {version}; there is nothing to do");
            return Ok(ExitCode::SUCCESS);
        }
        println!("{name}: stored as {}; writing every object as {version}", stored.join(", "));
        let written =
            rewrite(&client, &definition, &version, &mut |count| println!("{name}: {count} objects read"))
                .await?;
        println!(
            "{name}: {} objects were written, and {} were gone or written by others meanwhile",
            written.written, written.overtaken
        );
        if !written.failed.is_empty() {
            let count = written.failed.len();
            let named: Vec<&str> = written.failed.iter().take(NAMED).map(String::as_str).collect();
            bail!(
                "{count} objects could not be written, so {name} still says {}; mend them and run this again:\n  {}",
                stored.join(", "),
                named.join("\n  ")
            );
        }
        trim(&definitions, &name, &version, &stored).await?;
        println!(
            "{name}: status.storedVersions is now {version} alone; other versions may be removed from it"
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// The CRD of a kind as a person names it.
async fn find(
    definitions: &Api<CustomResourceDefinition>,
    word: &str,
) -> anyhow::Result<CustomResourceDefinition> {
    let all = definitions.list(&ListParams::default()).await;
    let all = all.map_err(|error| tried("cannot list CRDs".to_owned(), error))?;
    let mut found: Vec<CustomResourceDefinition> =
        all.items.into_iter().filter(|one| is_called(one, word)).collect();
    let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
    match (found.pop(), names.len()) {
        (None, _) => bail!("the cluster has no CRD of {word:?}"),
        (Some(one), 1) => Ok(one),
        _ => bail!("{word:?} is the kind of several CRDs; name one of {}", names.join(", ")),
    }
}

fn is_called(definition: &CustomResourceDefinition, word: &str) -> bool {
    let names = &definition.spec.names;
    let short = names.short_names.iter().flatten().map(String::as_str);
    let all = [names.kind.as_str(), &names.plural].into_iter().chain(names.singular.as_deref()).chain(short);
    definition.name_any() == word || all.into_iter().any(|name| name.eq_ignore_ascii_case(word))
}

fn storage_version(definition: &CustomResourceDefinition) -> anyhow::Result<&str> {
    let stored = definition.spec.versions.iter().find(|version| version.storage);
    let stored = stored.with_context(|| format!("{} has no storage version", definition.name_any()))?;
    ensure!(
        stored.served,
        "{} stores {}, which is not served: what is not served cannot be written",
        definition.name_any(),
        stored.name
    );
    Ok(&stored.name)
}

fn stored_versions(definition: &CustomResourceDefinition) -> Vec<String> {
    definition.status.iter().flat_map(|status| status.stored_versions.iter().flatten().cloned()).collect()
}

/// What became of the objects.
#[derive(Debug, Default, PartialEq)]
struct Rewritten {
    written: usize,
    /// Written by somebody else, and so in the storage version; or deleted.
    overtaken: usize,
    failed: Vec<String>,
}

/// Writes every object as it is read.
async fn rewrite(
    client: &Client,
    definition: &CustomResourceDefinition,
    version: &str,
    progress: &mut dyn FnMut(usize),
) -> anyhow::Result<Rewritten> {
    let collection = format!("/apis/{}/{version}", definition.spec.group);
    let plural = &definition.spec.names.plural;
    let list = format!("{collection}/{plural}?limit={PAGE}");
    'lists: for _ in 0..LISTS {
        let (mut rewritten, mut token, mut count) = (Rewritten::default(), String::new(), 0);
        loop {
            let path = if token.is_empty() { list.clone() } else { format!("{list}&continue={token}") };
            let page = match send(client, Method::GET, &path, &Value::Null).await {
                // What was written meanwhile is written again, which changes nothing.
                Err(kube::Error::Api(status)) if status.code == 410 => continue 'lists,
                page => page.map_err(|error| tried(format!("cannot list {plural}"), error))?,
            };
            for object in page["items"].as_array().into_iter().flatten() {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                let (namespace, name) = (text("namespace"), text("name"));
                let (place, title) = match namespace {
                    "" => (format!("{collection}/{plural}/{name}"), name.to_owned()),
                    _ => (
                        format!("{collection}/namespaces/{namespace}/{plural}/{name}"),
                        format!("{namespace}/{name}"),
                    ),
                };
                match send(client, Method::PUT, &format!("{place}?fieldManager=windlass-migrate"), object)
                    .await
                {
                    Ok(_) => rewritten.written += 1,
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                        rewritten.overtaken += 1
                    }
                    Err(error @ kube::Error::Api(_)) => rewritten.failed.push(format!("{title}: {error}")),
                    Err(error) => return Err(tried(format!("cannot write {title}"), error)),
                }
                count += 1;
            }
            progress(count);
            token = match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => token.to_owned(),
                _ => return Ok(rewritten),
            };
        }
    }
    bail!("the list of {plural} expired {LISTS} times before it was read to its end")
}

/// Says in the CRD that the storage version is the only one that is stored, unless it has changed meanwhile.
async fn trim(
    definitions: &Api<CustomResourceDefinition>,
    name: &str,
    version: &str,
    before: &[String],
) -> anyhow::Result<()> {
    for _ in 0..ATTEMPTS {
        let live =
            definitions.get(name).await.map_err(|error| tried(format!("cannot read {name}"), error))?;
        ensure!(
            storage_version(&live)? == version && stored_versions(&live) == before,
            "{name} was changed meanwhile: it is stored as {} and wanted as {}; run this again",
            stored_versions(&live).join(", "),
            storage_version(&live)?
        );
        let patch = json!({
            "metadata": { "resourceVersion": live.metadata.resource_version },
            "status": { "storedVersions": [version] },
        });
        match definitions.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            done => {
                return done
                    .map(drop)
                    .map_err(|error| tried(format!("cannot change the status of {name}"), error));
            }
        }
    }
    bail!("{name} changes all the time; run this again")
}

async fn send(client: &Client, method: Method, path: &str, body: &Value) -> kube::Result<Value> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    client.request(request.body(body).map_err(kube::Error::HttpError)?).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::{DynamicObject, PostParams};
    use windlass_apiserver::{Api as Embedded, Config, Identity};

    fn definition(storage: &str) -> Value {
        let version = |name: &str| {
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            json!({"name": name, "served": true, "storage": name == storage, "schema": {"openAPIV3Schema": schema}})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "sites.example.dev"},
            "spec": {"group": "example.dev", "scope": "Namespaced", "versions": [version("v1alpha1"), version("v1")],
                "names": {"kind": "Site", "plural": "sites", "singular": "site", "shortNames": ["st"]}},
        })
    }

    async fn apply(definitions: &Api<CustomResourceDefinition>, storage: &str) -> CustomResourceDefinition {
        let params = PatchParams::apply("test").force();
        definitions.patch("sites.example.dev", &params, &Patch::Apply(definition(storage))).await.unwrap()
    }

    #[tokio::test]
    async fn what_is_stored_is_written_anew_once_and_then_the_definition_says_so() {
        let api = Embedded::new(Config::default());
        let client = Client::new(api.service(Identity::admin()), "default");
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        apply(&definitions, "v1alpha1").await;
        let kind = kube::core::ApiResource {
            group: "example.dev".into(),
            version: "v1alpha1".into(),
            api_version: "example.dev/v1alpha1".into(),
            kind: "Site".into(),
            plural: "sites".into(),
        };
        let sites: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
        let count = PAGE + 50;
        for number in 0..count {
            let site = DynamicObject::new(&format!("s-{number}"), &kind).data(json!({"spec": {"n": number}}));
            sites.create(&PostParams::default(), &site).await.unwrap();
        }
        apply(&definitions, "v1").await;
        for word in ["Site", "sites", "site", "ST", "sites.example.dev"] {
            assert_eq!(find(&definitions, word).await.unwrap().name_any(), "sites.example.dev", "{word}");
        }
        assert!(find(&definitions, "shop").await.unwrap_err().to_string().contains("no CRD of \"shop\""));
        let live = find(&definitions, "Site").await.unwrap();
        assert_eq!(stored_versions(&live), ["v1alpha1", "v1"]);
        // Cut off in the middle. Every object that was stored is a revision.
        let revision = || api.store().revision().0;
        let before = revision();
        let cut_off = async {
            let mut at_the_first_page = |_| panic!("cut off");
            rewrite(&client, &live, "v1", &mut at_the_first_page).await
        };
        let cut_off = futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(cut_off)).await;
        assert!(cut_off.is_err());
        assert_eq!(revision() - before, PAGE as u64);
        let done = rewrite(&client, &live, "v1", &mut |_| {}).await.unwrap();
        assert_eq!(done, Rewritten { written: count, ..Default::default() });
        // Only what was not done yet was stored, and then nothing.
        assert_eq!(revision() - before, count as u64);
        rewrite(&client, &live, "v1", &mut |_| {}).await.unwrap();
        assert_eq!(revision() - before, count as u64);
        let stale = trim(&definitions, "sites.example.dev", "v1", &["v1".to_owned()]).await.unwrap_err();
        assert!(stale.to_string().contains("changed meanwhile"), "{stale}");
        trim(&definitions, "sites.example.dev", "v1", &stored_versions(&live)).await.unwrap();
        assert_eq!(stored_versions(&definitions.get("sites.example.dev").await.unwrap()), ["v1"]);
    }
}
