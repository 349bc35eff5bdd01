//! `windlass cluster up`: a cluster on this machine, until Ctrl-C.

use super::control;
use super::data_dir::DataDir;
use super::detach;
use super::kubeconfig::Kubeconfig;
use super::nodes::Nodes;
use super::process_nodes;
use super::record::Record;
use crate::audit_options::AuditOptions;
use crate::limits;
use crate::server_config;
use crate::signals::{INTERRUPTED, Signals, end_with_parent};
use anyhow::{Context, bail};
use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::net::TcpListener;
use windlass_apiserver::store::Options as StoreOptions;
use windlass_apiserver::{Api, Authentication, AuthorizationMode, Config, Credentials, Serving};
use windlass_clock::{Clock, Moment, Timestamp};
use windlass_cluster::{Cluster, Settings, Time};

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass cluster up
      a new cluster on a free port; Ctrl-C stops it and removes everything
  windlass cluster up --detach
      the same in the background; `windlass cluster down` stops it
  windlass cluster up --data-dir ./cluster
      a cluster that is kept: started again, it has all its objects
  windlass cluster up --port 6443 --kubeconfig ~/.kube/config
      adds the context `windlass` to your kubeconfig while it runs
  windlass cluster up --nodes process=1
      runs pods as processes of this machine: memcached, busybox, redis and so on

Set WINDLASS_LOG=debug to see more.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Start the API server only: no controllers, no scheduler, no nodes
    #[arg(long)]
    api_only: bool,

    /// The nodes: simulated=3 is three nodes that report pods as running without running anything, process=1 is one that runs pods
    /// as processes of this machine; comma-separated
    #[arg(long, value_name = "KIND=COUNT", default_value = "simulated=1", conflicts_with = "api_only")]
    nodes: Nodes,

    /// Run in the background once it is ready; `windlass cluster down` stops it
    #[arg(long)]
    detach: bool,

    /// This is the process in the background
    #[arg(long, hide = true)]
    detached: bool,

    /// End when the process that started this one does
    #[arg(long, hide = true)]
    with_parent: bool,

    /// For tests: a clock of its own that starts at this time (RFC 3339, or `now`) and that `windlass cluster advance` moves forward
    #[arg(long, value_name = "TIME", value_parser = start_of_time)]
    clock: Option<Timestamp>,

    /// The port on 127.0.0.1 to serve on [default: a free one]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Which authorizers are asked, in this order: Node, RBAC, AlwaysAllow or AlwaysDeny, separated by commas. Members of the
    /// group system:masters, such as the user of the kubeconfig, may do everything
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "Node,RBAC")]
    authorization_mode: Vec<AuthorizationMode>,

    /// An AuthorizationConfiguration that says which authorizers are asked, webhooks among them, instead of
    /// --authorization-mode
    #[arg(long, value_name = "FILE")]
    authorization_config: Option<PathBuf>,

    /// An AuthenticationConfiguration that says which token issuers are trusted, and where one may be anonymous
    #[arg(long, value_name = "FILE")]
    authentication_config: Option<PathBuf>,

    #[command(flatten)]
    audit: AuditOptions,

    /// The folder to keep the cluster's data in, across restarts [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Start even if the end of what was stored in the data folder is missing. What is missing is lost
    #[arg(long, requires = "data_dir")]
    accept_data_loss: bool,

    /// The kubeconfig to add the context `windlass` to; other contexts are left alone [default: a file of its own, in the data
    /// folder]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, begun: Moment) -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if options.detach {
        return detach::start(&arguments);
    }
    if options.detached {
        detach::leave_terminal();
    }
    if options.with_parent {
        end_with_parent();
    }
    limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads that serve")?;
    runtime.block_on(up(options, arguments, begun))
}

async fn up(options: &Options, arguments: Vec<String>, begun: Moment) -> anyhow::Result<ExitCode> {
    // First of all, so that whatever is made from here on is also removed.
    let mut signals = Signals::listen()?;
    let listener = listen(options.port).await?;
    let mut home = match &options.data_dir {
        Some(folder) => DataDir::at(folder)?,
        None => DataDir::temporary()?,
    };
    let path = options.kubeconfig.clone().unwrap_or_else(|| home.folder().join("kubeconfig"));
    let mut kubeconfig = Kubeconfig::open(&path)?;

    let authorization_modes = match &options.authorization_config {
        Some(file) => server_config::authorization(file)?,
        None => options.authorization_mode.clone(),
    };
    let mut authentication = Authentication::default();
    if let Some(file) = &options.authentication_config {
        server_config::authentication(file, &mut authentication)?;
    }
    let data_dir = options.data_dir.is_some().then(|| home.folder().to_owned());
    let time = options.clock.map_or_else(Time::real, Time::driven);
    let api = Api::open(Config {
        data_dir,
        clock: time.clock().clone(),
        authentication,
        authorization_modes,
        audit: options.audit.config()?,
        store: StoreOptions { accept_data_loss: options.accept_data_loss, ..StoreOptions::default() },
        ..Config::default()
    })
    .await?;
    let credentials = api.credentials()?.clone();
    let serving = api.serve_tls(listener).context("cannot serve")?;
    let server = format!("https://{}", serving.address());
    kubeconfig.point_at(&server, &credentials, home.folder())?;
    let cluster = (!options.api_only).then(|| start_cluster(options, &api, &credentials));
    let mut processes = Vec::new();
    if let Some(cluster) = &cluster {
        let settled = tokio::select! {
            settled = time.run_clock_while(cluster.settled(&api)) => settled.context("the cluster does not settle").map(|()| true),
            () = signals.next() => Ok(false),
        };
        if !matches!(settled, Ok(true)) {
            // Nothing was promised yet, so nothing is finished, and nothing stays.
            kubeconfig.forget(&server)?;
        }
        if !settled? {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        let joined =
            process_nodes::join(options.nodes.process, &api, &credentials, home.folder(), serving.address());
        match time.run_clock_while(joined).await {
            Ok(joined) => processes = joined,
            Err(error) => {
                kubeconfig.forget(&server)?;
                return Err(error);
            }
        }
    }
    let record = Record {
        pid: nix::unistd::getpid().as_raw(),
        server: server.clone(),
        kubeconfig: kubeconfig.path().to_owned(),
        since: Clock::real().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        detached: options.detached,
        kept: options.data_dir.is_some(),
        arguments: arguments.into_iter().filter(|argument| argument != "--detached").collect(),
    };
    control::listen(home.folder(), time.clone(), credentials.clone())?;
    record.write(home.folder())?;
    if options.data_dir.is_some() {
        home.keep();
    }

    let took = (Clock::real().moment() - begun).as_millis();
    // Whoever started us may have stopped listening; the cluster runs all the same.
    let _ = writeln!(std::io::stdout(), "ready in {took} ms at {server}; {}", kubeconfig.usage());
    if options.detached {
        detach::log_to(home.folder())?;
    }
    time.run_clock_while(signals.next()).await;
    Record::remove(home.folder());
    time.run_clock_while(process_nodes::end(processes, options.data_dir.is_some())).await;
    let code = time.run_clock_while(stop(cluster, serving, &api, &mut signals)).await;
    // A cluster that can come back keeps its own kubeconfig, beside its data. The user's file is left as it was.
    if options.data_dir.is_none() || !kubeconfig.is_in(home.folder()) {
        kubeconfig.forget(&server)?;
    }
    // Everything is on disk when the API is gone; only then may another have the folder.
    drop(api);
    drop(home);
    Ok(code)
}

/// When a cluster's own time begins.
fn start_of_time(text: &str) -> anyhow::Result<Timestamp> {
    match text {
        "now" => Ok(Clock::real().now()),
        text => text.parse().with_context(|| format!("{text:?} is not a time such as 2026-01-01T00:00:00Z")),
    }
}

/// The controllers and nodes, at work.
fn start_cluster(options: &Options, api: &Api, credentials: &Credentials) -> Cluster {
    let settings = Settings {
        root_ca: Some(credentials.ca_certificate().to_owned()),
        simulated_nodes: options.nodes.simulated,
        ..Settings::default()
    };
    Cluster::start(api, settings)
}

/// Lets controllers and requests finish, but does not wait when told a second time.
async fn stop(cluster: Option<Cluster>, serving: Serving, api: &Api, signals: &mut Signals) -> ExitCode {
    let ended = async {
        if let Some(cluster) = &cluster
            && let Err(error) = cluster.stop().await
        {
            tracing::warn!("the controllers did not end well: {error}");
        }
        api.end_watches();
        serving.stop().await;
    };
    tokio::select! {
        () = ended => ExitCode::SUCCESS,
        () = signals.next() => ExitCode::from(INTERRUPTED),
    }
}

async fn listen(port: Option<u16>) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await;
    let Some(port) = port else { return listener.context("cannot listen on 127.0.0.1") };
    match listener {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            bail!("port {port} of 127.0.0.1 is in use; choose another with --port, or omit it for a free one")
        }
        listener => listener.with_context(|| format!("cannot listen on port {port} of 127.0.0.1")),
    }
}
