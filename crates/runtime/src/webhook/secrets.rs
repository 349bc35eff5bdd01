//! Where the certificates of webhooks are: in Secrets of the cluster, in this process alone, or in files that others write.

use super::authority::{Certificates, Part, Wanted};
use crate::certificates::Contents;
use crate::error_chain::chain;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use windlass_clock::Timestamp;

/// Who writes at the same time may be faster this often.
const ATTEMPTS: usize = 10;
/// No certificate is larger.
const LARGEST_FILE: u64 = 1 << 20;

/// Where the certificates are.
pub(super) enum Source {
    /// In Secrets, which all replicas share.
    Secrets { client: Client, namespace: String, wanted: Wanted },
    /// In this process.
    Memory { wanted: Wanted, authority: Option<Box<Secret>>, certificate: Option<Box<Secret>> },
    /// In files.
    Folder(PathBuf),
}

impl Source {
    /// The certificates as they are to be now; what is missing is made, and what is due if this replica leads.
    pub(super) async fn look(&mut self, leads: bool, now: Timestamp) -> Result<Certificates, String> {
        match self {
            Self::Folder(folder) => read_files(folder),
            Self::Memory { wanted, authority, certificate } => {
                for _ in 0..ATTEMPTS {
                    let Some(part) = wanted.next(authority.as_deref(), certificate.as_deref(), true, now)
                    else {
                        let both = authority.as_deref().zip(certificate.as_deref());
                        return both
                            .and_then(|(authority, certificate)| Certificates::of(authority, certificate))
                            .ok_or_else(incomplete);
                    };
                    let made = wanted.make(part, authority.as_deref(), now).map_err(|error| chain(&error))?;
                    let place = if part == Part::Authority { &mut *authority } else { &mut *certificate };
                    *place = Some(Box::new(in_memory(place.take().map(|held| *held), made)));
                }
                Err(incomplete())
            }
            Self::Secrets { client, namespace, wanted } => {
                let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
                let failed = |name: &str, error: &kube::Error| {
                    format!(
                        "Secret {namespace}/{name} with the certificates of the webhooks: {}",
                        chain(error)
                    )
                };
                for _ in 0..ATTEMPTS {
                    let read =
                        async |name: &str| secrets.get_opt(name).await.map_err(|error| failed(name, &error));
                    let authority = read(&wanted.authority_secret).await?;
                    let certificate = read(&wanted.certificate_secret).await?;
                    let Some(part) = wanted.next(authority.as_ref(), certificate.as_ref(), leads, now) else {
                        let both = authority.as_ref().zip(certificate.as_ref());
                        return both
                            .and_then(|(authority, certificate)| Certificates::of(authority, certificate))
                            .ok_or_else(incomplete);
                    };
                    let made = wanted.make(part, authority.as_ref(), now).map_err(|error| chain(&error))?;
                    let live = if part == Part::Authority { authority } else { certificate };
                    match write(&secrets, wanted.secret(part), live, made).await {
                        // Another replica was faster: what it made is looked at.
                        Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {}
                        Err(error) => return Err(failed(wanted.secret(part), &error)),
                        Ok(()) => {
                            tracing::info!(secret = wanted.secret(part), "made certificates of webhooks")
                        }
                    }
                }
                Err(format!(
                    "Secrets {namespace}/{} and its authority change all the time",
                    wanted.certificate_secret
                ))
            }
        }
    }
}

fn incomplete() -> String {
    "the certificates of the webhooks are incomplete".to_owned()
}

/// Creates a Secret, or changes it as it was seen.
async fn write(secrets: &Api<Secret>, name: &str, live: Option<Secret>, made: Contents) -> kube::Result<()> {
    match live {
        None => {
            let mut secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "windlass" } },
            });
            made.merge_into(&mut secret);
            let secret = serde_json::from_value(secret).map_err(kube::Error::SerdeError)?;
            secrets.create(&PostParams::default(), &secret).await.map(drop)
        }
        Some(live) => {
            let seen = &live.metadata;
            let mut patch =
                json!({ "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version } });
            made.merge_into(&mut patch);
            secrets.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        }
    }
}

/// A Secret that is in no cluster, with what was made put into it.
pub(super) fn in_memory(secret: Option<Secret>, made: Contents) -> Secret {
    let mut secret = secret.unwrap_or_default();
    let mut patch = json!({});
    made.merge_into(&mut patch);
    let data = secret.data.get_or_insert_default();
    let texts = |value: &Value| value.as_object().cloned().unwrap_or_default();
    for name in texts(&patch["data"]).keys() {
        data.remove(name);
    }
    for (name, text) in texts(&patch["stringData"]) {
        data.insert(name, ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec()));
    }
    for (name, text) in texts(&patch["metadata"]["annotations"]) {
        let text = text.as_str().unwrap_or_default().to_owned();
        secret.metadata.annotations.get_or_insert_default().insert(name, text);
    }
    secret
}

fn read_files(folder: &Path) -> Result<Certificates, String> {
    let read = |name: &str| {
        let path = folder.join(name);
        let failed = |why: String| format!("the certificate of the webhooks, {}: {why}", path.display());
        let length = std::fs::metadata(&path).map_err(|error| failed(error.to_string()))?.len();
        if length > LARGEST_FILE {
            return Err(failed(format!("{length} bytes are too many")));
        }
        std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))
    };
    Ok(Certificates { trusted: String::new(), certificate: read("tls.crt")?, key: read("tls.key")? })
}
