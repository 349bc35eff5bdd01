//! `kube-apiserver`: the embedded API, told by the flags of the stock server, with its objects where its `etcd` says.

use super::etcd;
use super::flags::{self, Flag, Flags, Takes};
use super::serving_certificate;
use crate::audit_options::{AuditOptions, MAX_SIZE};
use crate::limits;
use crate::signals::{INTERRUPTED, Signals};
use anyhow::{Context, bail};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::ExitCode;
use tokio::net::TcpListener;
use windlass_apiserver::store::Options as StoreOptions;
use windlass_apiserver::{
    AdmissionPlugin, Api, AuditConfig, Authentication, AuthorizationMode, Config, InvalidPlugin,
    KUBERNETES_VERSION, RequestHeader, ServiceAccountIssuer, ServiceClusterIpRange, StaticTokens,
    TlsIdentity,
};
use windlass_cluster::GarbageCollection;

/// What runs beside the API: nothing, or with `gc` the garbage collector and the namespace controller.
const CONTROLLERS: &str = "WINDLASS_ENVTEST";

const FLAGS: &[Flag] = &[
    value("advertise-address", "Accepted; the server is reached where it listens."),
    switch("allow-privileged", "Accepted; privileged containers are always allowed."),
    switch("anonymous-auth", "Whether who shows nothing is system:anonymous [default: true]."),
    value("api-audiences", "For whom tokens are; the issuers by default."),
    value(
        "audit-log-maxage",
        "The number of days that old files of the audit log are kept [default: for ever].",
    ),
    value("audit-log-maxbackup", "The number of old files of the audit log that are kept [default: all]."),
    value(
        "audit-log-maxsize",
        "The size in megabytes from which on the audit log begins a new file [default: 100].",
    ),
    value("audit-log-path", "The file of the audit log, or - for standard output."),
    value("audit-policy-file", "What is audited."),
    value(
        "authorization-mode",
        "Which authorizers are asked: Node, RBAC, AlwaysAllow, AlwaysDeny [default: AlwaysAllow].",
    ),
    value("bind-address", "The address to listen on [default: 127.0.0.1]."),
    value("cert-dir", "A folder with apiserver.crt and apiserver.key, made if they are missing."),
    value("client-ca-file", "Who signs the certificates of clients."),
    value("disable-admission-plugins", "Admission plug-ins that are left out."),
    value("enable-admission-plugins", "Admission plug-ins that are not left out."),
    switch("enable-bootstrap-token-auth", "Whether bootstrap tokens authenticate."),
    value("etcd-servers", "The etcd of the same folder."),
    value("requestheader-allowed-names", "The common names of front proxies; any, without."),
    value("requestheader-client-ca-file", "Who signs the certificates of front proxies."),
    value("requestheader-extra-headers-prefix", "How headers begin that tell more of a user."),
    value("requestheader-group-headers", "The headers of groups."),
    value("requestheader-uid-headers", "The headers of a user's UID."),
    value("requestheader-username-headers", "The headers of a user's name."),
    value("secure-port", "The port to listen on [default: 6443]."),
    value("service-account-issuer", "Who issues the tokens of service accounts."),
    value("service-account-key-file", "Keys that their tokens are verified with."),
    value("service-account-signing-key-file", "The key that signs them."),
    value("service-cluster-ip-range", "The range of the cluster IPs of Services [default: 10.96.0.0/16]."),
    value("tls-cert-file", "The server's certificate."),
    value("tls-private-key-file", "The key of the server's certificate."),
    value("token-auth-file", "Tokens, and who bears them."),
];

const fn value(name: &'static str, help: &'static str) -> Flag {
    Flag { name, takes: Takes::Value, help }
}

const fn switch(name: &'static str, help: &'static str) -> Flag {
    Flag { name, takes: Takes::Bool, help }
}

pub(super) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let flags = Flags::parse(arguments, FLAGS)?;
    if flags.help {
        let what = "Serves the embedded API of windlass in place of kube-apiserver.";
        print!("{}", flags::help(what, FLAGS));
        return Ok(ExitCode::SUCCESS);
    }
    if flags.version {
        println!("Kubernetes {KUBERNETES_VERSION}");
        return Ok(ExitCode::SUCCESS);
    }
    flags.warn_of_ignored();
    limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads that serve")?;
    runtime.block_on(serve(&flags))
}

async fn serve(flags: &Flags) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let config = config(flags)?;
    let bind: IpAddr = flags.parsed("bind-address")?.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let port: u16 = flags.parsed("secure-port")?.unwrap_or(6443);
    let identity = identity(flags, bind)?;
    let collects = match std::env::var(CONTROLLERS).as_deref() {
        Err(_) | Ok("" | "bare") => false,
        Ok("gc") => true,
        Ok(other) => bail!("{CONTROLLERS}={other}: it is gc, or nothing"),
    };
    let listener = TcpListener::bind((bind, port)).await;
    let listener = listener.with_context(|| format!("cannot listen on {bind}, port {port}"))?;
    let urls = flags.list("etcd-servers");
    let url = urls.first().context("--etcd-servers must name an etcd of `windlass envtest`")?;
    let location = etcd::locate(url).await?;
    let store = StoreOptions { fsync: location.fsync, ..StoreOptions::default() };
    let api = Api::open(Config { data_dir: Some(location.folder), store, ..config }).await?;
    let serving = api.serve_tls_as(listener, &identity).context("cannot serve")?;
    let collection = collects.then(|| GarbageCollection::start(&api));
    eprintln!("serving on https://{}", serving.address());
    signals.next().await;
    let ended = async {
        if let Some(collection) = collection {
            collection.stop().await;
        }
        api.end_watches();
        serving.stop().await;
    };
    Ok(tokio::select! {
        () = ended => ExitCode::SUCCESS,
        () = signals.next() => ExitCode::from(INTERRUPTED),
    })
}

fn config(flags: &Flags) -> anyhow::Result<Config> {
    let modes = flags.list("authorization-mode");
    let modes = if modes.is_empty() { vec!["AlwaysAllow"] } else { modes };
    let mut authorization_modes = Vec::new();
    for mode in modes {
        match mode.parse::<AuthorizationMode>() {
            Ok(mode) => authorization_modes.push(mode),
            Err(error) => bail!("--authorization-mode={mode}: {error}"),
        }
    }
    let range = flags.list("service-cluster-ip-range");
    let service_cluster_ip_range = match range.as_slice() {
        [] => ServiceClusterIpRange::default(),
        [range, others @ ..] => {
            for other in others {
                eprintln!(
                    "warning: --service-cluster-ip-range={other} has no effect here: one range is served"
                );
            }
            range.parse().map_err(|error| anyhow::anyhow!("--service-cluster-ip-range: {error}"))?
        }
    };
    Ok(Config {
        authentication: authentication(flags)?,
        authorization_modes,
        disabled_admission_plugins: disabled_admission_plugins(flags)?,
        audit: audit(flags)?,
        service_cluster_ip_range,
        ..Config::default()
    })
}

fn authentication(flags: &Flags) -> anyhow::Result<Authentication> {
    let tokens = match flags.get("token-auth-file") {
        None => StaticTokens::default(),
        Some(file) => read(file)?.parse().with_context(|| format!("cannot use {file}"))?,
    };
    let owned = |name: &str| flags.list(name).into_iter().map(str::to_owned).collect();
    let keys: anyhow::Result<Vec<String>> =
        flags.list("service-account-key-file").into_iter().map(read).collect();
    Ok(Authentication {
        anonymous: flags.parsed("anonymous-auth")?.unwrap_or(true),
        bootstrap_tokens: flags.parsed("enable-bootstrap-token-auth")?.unwrap_or(false),
        tokens,
        service_accounts: ServiceAccountIssuer {
            issuers: owned("service-account-issuer"),
            audiences: owned("api-audiences"),
            signing_key: flags.get("service-account-signing-key-file").map(read).transpose()?,
            keys: keys?,
        },
    })
}

/// Without a file to write to, the stock server audits nothing.
fn audit(flags: &Flags) -> anyhow::Result<Option<AuditConfig>> {
    let Some(path) = flags.get("audit-log-path") else { return Ok(None) };
    let options = AuditOptions {
        audit_policy_file: flags.get("audit-policy-file").map(Into::into),
        audit_log_path: path.into(),
        audit_log_maxsize: flags.parsed("audit-log-maxsize")?.unwrap_or(MAX_SIZE),
        audit_log_maxbackup: flags.parsed("audit-log-maxbackup")?.unwrap_or(0),
        audit_log_maxage: flags.parsed("audit-log-maxage")?.unwrap_or(0),
    };
    options.config()
}

fn disabled_admission_plugins(flags: &Flags) -> anyhow::Result<Vec<AdmissionPlugin>> {
    let named = |flag: &str| -> anyhow::Result<Vec<AdmissionPlugin>> {
        let mut plugins = Vec::new();
        for name in flags.list(flag) {
            match name.parse() {
                Ok(plugin) => plugins.push(plugin),
                Err(error @ InvalidPlugin::NotSwitched(_)) => eprintln!("warning: --{flag}: {error}"),
                Err(error) => bail!("--{flag}: {error}"),
            }
        }
        Ok(plugins)
    };
    let enabled = named("enable-admission-plugins")?;
    let mut disabled = named("disable-admission-plugins")?;
    if let Some(both) = disabled.iter().find(|plugin| enabled.contains(plugin)) {
        bail!("{both} is in both --enable-admission-plugins and --disable-admission-plugins");
    }
    // As in a stock server, which has all the others on.
    if !enabled.contains(&AdmissionPlugin::NodeRestriction) {
        disabled.push(AdmissionPlugin::NodeRestriction);
    }
    Ok(disabled)
}

/// The server's certificate and key: those that are named, those of the folder, or new ones, which then are in the folder.
fn identity(flags: &Flags, bind: IpAddr) -> anyhow::Result<TlsIdentity> {
    let client_ca = flags.get("client-ca-file").map(read).transpose()?;
    let (certificates, key) = match (flags.get("tls-cert-file"), flags.get("tls-private-key-file")) {
        (Some(certificate), Some(key)) => (read(certificate)?, read(key)?),
        (None, None) => serving_certificate::find_or_make(flags.get("cert-dir").map(Path::new), bind)?,
        _ => bail!("--tls-cert-file and --tls-private-key-file go together"),
    };
    Ok(TlsIdentity { certificates, key, client_ca, request_header: request_header(flags)? })
}

/// Which front proxies are believed, and in which headers they name users.
fn request_header(flags: &Flags) -> anyhow::Result<Option<RequestHeader>> {
    let Some(file) = flags.get("requestheader-client-ca-file") else { return Ok(None) };
    let list = |flag: &str| flags.list(flag).into_iter().map(str::to_owned).collect::<Vec<String>>();
    Ok(Some(RequestHeader {
        client_ca: read(file)?,
        allowed_names: list("requestheader-allowed-names"),
        username_headers: list("requestheader-username-headers"),
        uid_headers: list("requestheader-uid-headers"),
        group_headers: list("requestheader-group-headers"),
        extra_headers_prefixes: list("requestheader-extra-headers-prefix"),
    }))
}

fn read(file: &str) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {file}"))
}
