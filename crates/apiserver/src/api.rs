//! The API as a whole: made once, cloned cheaply, asked through services.

use crate::admission_plugins::AdmissionPlugin;
use crate::aggregator;
use crate::audit::AuditConfig;
use crate::authentication::Authentication;
use crate::authorization::{Attributes, AuthorizationMode, On, ResourceAttributes};
use crate::bootstrap::{self, BootstrapObject};
use crate::credentials::{Credentials, CredentialsError};
use crate::dial::Dial;
use crate::faults::Faults;
use crate::flow::{api_services, crd_lifecycle};
use crate::kinds::service_range::ServiceClusterIpRange;
use crate::metrics;
use crate::request::Identity;
use crate::service::ApiService;
use crate::state::{ApiState, Settings};
use futures::FutureExt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_clock::Clock;
use windlass_store::{OpenError, Options, Store};

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
    /// How users are authenticated, beside client certificates and the administrator's token.
    pub authentication: Authentication,
    /// Who decides what somebody may do, in this order. Members of `system:masters` may do everything. With
    /// [`AuthorizationMode::AlwaysAllow`] nobody is anonymous.
    pub authorization_modes: Vec<AuthorizationMode>,
    /// The admission plug-ins that are left out.
    pub disabled_admission_plugins: Vec<AdmissionPlugin>,
    /// What is audited, and where it is written; nothing without.
    pub audit: Option<AuditConfig>,
    /// The range that cluster IPs of Services are from. That of a `data_dir` must stay the same.
    pub service_cluster_ip_range: ServiceClusterIpRange,
    /// Whether containers may be privileged, as `--allow-privileged` says; a stock server without the flag rejects them.
    pub allow_privileged: bool,
}

impl Default for Config {
    /// The machine's own time, as much history as Kubernetes keeps, all of it in memory, RBAC, and containers as privileged as
    /// clusters of kubeadm allow.
    fn default() -> Self {
        Self {
            clock: Clock::real(),
            store: Options::default(),
            credentials: None,
            data_dir: None,
            authentication: Authentication::default(),
            authorization_modes: vec![AuthorizationMode::Node, AuthorizationMode::Rbac],
            disabled_admission_plugins: Vec::new(),
            audit: None,
            service_cluster_ip_range: ServiceClusterIpRange::default(),
            allow_privileged: true,
        }
    }
}

impl Config {
    fn into_settings(self) -> Settings {
        let mut authentication = self.authentication;
        // Or whoever reaches the port could do everything. The stock server does the same.
        let allows_all = |mode: &AuthorizationMode| matches!(mode, AuthorizationMode::AlwaysAllow);
        authentication.anonymous &= !self.authorization_modes.iter().any(allows_all);
        Settings {
            credentials: self.credentials,
            authentication,
            authorization_modes: self.authorization_modes,
            disabled_admission_plugins: self.disabled_admission_plugins,
            audit: self.audit,
            service_cluster_ip_range: self.service_cluster_ip_range,
            allow_privileged: self.allow_privileged,
        }
    }
}

/// What somebody may want to do to a resource. What is not said is empty.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the fields are those of a SubjectAccessReview")]
pub struct ResourceAccess<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

/// An embedded Kubernetes API. Clones are the same API.
#[derive(Clone)]
pub struct Api(pub(crate) Arc<ApiState>);

impl Api {
    /// A new API in memory, with nothing in it but what every cluster has from the start. A `data_dir` is for
    /// [`Api::open`].
    pub fn new(config: Config) -> Self {
        let clock = config.clock.clone();
        let store = Store::new(config.store.clone(), clock.clone());
        let inner = ApiState::new(clock, store, config.into_settings());
        let made = bootstrap::make(&inner).now_or_never();
        debug_assert!(
            matches!(made, Some(Ok(()))),
            "an empty store in memory takes its first objects at once"
        );
        Self(Arc::new(inner))
    }

    /// Stores objects that the cluster around it has from the start; those that are there stay as they are. In memory it is done
    /// at once.
    ///
    /// # Errors
    /// When they cannot be written to the disk.
    pub async fn bootstrap(&self, objects: &[BootstrapObject]) -> io::Result<()> {
        bootstrap::make_others(&self.0, objects).await.map_err(io::Error::other)
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
            let (clock, options) = (config.clock.clone(), config.store.clone());
            tokio::task::spawn_blocking(move || Store::open(&directory, options, clock))
        };
        let store = opening.await.map_err(|error| failed(io::Error::other(error)))??;
        let inner = ApiState::new(config.clock.clone(), store, config.into_settings());
        inner.keep_credentials_in(data_dir.join(CREDENTIALS));
        crd_lifecycle::resume(&inner).await;
        bootstrap::make(&inner).await.map_err(|error| failed(io::Error::other(error)))?;
        api_services::resume(&inner).await;
        let inner = Arc::new(inner);
        aggregator::follow(&inner);
        Ok(Self(inner))
    }

    /// The API as `identity` sees it: a service for requests of any body, such as a `kube::Client` is made of.
    pub fn service(&self, identity: Identity) -> ApiService {
        ApiService::new(self.0.clone(), identity, self.0.stopped.clone())
    }

    /// Whether the authorizers allow something to somebody, as a SubjectAccessReview would say.
    pub async fn allows(&self, identity: &Identity, access: &ResourceAccess<'_>) -> bool {
        let asked = Attributes {
            identity,
            verb: access.verb,
            on: On::Resource(ResourceAttributes {
                group: access.group,
                version: "*",
                resource: access.resource,
                subresource: access.subresource,
                namespace: access.namespace,
                name: access.name,
                ..ResourceAttributes::default()
            }),
        };
        self.0.authorizer.allows(&asked).await
    }

    /// What in the expressions of a ValidatingAdmissionPolicy does not fit the types that the policy is about.
    pub fn check_policy_types(&self, policy: &serde_json::Value) -> Vec<crate::ExpressionWarning> {
        crate::admission_policies::check_types(&self.0.registry.served(), policy)
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

    /// A token of a ServiceAccount for a Secret: it never expires, and holds as long as both are there and it is in the Secret.
    ///
    /// # Errors
    /// When the key that signs cannot be used, or the machine gives no random numbers.
    pub fn issue_secret_token(
        &self,
        namespace: &str,
        account: &str,
        account_uid: &str,
        secret: &str,
    ) -> io::Result<String> {
        let token = self.0.accounts()?.issue_for_secret(namespace, account, account_uid, secret);
        token.ok_or_else(|| io::Error::other("this machine gives no random numbers"))
    }

    /// Connects to addresses of another network with this dialer from now on: those of pods, for requests that are proxied to
    /// them.
    pub fn dial_with(&self, dialer: Arc<dyn Dial>) {
        self.0.dialer.dial_with(dialer);
    }

    /// Serves `metrics.k8s.io` from now on, for `kubectl top`: each request asks the kubelets of the nodes that it is
    /// about, and leaves out those that do not answer. Simulated nodes and their pods use zero. Between requests nothing is
    /// collected.
    pub fn serve_metrics(&self) {
        self.0.registry.add(metrics::resources());
    }

    /// Ends all watches, as a server that goes down does. Requests are answered as before.
    pub fn end_watches(&self) {
        self.0.stopped.cancel();
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("revision", &self.0.store.revision()).finish_non_exhaustive()
    }
}
