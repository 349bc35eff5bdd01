//! `kube-apiserver`: the embedded API, told by the flags of the stock server, with its objects where its `etcd` says.

use super::etcd;
use super::flags::{self, Flag, Flags, Takes};
use super::serving_certificate;
use crate::audit_options::{AuditOptions, MAX_SIZE};
use crate::limits;
use crate::server_config;
use crate::signals::{INTERRUPTED, Signals};
use anyhow::{Context, bail};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use windlass_apiserver::store::Options as StoreOptions;
use windlass_apiserver::{
    AdmissionPlugin, Api, AuditConfig, Authentication, AuthorizationMode, Config, InvalidPlugin,
    JwtAuthenticator, KUBERNETES_VERSION, OidcFlags, RequestHeader, ServiceAccountIssuer,
    ServiceClusterIpRange, StaticTokens, TlsIdentity, WebhookAuthorizer,
};
use windlass_cluster::GarbageCollection;

/// What runs beside the API: nothing, or with `gc` the garbage collector and the namespace controller.
const CONTROLLERS: &str = "WINDLASS_ENVTEST";

/// How long the answers of an authorization webhook are remembered.
const AUTHORIZED_TTL: Duration = Duration::from_secs(300);
const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

const FLAGS: &[Flag] = &[
    value("advertise-address", "Accepted; the server is reached where it listens."),
    switch("allow-privileged", "Whether containers may be privileged [default: false]."),
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
    value("authentication-config", "An AuthenticationConfiguration: which token issuers are trusted."),
    value("authorization-config", "An AuthorizationConfiguration: which authorizers are asked."),
    value(
        "authorization-mode",
        "Which authorizers are asked: Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny [default: AlwaysAllow].",
    ),
    value(
        "authorization-webhook-cache-authorized-ttl",
        "How long a webhook's yes is remembered [default: 5m0s].",
    ),
    value(
        "authorization-webhook-cache-unauthorized-ttl",
        "How long a webhook's no is remembered [default: 30s].",
    ),
    value("authorization-webhook-config-file", "A kubeconfig that says where the authorization webhook is."),
    value(
        "authorization-webhook-version",
        "The version of the SubjectAccessReviews that it is sent [default: v1beta1].",
    ),
    value("bind-address", "The address to listen on [default: 127.0.0.1]."),
    value("cert-dir", "A folder with apiserver.crt and apiserver.key, made if they are missing."),
    value("client-ca-file", "Who signs the certificates of clients."),
    value("disable-admission-plugins", "Admission plug-ins that are left out."),
    value("enable-admission-plugins", "Admission plug-ins that are not left out."),
    switch("enable-bootstrap-token-auth", "Whether bootstrap tokens authenticate."),
    value("etcd-servers", "The etcd of the same folder."),
    value(
        "oidc-ca-file",
        "Who signs the certificate of the issuer of tokens; those of this machine, without.",
    ),
    value("oidc-client-id", "For whom its tokens are."),
    value("oidc-groups-claim", "The claim that names groups."),
    value("oidc-groups-prefix", "What is put before their names."),
    value("oidc-issuer-url", "A trusted token issuer."),
    value("oidc-required-claim", "A claim that its tokens have to have, as name=value."),
    value("oidc-signing-algs", "What they may be signed with [default: RS256]."),
    value("oidc-username-claim", "The claim that names the user [default: sub]."),
    value("oidc-username-prefix", "What is put before the name [default: the issuer's URL and #]."),
    value("proxy-client-cert-file", "The certificate that extension API servers are shown; none, without."),
    value("proxy-client-key-file", "Its key."),
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
        authorization_modes: authorization_modes(flags)?,
        disabled_admission_plugins: disabled_admission_plugins(flags)?,
        audit: audit(flags)?,
        service_cluster_ip_range,
        allow_privileged: flags.parsed("allow-privileged")?.unwrap_or(false),
        ..Config::default()
    })
}

fn authorization_modes(flags: &Flags) -> anyhow::Result<Vec<AuthorizationMode>> {
    let modes = flags.list("authorization-mode");
    let webhook = flags.get("authorization-webhook-config-file");
    if let Some(file) = flags.get("authorization-config") {
        if !modes.is_empty() || webhook.is_some() {
            bail!(
                "--authorization-config can not be specified when --authorization-mode or \
                 --authorization-webhook-* flags are defined"
            );
        }
        return server_config::authorization(Path::new(file));
    }
    if webhook.is_some() && !modes.contains(&"Webhook") {
        bail!("cannot specify --authorization-webhook-config-file without mode Webhook");
    }
    let modes = if modes.is_empty() { vec!["AlwaysAllow"] } else { modes };
    let parse = |mode: &str| -> anyhow::Result<AuthorizationMode> {
        if mode == "Webhook" {
            let file =
                webhook.context("authorization-mode Webhook's authorization config file not passed")?;
            let version = flags.get("authorization-webhook-version").unwrap_or("v1beta1");
            let authorized = flags.duration("authorization-webhook-cache-authorized-ttl", AUTHORIZED_TTL)?;
            let unauthorized =
                flags.duration("authorization-webhook-cache-unauthorized-ttl", UNAUTHORIZED_TTL)?;
            let webhook = WebhookAuthorizer::from_flags(Path::new(file), version, authorized, unauthorized)?;
            return Ok(AuthorizationMode::Webhook(webhook));
        }
        mode.parse().map_err(|error| anyhow::anyhow!("--authorization-mode={mode}: {error}"))
    };
    modes.into_iter().map(parse).collect()
}

/// The issuer that the flags `--oidc-…` describe.
fn oidc(flags: &Flags) -> anyhow::Result<Option<JwtAuthenticator>> {
    let text = |name: &str| flags.get(name).unwrap_or_default().to_owned();
    let mut required_claims = Vec::new();
    for claim in flags.list("oidc-required-claim") {
        let (name, value) = claim
            .split_once('=')
            .with_context(|| format!("--oidc-required-claim={claim}: it has no value"))?;
        required_claims.push((name.to_owned(), value.to_owned()));
    }
    let oidc = OidcFlags {
        issuer_url: text("oidc-issuer-url"),
        client_id: text("oidc-client-id"),
        ca: flags.get("oidc-ca-file").map(read).transpose()?,
        username_claim: text("oidc-username-claim"),
        username_prefix: text("oidc-username-prefix"),
        groups_claim: text("oidc-groups-claim"),
        groups_prefix: text("oidc-groups-prefix"),
        signing_algs: flags.list("oidc-signing-algs").into_iter().map(str::to_owned).collect(),
        required_claims,
    };
    Ok(oidc.authenticator()?)
}

fn authentication(flags: &Flags) -> anyhow::Result<Authentication> {
    let tokens = match flags.get("token-auth-file") {
        None => StaticTokens::default(),
        Some(file) => read(file)?.parse().with_context(|| format!("cannot use {file}"))?,
    };
    let owned = |name: &str| flags.list(name).into_iter().map(str::to_owned).collect();
    let keys: anyhow::Result<Vec<String>> =
        flags.list("service-account-key-file").into_iter().map(read).collect();
    let issuers: Vec<String> = owned("service-account-issuer");
    let anonymous = flags.parsed("anonymous-auth")?;
    let mut authentication = Authentication {
        anonymous: anonymous.unwrap_or(true),
        jwt: oidc(flags)?.into_iter().collect(),
        bootstrap_tokens: flags.parsed("enable-bootstrap-token-auth")?.unwrap_or(false),
        tokens,
        service_accounts: ServiceAccountIssuer {
            issuers,
            audiences: owned("api-audiences"),
            signing_key: flags.get("service-account-signing-key-file").map(read).transpose()?,
            keys: keys?,
        },
        ..Authentication::default()
    };
    if let Some(file) = flags.get("authentication-config") {
        if !authentication.jwt.is_empty() {
            bail!("authentication-config file and oidc-* flags are mutually exclusive");
        }
        if server_config::authentication(Path::new(file), &mut authentication)? && anonymous.is_some() {
            bail!(
                "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"
            );
        }
    }
    Ok(authentication)
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
    let proxy_client = match (flags.get("proxy-client-cert-file"), flags.get("proxy-client-key-file")) {
        (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
        (None, None) => None,
        _ => bail!("--proxy-client-cert-file and --proxy-client-key-file go together"),
    };
    Ok(TlsIdentity { certificates, key, client_ca, request_header: request_header(flags)?, proxy_client })
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
