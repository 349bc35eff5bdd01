//! A test environment: an etcd and an API server, of whichever programs, started as controller-runtime does it.

use super::credentials::{Authority, Credential};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use windlass_clock::Clock;
use windlass_harness::reference;

/// How long programs may take to start: as long as envtest lets them.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of programs.
pub(crate) struct Programs(pub(super) PathBuf);

/// The real ones, if they are built and wanted.
pub(crate) fn reference() -> Option<Programs> {
    if std::env::var_os("WINDLASS_SKIP_REFERENCE").is_some() {
        println!("skipped: WINDLASS_SKIP_REFERENCE is set");
        return None;
    }
    match reference::programs() {
        Ok(folder) => Some(Programs(folder)),
        Err(error) if std::env::var_os("WINDLASS_REQUIRE_REFERENCE").is_some() => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// What a request came to.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: http::HeaderMap,
    pub(super) body: Value,
}

/// An etcd and an API server that run; they are killed when this is dropped.
pub(super) struct Environment {
    folder: Arc<TempDir>,
    programs: PathBuf,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
    port: u16,
    pub(super) authority: Authority,
    /// Who signs the certificates of front proxies, where a flag says so.
    pub(super) proxy_authority: Authority,
    etcd: Child,
    server: Child,
}

impl Environment {
    pub(super) async fn start(programs: &Programs, flags: &[&str]) -> Self {
        Self::start_with(programs, flags, &[]).await
    }

    /// With further flags, in which `DIR` is the folder of the environment, and with variables of the API server.
    pub(super) async fn start_with(programs: &Programs, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        // Somebody else may have taken a port that was free a moment ago.
        for _ in 0..5 {
            let mut started = Self::spawn(programs, flags, variables);
            if started.is_ready().await {
                return started;
            }
        }
        panic!("the programs of {} do not start", programs.0.display());
    }

    fn spawn(programs: &Programs, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let place = |name: &str| folder.path().join(name).display().to_string();
        let (etcd_port, peer_port, port) = (free_port(), free_port(), free_port());
        let (authority, proxy_authority) = (Authority::new(), Authority::new());
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("ca.crt", &authority.certificate);
        write("proxy-ca.crt", &proxy_authority.certificate);
        write("policy.yaml", super::audits::POLICY);
        write("sa.key", include_str!("rsa.key"));
        write("sa.pub", include_str!("rsa.pub"));
        write(
            "tokens.csv",
            "admin-token,admin,1,\"system:masters\"\njane-token,jane,2,\"devs,ops\"\nbob-token,bob,3\n",
        );
        let (client, peer) =
            (format!("http://127.0.0.1:{etcd_port}"), format!("http://127.0.0.1:{peer_port}"));
        let etcd = spawn(
            &programs.0.join("etcd"),
            &[
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--data-dir={}", place("etcd")),
                "--unsafe-no-fsync=true".to_owned(),
            ],
            &[],
        );
        let mut all = vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", place("certificates")),
            format!("--client-ca-file={}", place("ca.crt")),
            format!("--etcd-servers={client}"),
            format!("--secure-port={port}"),
            // A value of its own, as some pass it.
            "--service-account-issuer".to_owned(),
            "https://issuer.example.com".to_owned(),
            format!("--service-account-key-file={}", place("sa.pub")),
            format!("--service-account-signing-key-file={}", place("sa.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--token-auth-file={}", place("tokens.csv")),
        ];
        if !flags.iter().any(|flag| flag.starts_with("--allow-privileged")) {
            all.push("--allow-privileged=true".to_owned());
        }
        if !flags.iter().any(|flag| flag.starts_with("--authorization-")) {
            all.push("--authorization-mode=RBAC".to_owned());
        }
        let plugin = "admission-plugins=ServiceAccount";
        if !flags.iter().any(|flag| flag.contains(plugin)) {
            all.push(format!("--disable-{plugin}"));
        }
        all.extend(flags.iter().map(|flag| flag.replace("DIR", &folder.path().display().to_string())));
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let server = spawn(&programs.0.join("kube-apiserver"), &all, &variables);
        let programs = programs.0.clone();
        Self { folder, programs, flags: all, variables, port, authority, proxy_authority, etcd, server }
    }

    /// Waits until it answers; false if one of the programs has ended.
    async fn is_ready(&mut self) -> bool {
        let clock = Clock::real();
        let deadline = clock.moment() + PATIENCE;
        while clock.moment() < deadline {
            let asked = self.try_send(&Credential::default(), Method::GET, "/healthz", None).await;
            if asked.is_ok_and(|answer| answer.code == 200) {
                return true;
            }
            if [&mut self.etcd, &mut self.server].into_iter().any(|child| child.try_wait().unwrap().is_some())
            {
                return false;
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Ends the API server without warning.
    pub(super) fn kill_server(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    pub(super) async fn start_server(&mut self) {
        self.server = spawn(&self.programs.join("kube-apiserver"), &self.flags, &self.variables);
        self.until(&Credential::default(), "/healthz", |answer| answer.code == 200).await;
    }

    /// Ends both as envtest does.
    pub(super) fn stop(mut self) {
        for child in [&mut self.server, &mut self.etcd] {
            kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
            let ended = child.wait().unwrap();
            // The real etcd does not catch it.
            assert!(ended.success() || ended.signal() == Some(Signal::SIGTERM as i32), "{ended}");
        }
    }

    /// The folder of its files, which stays as long as somebody has it.
    pub(super) fn folder(&self) -> Arc<TempDir> {
        self.folder.clone()
    }

    pub(super) fn admin(&self) -> Credential {
        Credential::token("admin-token")
    }

    /// Asks again until the answer is as wanted.
    pub(super) async fn until(&self, who: &Credential, path: &str, wanted: impl Fn(&Answer) -> bool) {
        let clock = Clock::real();
        let deadline = clock.moment() + PATIENCE;
        let mut last = None;
        while clock.moment() < deadline {
            match self.try_send(who, Method::GET, path, None).await {
                Ok(answer) if wanted(&answer) => return,
                other => last = Some(other),
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
        panic!("{path}: {last:?}");
    }

    pub(super) async fn send(
        &self,
        who: &Credential,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        self.try_send(who, method, path, body).await.unwrap()
    }

    /// Sends a request on a connection of its own.
    async fn try_send(
        &self,
        who: &Credential,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Answer> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let own = who.certificate.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()));
        let tls = windlass_apiserver::insecure_tls(own)?;
        let stream = tls.connect(ServerName::try_from("localhost")?, stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in &who.headers {
            request = request.header(*name, value);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let (parts, body) = sender.send_request(request.body(Full::new(body))?).await?.into_parts();
        let body = Limited::new(body, 8 << 20).collect().await.map_err(anyhow::Error::from_boxed)?.to_bytes();
        let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| text());
        Ok(Answer { code: parts.status.as_u16(), headers: parts.headers, body })
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.etcd] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(program: &Path, arguments: &[String], variables: &[(String, String)]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A port that nobody had a moment ago, as envtest finds one.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
