//! What all requests to an API share: its store, registry, clock, credentials and allocations.

use crate::accounts::Accounts;
use crate::admission_plugins::{AdmissionPlugin, DisabledPlugins};
use crate::admission_policies::Policies;
use crate::admission_webhooks::Webhooks;
use crate::aggregation::{Aggregation, ProxyClient};
use crate::audit::{AuditConfig, Auditor};
use crate::authentication::{Authentication, StaticTokens};
use crate::authorization::{AuthorizationMode, Authorizer};
use crate::crd;
use crate::credentials::{Credentials, CredentialsError};
use crate::dial::Dialer;
use crate::faults::Faults;
use crate::flow_control::FlowControl;
use crate::kinds::service_range::ServiceClusterIpRange;
use crate::kinds::services::ServiceAllocations;
use crate::registry::Registry;
use crate::request::Identity;
use crate::resource::Resource;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_store::Store;

/// What a server is told when it starts.
pub(crate) struct Settings {
    pub(crate) credentials: Option<Credentials>,
    pub(crate) authentication: Authentication,
    pub(crate) authorization_modes: Vec<AuthorizationMode>,
    pub(crate) disabled_admission_plugins: Vec<AdmissionPlugin>,
    pub(crate) audit: Option<AuditConfig>,
    pub(crate) service_cluster_ip_range: ServiceClusterIpRange,
    pub(crate) allow_privileged: bool,
}

/// The state that an [`Api`](crate::Api) and its clones share.
pub(crate) struct ApiState {
    pub(crate) clock: Clock,
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    pub(crate) faults: Faults,
    /// The resource of the definitions themselves.
    pub(crate) definitions: Arc<Resource>,
    /// Held while a definition gets its names or goes.
    pub(crate) settling: Mutex<()>,
    pub(crate) own_identity: Identity,
    pub(crate) authorizer: Authorizer,
    pub(crate) flow_control: FlowControl,
    pub(crate) authentication: Authentication,
    pub(crate) disabled_admission_plugins: DisabledPlugins,
    /// Whether containers may be privileged.
    pub(crate) allow_privileged: bool,
    /// None if nothing is audited.
    pub(crate) auditor: Option<Arc<Auditor>>,
    credentials: OnceLock<Credentials>,
    /// The administrator's token, once there are credentials.
    administrator: OnceLock<StaticTokens>,
    /// Where credentials are kept, if anywhere; held while they are looked for.
    kept_in: parking_lot::Mutex<Option<PathBuf>>,
    accounts: OnceLock<Accounts>,
    /// Which addresses and ports Services have.
    pub(crate) service_allocations: ServiceAllocations,
    /// How it reaches the nodes.
    pub(crate) dialer: Arc<Dialer>,
    /// Those who are asked about what is written.
    pub(crate) webhooks: Webhooks,
    /// What expressions say about what is written.
    pub(crate) policies: Policies,
    /// Who serves what this server does not.
    pub(crate) aggregation: Aggregation,
    /// Cancelled when the API stops: watches end.
    pub(crate) stopped: CancellationToken,
}

impl ApiState {
    /// Keeps the credentials in this folder, and reads those that are there.
    pub(crate) fn keep_credentials_in(&self, folder: PathBuf) {
        *self.kept_in.lock() = Some(folder);
    }

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

    /// What extension API servers are shown, unless whoever serves the API says otherwise.
    pub(crate) fn proxy_client(&self) -> io::Result<ProxyClient> {
        let proxy = self.credentials().and_then(Credentials::front_proxy).map_err(io::Error::other)?;
        Ok(Some((proxy.certificate.clone(), proxy.key.clone())))
    }

    /// Makes and reads service accounts' tokens.
    pub(crate) fn accounts(&self) -> io::Result<&Accounts> {
        if let Some(accounts) = self.accounts.get() {
            return Ok(accounts);
        }
        let made = Accounts::new(&self.authentication.service_accounts, || self.credentials())?;
        Ok(self.accounts.get_or_init(|| made))
    }

    /// The administrator, as the bearer of the token of the credentials, if there are any.
    pub(crate) fn administrator(&self) -> Option<&StaticTokens> {
        let credentials = self.credentials.get()?;
        Some(self.administrator.get_or_init(|| {
            let mut tokens = StaticTokens::default();
            tokens.insert(credentials.admin_token(), Identity::admin());
            tokens
        }))
    }

    pub(crate) fn new(clock: Clock, store: Arc<Store>, settings: Settings) -> Self {
        let registry = Registry::new();
        let definitions = registry
            .get(crd::GROUP, "v1", "customresourcedefinitions")
            .expect("the definitions' own resource is built in");
        let dialer = Arc::new(Dialer::new());
        Self {
            policies: Policies::new(store.clone()),
            webhooks: Webhooks::new(store.clone(), dialer.clone()),
            aggregation: Aggregation::new(store.clone(), dialer.clone()),
            dialer,
            faults: Faults::new(store.clone()),
            authorizer: Authorizer::new(settings.authorization_modes, store.clone()),
            flow_control: FlowControl::new(store.clone()),
            authentication: settings.authentication,
            auditor: settings.audit.map(|audit| Arc::new(Auditor::new(audit, clock.clone()))),
            allow_privileged: settings.allow_privileged,
            disabled_admission_plugins: settings.disabled_admission_plugins.into_iter().collect(),
            store,
            clock,
            registry,
            definitions,
            settling: Mutex::new(()),
            own_identity: Identity::api_server(),
            service_allocations: ServiceAllocations::new(settings.service_cluster_ip_range),
            credentials: settings.credentials.map(OnceLock::from).unwrap_or_default(),
            administrator: OnceLock::new(),
            kept_in: parking_lot::Mutex::new(None),
            accounts: OnceLock::new(),
            stopped: CancellationToken::new(),
        }
    }
}
