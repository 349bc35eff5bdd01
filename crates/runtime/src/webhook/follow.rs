//! Keeps certificates valid and shown, and the API server told whom to trust, as long as a manager runs.

use super::authority::{Certificates, Wanted};
use super::configurations::{Address, KINDS, fill_in, is_within};
use super::hook::{Sort, Webhook};
use super::secrets::Source;
use super::server::Listening;
use super::serving::{Reached, WebhookServer};
use super::tls::Shown;
use super::versions::Conversions;
use crate::election::Leadership;
use crate::error_chain::chain;
use http::{Method, Request};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;

/// How often certificates and configurations are looked at. That is also how long a change by somebody else lasts.
const EVERY: Duration = Duration::from_secs(15);
/// How soon it is tried again until it succeeded once.
const SOON: Duration = Duration::from_millis(500);
/// Others may write at the same time.
const ATTEMPTS: usize = 3;

/// Whether webhooks can be asked.
#[derive(Clone)]
pub(crate) struct Readiness(Arc<Mutex<Result<(), String>>>);

impl Readiness {
    /// What is missing.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.0.lock().clone()
    }
}

/// Follows the certificates of one manager.
pub(crate) struct Follower {
    source: Source,
    shown: Arc<Shown>,
    last: Option<Certificates>,
    teller: Option<Teller>,
    leadership: Option<Leadership>,
    clock: Clock,
    readiness: Readiness,
}

/// Tells the API server where webhooks are and whom to trust.
#[derive(Clone)]
pub(crate) struct Teller {
    client: Client,
    address: Address,
    name: String,
    webhooks: Vec<Webhook>,
    conversions: Vec<Conversions>,
}

impl Follower {
    /// `client` must send what it is given also while another replica leads: it writes by compare-and-swap.
    pub(crate) fn new(
        server: &WebhookServer,
        listening: &Listening,
        program: &str,
        hooks: (Vec<Webhook>, Vec<Conversions>),
        (client, leadership, clock): (Client, Option<Leadership>, &Clock),
    ) -> std::io::Result<Self> {
        let name = server.configuration_name(program, &hooks.0);
        let (source, address, clock) = match &server.reached {
            Reached::Certificates(folder) => (Source::Folder(folder.clone()), None, clock.clone()),
            Reached::Service { name, namespace } => {
                let namespace = namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
                let names =
                    vec![format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")];
                let wanted = Wanted::new(name, names);
                let address = Address::Service { name: name.clone(), namespace: namespace.clone() };
                (Source::Secrets { client: client.clone(), namespace, wanted }, Some(address), clock.clone())
            }
            Reached::Url(base) => {
                let wanted = Wanted::new(&name, vec![base.name().to_owned()]);
                let mut base = base.clone();
                if base.port == 0 {
                    base.port = listening.address()?.port();
                }
                // Whoever verifies the certificate does so by the machine's clock.
                let source = Source::Memory { wanted, authority: None, certificate: None };
                (source, Some(Address::Url(base)), Clock::real())
            }
        };
        let (webhooks, conversions) = hooks;
        let teller = address.map(|address| Teller { client, address, name, webhooks, conversions });
        let readiness = Readiness(Arc::new(Mutex::new(Err("there is no certificate yet".to_owned()))));
        Ok(Self { source, shown: listening.shown.clone(), last: None, teller, leadership, clock, readiness })
    }

    pub(crate) fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    pub(crate) fn teller(&self) -> Option<Teller> {
        self.teller.clone()
    }

    /// Follows until dropped.
    pub(crate) async fn follow(mut self) {
        let mut trouble = None;
        let mut was_ready = false;
        loop {
            let outcome = self.look(!was_ready).await;
            if let Err(why) = &outcome
                && trouble.as_ref() != Some(why)
            {
                tracing::warn!("{why}");
            }
            trouble = outcome.clone().err();
            if !was_ready {
                was_ready = outcome.is_ok();
                // What was ready stays so: an API server that does not answer for a while is no reason to take replicas away.
                *self.readiness.0.lock() = outcome;
            }
            self.clock.sleep(if was_ready { EVERY } else { SOON }).await;
        }
    }

    async fn look(&mut self, first: bool) -> Result<(), String> {
        let leads = self.leadership.as_ref().is_none_or(Leadership::leads);
        let certificates = self.source.look(leads, self.clock.now()).await?;
        if self.last.as_ref() != Some(&certificates) {
            self.shown.show(&certificates)?;
        }
        let told = match &self.teller {
            Some(teller) if first || leads => teller.tell(&certificates.trusted).await,
            _ => Ok(()),
        };
        self.last = Some(certificates);
        told
    }
}

impl Teller {
    async fn tell(&self, trusted: &str) -> Result<(), String> {
        for (sort, kind, resource) in KINDS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}");
            let about = |why: String| format!("{kind} {}: {why}", self.name);
            match &self.address {
                Address::Service { .. } => self.fill_in(sort, &path, trusted).await.map_err(about)?,
                Address::Url(_) => self.make(sort, &path, trusted).await.map_err(about)?,
            }
        }
        for one in &self.conversions {
            let name = one.definition();
            let told = self.convert(&name, trusted).await;
            told.map_err(|why| format!("CustomResourceDefinition {name}: {why}"))?;
        }
        Ok(())
    }

    /// Fills in whom to trust, in a configuration that was installed.
    async fn fill_in(&self, sort: Sort, path: &str, trusted: &str) -> Result<(), String> {
        if self.webhooks.iter().all(|one| one.sort != sort) {
            return Ok(());
        }
        let path = format!("{path}/{}", self.name);
        for _ in 0..ATTEMPTS {
            let live = self.read(&path).await?;
            let live = live.ok_or("it is not there; install what `windlass generate` writes")?;
            let (operations, lacking) = fill_in(&live, &self.address, &self.webhooks, sort, trusted);
            if self.patch(&path, &live, operations).await? {
                return match lacking.is_empty() {
                    true => Ok(()),
                    false => Err(format!(
                        "it has no webhook for {}; install what `windlass generate` writes",
                        lacking.join(", ")
                    )),
                };
            }
        }
        Err("it changes all the time".to_owned())
    }

    /// Makes a configuration, or makes it as it should be.
    async fn make(&self, sort: Sort, path: &str, trusted: &str) -> Result<(), String> {
        let one = format!("{path}/{}", self.name);
        let wanted = self.address.configuration(sort, &self.name, &self.webhooks, trusted);
        for _ in 0..ATTEMPTS {
            let live = self.read(&one).await?;
            if live.as_ref().is_some_and(leads_to_a_service) {
                return Err(
                    "it leads to an operator in the cluster; undeploy that one, or name this one's otherwise"
                        .to_owned(),
                );
            }
            let (method, path, body) = match (wanted.clone(), live) {
                (None, None) => return Ok(()),
                (None, Some(live)) => (Method::DELETE, &one, preconditions(&live)),
                (Some(wanted), None) => (Method::POST, &path.to_owned(), wanted),
                (Some(wanted), Some(live)) if is_within(&wanted, &live) => return Ok(()),
                (Some(mut wanted), Some(live)) => {
                    wanted["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
                    (Method::PUT, &one, wanted)
                }
            };
            match self.send(method, path, "application/json", &body).await {
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {}
                other => return other.map(drop).map_err(|error| chain(&error)),
            }
        }
        Err("it changes all the time".to_owned())
    }

    /// Says in a CRD who converts.
    async fn convert(&self, name: &str, trusted: &str) -> Result<(), String> {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let wanted = self.address.conversion(trusted);
        for _ in 0..ATTEMPTS {
            let live = self.read(&path).await?.ok_or("it is not installed")?;
            let add = json!({ "op": "add", "path": "/spec/conversion", "value": wanted });
            let operations = if is_within(&wanted, &live["spec"]["conversion"]) { vec![] } else { vec![add] };
            if self.patch(&path, &live, operations).await? {
                return Ok(());
            }
        }
        Err("it changes all the time".to_owned())
    }

    /// Removes the configurations that lead to this process, which is about to end: requests would fail.
    pub(crate) async fn end(&self) {
        if !matches!(self.address, Address::Url(_)) {
            return;
        }
        for (_, kind, resource) in KINDS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}/{}", self.name);
            let ours = |live: &Value| {
                let Address::Url(base) = &self.address else { return false };
                let url = live["webhooks"][0]["clientConfig"]["url"].as_str().unwrap_or_default();
                url.starts_with(&format!("{base}/"))
            };
            let removed = match self.read(&path).await {
                Ok(Some(live)) if ours(&live) => {
                    let sent =
                        self.send(Method::DELETE, &path, "application/json", &preconditions(&live)).await;
                    sent.map(drop).map_err(|error| chain(&error))
                }
                other => other.map(drop),
            };
            if let Err(why) = removed {
                tracing::warn!("{kind} {} is left behind: {why}", self.name);
            }
        }
    }

    async fn read(&self, path: &str) -> Result<Option<Value>, String> {
        match self.send(Method::GET, path, "application/json", &Value::Null).await {
            Ok(live) => Ok(Some(live)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(chain(&error)),
        }
    }

    /// Patches what was read; `false` if it has changed since.
    async fn patch(&self, path: &str, live: &Value, operations: Vec<Value>) -> Result<bool, String> {
        if operations.is_empty() {
            return Ok(true);
        }
        let version = &live["metadata"]["resourceVersion"];
        let test = json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version });
        let all: Vec<Value> = [test].into_iter().chain(operations).collect();
        match self.send(Method::PATCH, path, "application/json-patch+json", &Value::from(all)).await {
            Ok(_) => Ok(true),
            // 422 is how API servers say that a test failed.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(kube::Error::Api(status)) if status.code == 422 && status.message.contains("test") => {
                Ok(false)
            }
            Err(error) => Err(chain(&error)),
        }
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> kube::Result<Value> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("Content-Type", content);
        self.client.request(request.body(body).map_err(kube::Error::HttpError)?).await
    }
}

fn leads_to_a_service(live: &Value) -> bool {
    let webhooks = live["webhooks"].as_array().into_iter().flatten();
    webhooks.into_iter().any(|one| !one["clientConfig"]["service"].is_null())
}

fn preconditions(live: &Value) -> Value {
    let (uid, version) = (&live["metadata"]["uid"], &live["metadata"]["resourceVersion"]);
    json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid, "resourceVersion": version } })
}
