//! A test body written once, run on every environment there is: the reference, and the embedded API in its forms.
//!
//! A suite is a test binary of its own (`harness = false`), so that one control plane serves all its tests and ends with
//! them. Each test appears once per environment, as `NAME on ENVIRONMENT`.

mod environment;

pub use environment::{Environment, KUBECONFIG_VARIABLE, REQUIRE_VARIABLE, SKIP_VARIABLE, Target};

use futures::FutureExt;
use futures::future::BoxFuture;
use libtest_mimic::{Arguments, Conclusion, Failed, Trial};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;

/// How long one test may take on one environment, unless [`Suite::limit`] says otherwise.
const LIMIT: Duration = Duration::from_secs(120);

type Body = Arc<dyn Fn(Target) -> BoxFuture<'static, anyhow::Result<()>> + Send + Sync>;

/// Tests and the environments to run them on.
pub struct Suite {
    environments: Vec<Environment>,
    tests: Vec<(String, Body)>,
    limit: Duration,
}

impl Suite {
    /// A suite that runs on these environments.
    pub fn on(environments: impl IntoIterator<Item = Environment>) -> Self {
        Self { environments: environments.into_iter().collect(), tests: Vec::new(), limit: LIMIT }
    }

    /// How long one test may take on one environment.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Adds a test. Its body gets a fresh [`Target`] on each environment.
    #[must_use]
    pub fn test<F, Fut>(mut self, name: &str, body: F) -> Self
    where
        F: Fn(Target) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.tests.push((name.to_owned(), Arc::new(move |target| body(target).boxed())));
        self
    }

    /// Runs what the command line asks for, as `cargo test` would, and ends every environment, also on Ctrl-C.
    pub fn run(self) -> ExitCode {
        let arguments = Arguments::from_args();
        end_on_interrupt(&self.environments);
        let mut trials = Vec::new();
        for (name, body) in &self.tests {
            for environment in &self.environments {
                trials.push(trial(name, body.clone(), environment.clone(), self.limit));
            }
        }
        let conclusion: Conclusion = libtest_mimic::run(&arguments, trials);
        self.environments.iter().for_each(Environment::close);
        if !arguments.list {
            for environment in &self.environments {
                if let Err(why) = environment.available() {
                    println!("skipped {} tests on {}: {why}", self.tests.len(), environment.name());
                }
            }
        }
        if conclusion.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

fn trial(name: &str, body: Body, environment: Environment, limit: Duration) -> Trial {
    let title = format!("{name} on {}", environment.name());
    let skipped = environment.available().is_err() && !environment.required();
    let run = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let outcome = runtime.block_on(async {
            let target = environment.open().await?;
            Clock::real().timeout(limit, body(target)).await?
        });
        // A task that a failed test left behind must not hold up the others.
        runtime.shutdown_timeout(Duration::from_secs(1));
        outcome.map_err(|error| Failed::from(format!("{error:?}")))
    };
    Trial::test(title, run).with_ignored_flag(skipped)
}

/// Ctrl-C and SIGTERM end the environments before they end us. Where signals cannot be had, the kernel still ends the
/// processes (see [`crate::process`]), and the next run removes their files.
fn end_on_interrupt(environments: &[Environment]) {
    let environments = environments.to_vec();
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    std::thread::spawn(move || {
        let signal = runtime.block_on(interrupt());
        if signal.is_ok() {
            environments.iter().for_each(Environment::close);
            std::process::exit(130);
        }
    });
}

async fn interrupt() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
