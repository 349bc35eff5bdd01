//! API aggregation: which groups and versions APIServices lead to extension API servers, how those are reached, and what they say of
//! themselves.
//!
//! [`registered`] is what the stored APIServices say, [`extension`] asks the servers behind them, [`availability`] decides whether one is
//! available as far as that can be seen without asking it, and [`discovered`] reads what one says it serves. Who asks, and when, is in
//! [`aggregator`](crate::aggregator).

mod availability;
mod discovered;
mod extension;
mod registered;

pub(crate) use availability::{Condition, expected};
pub(crate) use discovered::{ACCEPT, all_of, is_aggregated, legacy};
pub(crate) use extension::{Extension, Streamed};
pub(crate) use registered::{ApiServices, Registered, Remote, built_in_priority};

use crate::dial::Dialer;
use crate::following::Following;
use crate::webhook_client::Network;
use bytes::Bytes;
use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::task::AbortHandle;
use windlass_store::Store;

/// Where APIServices are stored.
pub(crate) const STORAGE: &str = "apiregistration.k8s.io/apiservices";

/// The group of APIServices themselves.
pub(crate) const GROUP: &str = "apiregistration.k8s.io";

/// The client certificate that extension API servers are shown, and its key, as PEM; none if they are shown none.
pub(crate) type ProxyClient = Option<(String, String)>;

/// What is known of APIServices and of the servers behind them.
pub(crate) struct Aggregation {
    following: Following<ApiServices>,
    pub(crate) network: Network,
    proxy_client: OnceLock<ProxyClient>,
    documents: RwLock<BTreeMap<String, Documents>>,
    /// Held while the APIServices of CRDs are brought to where they should be.
    pub(crate) registering: tokio::sync::Mutex<()>,
    /// Who looks after which APIService, by its name.
    looked_after: Mutex<BTreeMap<String, AbortHandle>>,
}

/// What an extension API server says of itself.
#[derive(Debug, Default, Clone)]
pub(crate) struct Documents {
    /// Its version in aggregated discovery, and none before it was asked.
    pub(crate) discovery: Option<Arc<Value>>,
    /// What of OpenAPI v2 is about its group and version.
    pub(crate) openapi_v2: Option<Bytes>,
    /// Its documents of OpenAPI v3, by their paths.
    pub(crate) openapi_v3: Option<Arc<Map<String, Value>>>,
}

impl Aggregation {
    pub(crate) fn new(store: Arc<Store>, dialer: Arc<Dialer>) -> Self {
        Self {
            network: Network { store: store.clone(), dialer },
            following: Following::new(store),
            proxy_client: OnceLock::new(),
            documents: RwLock::default(),
            registering: tokio::sync::Mutex::default(),
            looked_after: Mutex::default(),
        }
    }

    /// The APIServices as they are stored now.
    pub(crate) fn services(&self) -> MappedRwLockReadGuard<'_, ApiServices> {
        self.following.current()
    }

    /// Whether an APIService leads anywhere.
    pub(crate) fn is_used(&self) -> bool {
        self.services().has_remote()
    }

    /// Which extension API server is asked for a path, if any.
    pub(crate) fn leads(&self, path: &str) -> Option<Arc<Registered>> {
        let services = self.services();
        if !services.has_remote() {
            return None;
        }
        services.leads(path).cloned()
    }

    /// Shows extension API servers this certificate from now on, unless they were shown another already.
    pub(crate) fn prove_with(&self, client: ProxyClient) {
        // The first to serve decides.
        let _ = self.proxy_client.set(client);
    }

    /// Who asks the server behind an APIService; connections are kept. `usual` is the certificate to show if nobody said another.
    pub(crate) fn extension<'a>(
        &self,
        remote: &'a Remote,
        usual: impl FnOnce() -> io::Result<ProxyClient>,
    ) -> Result<&'a Extension, String> {
        let client = match self.proxy_client.get() {
            Some(client) => client,
            None => {
                let usual = usual().map_err(|error| error.to_string())?;
                self.proxy_client.get_or_init(|| usual)
            }
        };
        remote.extension(self.network.dialer.clone(), client.as_ref())
    }

    /// What a server said of itself; nothing before it was asked.
    pub(crate) fn documents(&self, name: &str) -> Documents {
        self.documents.read().get(name).cloned().unwrap_or_default()
    }

    /// Takes in what a server said.
    pub(crate) fn learn(&self, name: &str, learn: impl FnOnce(&mut Documents)) {
        learn(self.documents.write().entry(name.to_owned()).or_default());
    }

    /// Looks after an APIService by a task, unless one does already. The task begins in `begin`.
    pub(crate) fn look_after(&self, name: &str, begin: impl FnOnce() -> AbortHandle) {
        let mut looked_after = self.looked_after.lock();
        if !looked_after.contains_key(name) {
            looked_after.insert(name.to_owned(), begin());
        }
    }

    /// Whether the task of an APIService may end: if that leads nowhere any more. What was known of it is forgotten then.
    pub(crate) fn let_go(&self, name: &str) -> bool {
        let mut looked_after = self.looked_after.lock();
        if self.services().remote(name).is_some() {
            return false;
        }
        self.documents.write().remove(name);
        looked_after.remove(name);
        true
    }
}

impl Drop for Aggregation {
    fn drop(&mut self) {
        self.looked_after.lock().values().for_each(AbortHandle::abort);
    }
}
