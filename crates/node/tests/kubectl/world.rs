//! An API with a node and a pod on it, and kubectl pointed there.

use crate::local::{CONTAINERS, Local, POD};
use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::{Config, Identity, Serving};
use windlass_clock::Clock;
use windlass_harness::{Environment, Target, reference};
use windlass_node::server::{self, ApiServerOnly, KeyAndCertificate, WEBSOCKETS};

/// How long a command of kubectl may take.
const COMMAND: Duration = Duration::from_secs(60);

/// The embedded API over TLS, and the folder that its kubeconfig is in.
struct Embedded {
    _api: windlass_apiserver::Api,
    _serving: Serving,
    folder: TempDir,
    ca: String,
}

pub fn embedded() -> Environment {
    const NAME: &str = "embedded";
    Environment::new(NAME, || async {
        let api = windlass_apiserver::Api::new(Config::default());
        api.serve_metrics();
        let serving = api.serve_tls(TcpListener::bind("127.0.0.1:0").await?)?;
        let client = kube::Client::new(api.service(Identity::admin()), "default");
        let credentials = api.credentials()?.clone();
        let folder = tempfile::tempdir()?;
        let data = |text: &str| STANDARD.encode(text);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://{}", serving.address()),
                "certificate-authority-data": data(credentials.ca_certificate())}}],
            "users": [{"name": "it", "user": {
                "client-certificate-data": data(credentials.admin_certificate()),
                "client-key-data": data(credentials.admin_key())}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), config.to_string())?;
        let ca = credentials.ca_certificate().to_owned();
        Ok(Target::new(NAME, client).with(Embedded { _api: api, _serving: serving, folder, ca }))
    })
    .needing(reference::programs())
}

/// A node with a pod on it. The target stays open as long as it does.
pub struct World {
    _target: Target,
    pub kubeconfig: PathBuf,
    pub namespace: String,
    pub node: String,
    pub folder: TempDir,
    pub ended: CancellationToken,
    pub address: SocketAddr,
    pub identity: KeyAndCertificate,
    _serving: server::ServerHandle,
}

/// What a program printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl World {
    /// With a node that declares that it speaks WebSocket, or does not.
    pub async fn make(target: Target, declares: bool) -> anyhow::Result<Self> {
        let (kubeconfig, client_ca) = match target.extra::<Embedded>() {
            Some(embedded) => (embedded.folder.path().join("kubeconfig"), embedded.ca.clone()),
            None => {
                let path = target.kubeconfig().context("the reference has a kubeconfig")?.to_owned();
                let ca = std::fs::read_to_string(path.with_file_name("pki").join("ca.crt"))?;
                (path, ca)
            }
        };
        let (client, namespace) = (target.client(), target.namespace().await?);
        let node = format!("local-{namespace}");
        let (folder, ended) = (tempfile::tempdir()?, CancellationToken::new());
        let backend =
            Local { namespace: namespace.clone(), folder: folder.path().to_owned(), ended: ended.clone() };
        let identity = KeyAndCertificate::self_signed(&node, &["127.0.0.1".to_owned()])?;
        let config = server::Config {
            identity: identity.clone(),
            client_ca,
            auth: Arc::new(ApiServerOnly),
            clock: Clock::real(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let serving = server::serve(listener, config, Arc::new(backend))?;
        make_node(&client, &node, serving.address().port(), declares).await?;
        make_pod(&client, &namespace, &node).await?;
        Ok(Self {
            _target: target,
            kubeconfig,
            namespace,
            node,
            folder,
            ended,
            address: serving.address(),
            identity,
            _serving: serving,
        })
    }

    /// kubectl with these arguments, not yet started.
    pub fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(reference::programs()?.join("kubectl"));
        self.point(&mut command, arguments);
        Ok(command)
    }

    pub fn point(&self, command: &mut Command, arguments: &[&str]) {
        command
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--namespace={}", self.namespace))
            .args(arguments)
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
    }

    /// Runs kubectl to its end.
    pub async fn run(&self, arguments: &[&str]) -> anyhow::Result<Ran> {
        finish(self.kubectl(arguments)?).await.with_context(|| format!("kubectl {arguments:?}"))
    }

    /// What kubectl prints, if all goes well.
    pub async fn prints(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let ran = self.run(arguments).await?;
        ensure!(ran.code == Some(0), "kubectl {arguments:?}: {ran:?}");
        Ok(ran.stdout)
    }

    /// Where the logs of a container are.
    pub fn log(&self, container: &str, restarts: u32) -> PathBuf {
        let folder = self.folder.path().join(container);
        std::fs::create_dir_all(&folder).expect("a folder of the test's own can be made");
        folder.join(format!("{restarts}.log"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Runs a command to its end.
pub async fn finish(mut command: Command) -> anyhow::Result<Ran> {
    let output = Clock::real().timeout(COMMAND, command.output()).await.ok().context("it does not end")??;
    Ok(Ran {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
    })
}

async fn make_node(client: &kube::Client, name: &str, port: u16, declares: bool) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    nodes.create(&PostParams::default(), &node).await?;
    let mut status = json!({
        "allocatable": {"cpu": "2", "memory": "1Gi"},
        "capacity": {"cpu": "2", "memory": "1Gi"},
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    });
    if declares {
        status["declaredFeatures"] = json!([WEBSOCKETS]);
    }
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
    Ok(())
}

async fn make_pod(client: &kube::Client, namespace: &str, node: &str) -> anyhow::Result<()> {
    // A controller would make it.
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
    accounts.create(&PostParams::default(), &account).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let containers = CONTAINERS.map(|name| json!({"name": name, "image": "none"}));
    let pod = json!({
        "metadata": {"name": POD},
        "spec": {"nodeName": node, "automountServiceAccountToken": false, "containers": containers},
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    // kubectl looks whether it runs before it attaches.
    let running = CONTAINERS.map(|name| {
        json!({"name": name, "image": "none", "imageID": "", "ready": true, "restartCount": 1,
            "state": {"running": {"startedAt": "2026-11-15T10:00:00Z"}}})
    });
    let status = json!({"status": {"phase": "Running", "containerStatuses": running}});
    pods.patch_status(POD, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// A file with some of everything in it.
pub fn noise(path: &Path, size: usize) -> anyhow::Result<Vec<u8>> {
    let mut state = 1_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(size)
    .collect();
    std::fs::write(path, &bytes)?;
    Ok(bytes)
}
