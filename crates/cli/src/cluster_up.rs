//! `windlass cluster up`: a cluster on this machine, until Ctrl-C.

use crate::home::Home;
use crate::kubeconfig::Kubeconfig;
use crate::limits;
use anyhow::{Context, bail};
use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_apiserver::{Api, Config, Serving};
use windlass_clock::{Clock, Moment};

/// What a process answers that was told to go at once.
const INTERRUPTED: u8 = 130;

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass cluster up --api-only
      a fresh API on a free port; it goes with Ctrl-C, and leaves nothing
  windlass cluster up --api-only --data-dir ./cluster
      the same cluster again, however it ended last time
  windlass cluster up --api-only --port 6443 --kubeconfig ~/.kube/config
      adds the context `windlass` to your own kubeconfig while it runs

Set WINDLASS_LOG=debug to see more.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only the API: no workload controllers, and no node that runs pods
    #[arg(long)]
    api_only: bool,

    /// The port on 127.0.0.1 to serve on; without it, a free one
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Where to keep the cluster, so that it is there again after a restart; without it, everything goes at the end
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// The kubeconfig to add the context `windlass` to; your other contexts stay as they are. Without it, a file of its
    /// own, in DIR if there is one
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, begun: Moment) -> anyhow::Result<ExitCode> {
    if !options.api_only {
        bail!("there are no workload controllers and no node yet; add --api-only to run the API alone");
    }
    limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads that serve")?;
    runtime.block_on(up(options, begun))
}

async fn up(options: &Options, begun: Moment) -> anyhow::Result<ExitCode> {
    // First of all, so that whatever is made from here on is also removed.
    let mut signals = Signals::listen()?;
    let listener = listen(options.port).await?;
    let mut home = match &options.data_dir {
        Some(folder) => Home::at(folder)?,
        None => Home::temporary()?,
    };
    let path = options.kubeconfig.clone().unwrap_or_else(|| home.folder().join("kubeconfig"));
    let mut kubeconfig = Kubeconfig::open(&path)?;

    let data_dir = options.data_dir.is_some().then(|| home.folder().to_owned());
    let api = Api::open(Config { data_dir, ..Config::default() }).await?;
    let credentials = api.credentials()?.clone();
    let serving = api.serve_tls(listener).context("cannot serve")?;
    let server = format!("https://{}", serving.address());
    kubeconfig.point_at(&server, &credentials)?;
    if options.data_dir.is_some() {
        home.keep();
    }

    let took = (Clock::real().moment() - begun).as_millis();
    // Whoever started us may have stopped listening; the cluster runs all the same.
    let _ = writeln!(std::io::stdout(), "ready in {took} ms at {server}; {}", kubeconfig.usage());
    signals.next().await;
    let code = stop(serving, &api, &mut signals).await;
    // A cluster that can come back keeps its context.
    if options.data_dir.is_none() {
        kubeconfig.forget(&server)?;
    }
    // Everything is on disk when the API is gone; only then may another have the folder.
    drop(api);
    drop(home);
    Ok(code)
}

/// Lets requests finish, but does not wait when told a second time.
async fn stop(serving: Serving, api: &Api, signals: &mut Signals) -> ExitCode {
    api.end_watches();
    tokio::select! {
        () = serving.stop() => ExitCode::SUCCESS,
        () = signals.next() => ExitCode::from(INTERRUPTED),
    }
}

async fn listen(port: Option<u16>) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await;
    let Some(port) = port else { return listener.context("cannot listen on 127.0.0.1") };
    match listener {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            bail!(
                "port {port} of 127.0.0.1 is taken; choose another with --port, or leave it out for a free one"
            )
        }
        listener => listener.with_context(|| format!("cannot listen on port {port} of 127.0.0.1")),
    }
}

/// The signals that end a process.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let on = |kind| signal(kind).context("cannot listen for Ctrl-C");
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
            _ = self.hang_up.recv() => (),
        }
    }
}
