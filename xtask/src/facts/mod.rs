//! `cargo xtask facts`: generates the facts of the built-in kinds for the embedded API, from a running Kubernetes and from its Go
//! types.
//!
//! In: discovery and the OpenAPI documents, through `kubectl get --raw`, and a Go program that reflects on the types of the
//! same version. Out: `openapi.json`, `go.json`, and `bootstrap.txt` with the objects that the server
//! made by itself; the same server always gives the same bytes.

mod bootstrap;
mod openapi;
mod structs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

const OUT: &str = "crates/apiserver/facts";

const USAGE: &str = "\
cargo xtask facts [--kubectl PATH] [--kubeconfig FILE] [--server URL --token TOKEN] [--out FOLDER] [--check]
  --kubectl     the kubectl to ask with (default: kubectl)
  --kubeconfig  the cluster to ask (default: kubectl's own); `make facts` starts the reference and asks that
  --server, --token  a server on this machine to ask instead, without checking its certificate
  --out         the folder to write to (default: crates/apiserver/facts)
  --check       write nothing; fail if the files are not what the server says
Needs Go, as `make reference` does.";

/// Runs the task with what came after its name on the command line.
pub(crate) fn run(args: impl IntoIterator<Item = String>) -> Result<()> {
    let options = Options::parse(args)?;
    let facts = openapi::collect(&|path| options.get(path))?;
    let version = facts["version"].as_str().and_then(|version| version.strip_prefix('v'));
    let version = version.context("the server's version is no version")?;
    let structs = structs::reflect(version, &openapi::group_versions(&facts))?;
    let bootstrap = bootstrap::collect(&facts, &|path| options.get(path))?;
    for (name, text) in
        [("openapi.json", openapi::print(&facts)?), ("go.json", structs), ("bootstrap.txt", bootstrap)]
    {
        let path = options.out.join(name);
        let shown = path.display();
        if options.check {
            let found = std::fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
            ensure!(
                found == text,
                "{shown} is not what the server says; run `cargo xtask facts` without --check"
            );
        } else {
            std::fs::write(&path, text).with_context(|| format!("cannot write {shown}"))?;
        }
    }
    Ok(())
}

struct Options {
    kubectl: String,
    /// What says to kubectl which server to ask.
    connection: Vec<String>,
    out: PathBuf,
    check: bool,
}

impl Options {
    fn parse(args: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut options =
            Self { kubectl: "kubectl".into(), connection: Vec::new(), out: OUT.into(), check: false };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--kubectl" => options.kubectl = value()?,
                "--kubeconfig" => options.connection.extend(["--kubeconfig".into(), value()?]),
                "--token" => options.connection.extend(["--token".into(), value()?]),
                "--server" => {
                    let server = value()?;
                    ensure!(is_loopback(&server), "{server} is not on this machine: use --kubeconfig");
                    options.connection.extend([
                        "--server".into(),
                        server,
                        "--insecure-skip-tls-verify".into(),
                    ]);
                }
                "--out" => options.out = value()?.into(),
                "--check" => options.check = true,
                _ => bail!("unknown option {arg}\n{USAGE}"),
            }
        }
        Ok(options)
    }

    fn get(&self, path: &str) -> Result<Value> {
        let mut command = Command::new(&self.kubectl);
        command.args(&self.connection).args(["get", "--raw", path]);
        let output = command.output().with_context(|| format!("cannot run {}", self.kubectl))?;
        ensure!(
            output.status.success(),
            "the server does not answer GET {path}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        serde_json::from_slice(&output.stdout).with_context(|| format!("GET {path} answers no JSON"))
    }
}

/// Whether a URL's host is this machine, so that nobody in between can lie about the certificate.
fn is_loopback(server: &str) -> bool {
    let host_and_rest = server.strip_prefix("https://").or_else(|| server.strip_prefix("http://"));
    let authority = host_and_rest.unwrap_or("").split('/').next().unwrap_or("");
    match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').is_some_and(|(host, _)| host == "::1"),
        None => {
            let host = authority.split(':').next().unwrap_or("");
            host == "localhost" || host.parse().is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchecked_certificate_is_for_this_machine_alone() {
        for server in ["https://127.0.0.1:6443", "https://[::1]:6443/", "http://localhost:1"] {
            assert!(is_loopback(server), "{server}");
        }
        for server in
            ["https://10.0.0.1:6443", "https://127.0.0.1.evil.example", "127.0.0.1", "https://x@localhost"]
        {
            assert!(!is_loopback(server), "{server}");
        }
    }
}
