//! Kubeconfigs that tell a server where its webhooks are: the cluster is the webhook, the user is the server.

use super::{HttpsClient, Trust};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use serde::Deserialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a webhook is, and who the server is to it.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) url: Uri,
    pub(crate) client: HttpsClient,
}

/// Why a kubeconfig names no webhook.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidKubeconfig {
    #[error("cannot read {}: {why}", file.display())]
    Unreadable { file: PathBuf, why: io::Error },
    #[error("{}: {why}", file.display())]
    Invalid { file: PathBuf, why: String },
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Kubeconfig {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    current_context: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    password: Option<String>,
}

impl Endpoint {
    /// What the current context of a kubeconfig leads to. Files that it names are looked for beside it.
    pub(crate) fn from_kubeconfig(file: &Path, timeout: Duration) -> Result<Self, InvalidKubeconfig> {
        let text = fs::read_to_string(file)
            .map_err(|why| InvalidKubeconfig::Unreadable { file: file.to_owned(), why })?;
        let invalid = |why: String| InvalidKubeconfig::Invalid { file: file.to_owned(), why };
        let read: Kubeconfig = serde_saphyr::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        let beside = file.parent().unwrap_or(Path::new("."));
        read.endpoint(beside, timeout).map_err(invalid)
    }
}

impl Kubeconfig {
    fn endpoint(&self, beside: &Path, timeout: Duration) -> Result<Endpoint, String> {
        let current = &self.current_context;
        if current.is_empty() {
            return Err("it has no current-context".to_owned());
        }
        let context = self.contexts.iter().find(|context| context.name == *current);
        let context = &context.ok_or_else(|| format!("there is no context {current:?}"))?.context;
        let cluster = self.clusters.iter().find(|cluster| cluster.name == context.cluster);
        let cluster = &cluster.ok_or_else(|| format!("there is no cluster {:?}", context.cluster))?.cluster;
        let nobody = User::default();
        let user = match context.user.as_str() {
            "" => &nobody,
            name => {
                let user = self.users.iter().find(|user| user.name == name);
                &user.ok_or_else(|| format!("there is no user {name:?}"))?.user
            }
        };
        let pem =
            |file: &Option<PathBuf>, data: &Option<String>| pem(beside, file.as_deref(), data.as_deref());
        let authorities = pem(&cluster.certificate_authority, &cluster.certificate_authority_data)?;
        let trust = match (&authorities, cluster.insecure_skip_tls_verify) {
            (_, true) => Trust::Anyone,
            (Some(pem), false) => Trust::Authorities(pem),
            (None, false) => Trust::System,
        };
        let certificate = pem(&user.client_certificate, &user.client_certificate_data)?;
        let key = pem(&user.client_key, &user.client_key_data)?;
        let own = certificate.as_deref().zip(key.as_deref());
        let client = HttpsClient::new(trust, own, user.authorization(beside)?, timeout);
        let client = client.map_err(|error| error.to_string())?;
        let url = cluster.server.parse::<Uri>().map_err(|error| format!("{:?}: {error}", cluster.server))?;
        if url.host().is_none() {
            return Err(format!("{:?} is no URL of a server", cluster.server));
        }
        Ok(Endpoint { url, client })
    }
}

impl User {
    fn authorization(&self, beside: &Path) -> Result<Option<HeaderValue>, String> {
        let token = match (&self.token, &self.token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(file)) => Some(read(&beside.join(file))?.trim().to_owned()),
            (None, None) => None,
        };
        let value = match (token, &self.username) {
            (Some(token), _) => format!("Bearer {token}"),
            (None, Some(name)) => {
                let password = self.password.as_deref().unwrap_or_default();
                format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
            }
            (None, None) => return Ok(None),
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| "the token cannot be sent in a header")?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// The text that is in the kubeconfig itself, or else in a file that it names.
fn pem(beside: &Path, file: Option<&Path>, data: Option<&str>) -> Result<Option<String>, String> {
    match (data.filter(|data| !data.is_empty()), file) {
        (Some(data), _) => {
            let decoded = STANDARD.decode(data).map_err(|error| error.to_string())?;
            String::from_utf8(decoded).map(Some).map_err(|error| error.to_string())
        }
        (None, Some(file)) => read(&beside.join(file)).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}
