//! Programs on the official clients of other languages (`tests/clients`): built once, and run against one API.

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_apiserver::{Api, Config, Credentials, Identity, Serving};

/// A program that takes a kubeconfig and a namespace, and prints what it saw.
pub struct Program(Vec<String>);

/// What making a program ready came to.
pub enum Ready {
    /// It runs.
    Yes(Program),
    /// Something is missing here; this says what.
    No(String),
}

fn sources(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(language)
}

/// Where what is built is kept.
fn built() -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients");
    std::fs::create_dir_all(&folder)?;
    Ok(folder.canonicalize()?)
}

/// Runs a command; what it says if it fails.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))),
    }
}

/// The program on client-go.
///
/// # Errors
/// When it does not compile.
pub fn go() -> anyhow::Result<Ready> {
    let (sources, program) = (sources("go"), built()?.join("go-program"));
    let mut go = Command::new("go");
    if let Err(why) = run(go.args(["mod", "download"]).current_dir(&sources)) {
        return Ok(Ready::No(format!("Go and its modules: {why}")));
    }
    let mut go = Command::new("go");
    let made =
        run(go.args(["build", "-o"]).arg(&program).arg(".").current_dir(&sources).env("CGO_ENABLED", "0"));
    made.map_err(|why| anyhow::anyhow!("the Go program does not compile: {why}"))?;
    Ok(Ready::Yes(Program(vec![program.display().to_string()])))
}

/// The program on the Python client, in an environment of its own.
///
/// # Errors
/// When there is no room for it.
pub fn python() -> anyhow::Result<Ready> {
    let (sources, folder) = (sources("python"), built()?.join("python"));
    let wanted = std::fs::read_to_string(sources.join("requirements.txt"))?;
    let (python, mark) = (folder.join("bin/python"), folder.join("installed"));
    if std::fs::read_to_string(&mark).ok().as_deref() != Some(wanted.as_str()) {
        if let Err(why) = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)) {
            return Ok(Ready::No(format!("Python 3 with venv: {why}")));
        }
        let mut pip = Command::new(&python);
        let installed = run(pip
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(sources.join("requirements.txt")));
        if let Err(why) = installed {
            return Ok(Ready::No(format!("Python's packages: {why}")));
        }
        std::fs::write(&mark, wanted)?;
    }
    let script = sources.join("clients.py");
    // The clients of others may be deprecated in parts; that is not what is compared.
    let words = [python.as_path(), Path::new("-W"), Path::new("ignore"), &script];
    Ok(Ready::Yes(Program(words.iter().map(|word| word.display().to_string()).collect())))
}

impl Program {
    /// What it prints.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(&self, kubeconfig: &Path, namespace: &str) -> anyhow::Result<String> {
        let (program, arguments) = self.0.split_first().context("a program has a name")?;
        let mut command = Command::new(program);
        let output = command.args(arguments).arg(kubeconfig).arg(namespace).output()?;
        let text = String::from_utf8_lossy(&output.stdout).replace(namespace, "NAMESPACE");
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program}: {}\n{text}\n{told}", output.status);
        Ok(text)
    }
}

/// The embedded API over TLS, with a kubeconfig for its administrator.
pub struct OverTls {
    /// In memory; ends with this.
    _serving: Serving,
    folder: tempfile::TempDir,
    /// A client of its own.
    pub client: kube::Client,
}

impl OverTls {
    /// On a free port of loopback.
    ///
    /// # Errors
    /// When there is no port or no room for the kubeconfig.
    pub async fn start() -> anyhow::Result<Self> {
        let credentials = Credentials::generate()?;
        let api = Api::new(Config { credentials: Some(credentials.clone()), ..Config::default() });
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let serving = api.serve_tls(listener)?;
        let folder = tempfile::tempdir()?;
        let encoded = |text: &str| STANDARD.encode(text);
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "embedded",
            "clusters": [{"name": "embedded", "cluster": {
                "server": format!("https://{}", serving.address()),
                "certificate-authority-data": encoded(credentials.ca_certificate()),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": encoded(credentials.admin_certificate()),
                "client-key-data": encoded(credentials.admin_key()),
            }}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "admin"}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string())?;
        let client = kube::Client::new(api.service(Identity::admin()), "default");
        Ok(Self { _serving: serving, folder, client })
    }

    /// Where its kubeconfig is.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}
