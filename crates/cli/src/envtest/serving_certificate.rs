//! The certificate of a server that was given none: self-made, and kept where the next start finds it.

use anyhow::Context;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use windlass_apiserver::Credentials;

const CERTIFICATE: &str = "apiserver.crt";
const KEY: &str = "apiserver.key";

/// The certificates and the key in a folder, as PEM; made, and written there, if one of them is missing.
pub(super) fn find_or_make(folder: Option<&Path>, bind: IpAddr) -> anyhow::Result<(String, String)> {
    let Some(folder) = folder else { return make(bind) };
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    if certificate.exists() && key.exists() {
        let read =
            |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        return Ok((read(&certificate)?, read(&key)?));
    }
    let (certificates, private) = make(bind)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (path, text, mode) in [(&certificate, &certificates, 0o644), (&key, &private, 0o600)] {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok((certificates, private))
}

/// A certificate, and after it that of who signed it: clients may trust the whole file.
fn make(bind: IpAddr) -> anyhow::Result<(String, String)> {
    let credentials = Credentials::generate()?;
    let bind = bind.to_string();
    let hosts = [bind.as_str(), "127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc"];
    let (certificate, key) = credentials.issue_server("kube-apiserver", &hosts)?;
    Ok((format!("{certificate}{}", credentials.ca_certificate()), key))
}
