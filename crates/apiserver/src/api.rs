//! The API as a whole: made once, cloned cheaply, asked through services.

use crate::accounts::Accounts;
use crate::bootstrap;
use crate::connect::{Kubelets, Reach};
use crate::crd::{self, lifecycle};
use crate::credentials::{Credentials, CredentialsError};
use crate::faults::Faults;
use crate::flow::authenticate::Identity;
use crate::kinds::services::Taken;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::service::ApiService;
use crate::store::{OpenError, Options, Store};
use futures::FutureExt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// Where in its directory an API keeps its objects.
const STORE: &str = "store";

/// And who it and its administrator are.
const CREDENTIALS: &str = "credentials";

/// What an API is made from.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it stamps objects with, and waits by.
    pub clock: Clock,
    /// How much history it keeps.
    pub store: Options,
    /// Who the server and its administrator are; without them, they are made when first needed, and kept in `data_dir`.
    pub credentials: Option<Credentials>,
    /// The directory in which [`Api::open`] keeps everything, made if it is missing; without one it is all in memory.
    pub data_dir: Option<PathBuf>,
}

impl Default for Config {
    /// The machine's own time, as much history as Kubernetes keeps, and all of it in memory.
    fn default() -> Self {
        Self { clock: Clock::real(), store: Options::default(), credentials: None, data_dir: None }
    }
}

/// An embedded Kubernetes API. Clones are the same API.
#[derive(Clone)]
pub struct Api(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) clock: Clock,
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    pub(crate) faults: Faults,
    /// The resource of the definitions themselves.
    pub(crate) definitions: Arc<Resource>,
    /// Held while a definition gets its names or goes.
    pub(crate) settling: Mutex<()>,
    pub(crate) own_identity: Identity,
    credentials: OnceLock<Credentials>,
    /// Where credentials are kept, if anywhere; held while they are looked for.
    kept_in: parking_lot::Mutex<Option<PathBuf>>,
    accounts: OnceLock<Accounts>,
    /// Which addresses and ports Services have.
    pub(crate) taken: Taken,
    /// How it reaches the nodes.
    pub(crate) kubelets: Kubelets,
    /// Cancelled when the API stops: watches end.
    pub(crate) stopped: CancellationToken,
}

impl Api {
    /// A new API in memory, with nothing in it but what every cluster has from the start. A `data_dir` is for
    /// [`Api::open`].
    pub fn new(config: Config) -> Self {
        let store = Store::new(config.store, config.clock.clone());
        let inner = Inner::new(config.clock, store, config.credentials);
        let made = bootstrap::make(&inner).now_or_never();
        debug_assert!(
            matches!(made, Some(Ok(()))),
            "an empty store in memory takes its first objects at once"
        );
        Self(Arc::new(inner))
    }

    /// Removes what is stored in a `data_dir`, so that [`Api::open`] begins anew there; its credentials stay. No API may be
    /// open on it.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn forget_stored(data_dir: &Path) -> io::Result<()> {
        let (store, gone) = (data_dir.join(STORE), data_dir.join(format!("{STORE}.gone")));
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        // In one step, so that no half of it is ever opened. What an earlier try left goes first.
        match std::fs::remove_dir_all(&gone) {
            Err(error) if !absent(&error) => return Err(error),
            _ => {}
        }
        match std::fs::rename(&store, &gone) {
            Err(error) if absent(&error) => return Ok(()),
            renamed => renamed?,
        }
        std::fs::remove_dir_all(&gone)
    }

    /// The API in `data_dir`, with everything that was ever acknowledged there, or a new one; in memory without a
    /// `data_dir`. Changes are durable before they are answered or seen. Watches and lists from before a restart are told
    /// that their version is too old.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong with the directory.
    pub async fn open(config: Config) -> Result<Self, OpenError> {
        let Some(data_dir) = config.data_dir.clone() else { return Ok(Self::new(config)) };
        let directory = data_dir.join(STORE);
        let failed = |error: io::Error| OpenError::Disk { file: data_dir.join(STORE), source: error };
        let opening = {
            let (clock, options) = (config.clock.clone(), config.store);
            tokio::task::spawn_blocking(move || Store::open(&directory, options, clock))
        };
        let store = opening.await.map_err(|error| failed(io::Error::other(error)))??;
        let inner = Inner::new(config.clock, store, config.credentials);
        *inner.kept_in.lock() = Some(data_dir.join(CREDENTIALS));
        lifecycle::resume(&inner).await;
        bootstrap::make(&inner).await.map_err(|error| failed(io::Error::other(error)))?;
        Ok(Self(Arc::new(inner)))
    }

    /// The API as `identity` sees it: a service for requests of any body, such as a `kube::Client` is made of.
    pub fn service(&self, identity: Identity) -> ApiService {
        ApiService::new(self.0.clone(), identity, self.0.stopped.clone())
    }

    /// What it stores everything in.
    pub fn store(&self) -> &Arc<Store> {
        &self.0.store
    }

    /// What goes wrong on purpose, and the record of writes.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// The time that it lives by.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Who the server and its administrator are; made now if the configuration had none.
    ///
    /// # Errors
    /// When those that are kept cannot be read, or new ones cannot be made.
    pub fn credentials(&self) -> Result<&Credentials, CredentialsError> {
        self.0.credentials()
    }

    /// Reaches addresses of another network this way from now on: those of pods, for requests that are passed on to them.
    pub fn reach_by(&self, way: Arc<dyn Reach>) {
        self.0.kubelets.reach_by(way);
    }

    /// Ends all watches, as a server that goes down does. Requests are answered as before.
    pub fn end_watches(&self) {
        self.0.stopped.cancel();
    }
}

impl Inner {
    pub(crate) fn credentials(&self) -> Result<&Credentials, CredentialsError> {
        if let Some(credentials) = self.credentials.get() {
            return Ok(credentials);
        }
        let folder = self.kept_in.lock();
        if let Some(credentials) = self.credentials.get() {
            return Ok(credentials);
        }
        let made = match &*folder {
            Some(folder) => Credentials::kept_in(folder)?,
            None => Credentials::generate()?,
        };
        Ok(self.credentials.get_or_init(|| made))
    }

    /// Makes and reads service accounts' tokens.
    pub(crate) fn accounts(&self) -> io::Result<&Accounts> {
        if let Some(accounts) = self.accounts.get() {
            return Ok(accounts);
        }
        let made = Accounts::new(self.credentials().map_err(io::Error::other)?)?;
        Ok(self.accounts.get_or_init(|| made))
    }

    fn new(clock: Clock, store: Arc<Store>, credentials: Option<Credentials>) -> Self {
        let registry = Registry::new();
        let definitions = registry
            .get(crd::GROUP, "v1", "customresourcedefinitions")
            .expect("the definitions' own resource is built in");
        Self {
            faults: Faults::new(store.clone()),
            store,
            clock,
            registry,
            definitions,
            settling: Mutex::new(()),
            own_identity: lifecycle::own_identity(),
            taken: Taken::default(),
            credentials: credentials.map(OnceLock::from).unwrap_or_default(),
            kept_in: parking_lot::Mutex::new(None),
            accounts: OnceLock::new(),
            kubelets: Kubelets::new(),
            stopped: CancellationToken::new(),
        }
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("revision", &self.0.store.revision()).finish_non_exhaustive()
    }
}
