//! The webhooks of a manager: its handlers, and the server that runs with it.

use super::error::{Error, Result};
use super::{Manager, program};
use crate::election::Leadership;
use crate::inspect::Inspector;
use crate::kind::Object;
use crate::webhook::{Conversions, Follower, Handlers, Listening, Teller, Versions, Webhook, WebhookServer};
use crate::webhook::{VersionsError, rules};
use kube::{Client, CustomResourceExt};
use serde_json::Value;
use std::collections::BTreeSet;
use tokio::task::JoinSet;
use windlass_clock::Clock;

/// What a manager was given.
#[derive(Default)]
pub(super) struct Given {
    pub(super) webhooks: Vec<Webhook>,
    pub(super) conversions: Vec<Conversions>,
    pub(super) server: Option<WebhookServer>,
    invalid: Option<VersionsError>,
}

impl Given {
    fn is_empty(&self) -> bool {
        self.webhooks.is_empty() && self.conversions.is_empty()
    }

    /// The rules that serving them takes.
    pub(super) fn rules(&self) -> Vec<Value> {
        match &self.server {
            Some(server) if !self.is_empty() => rules(server, &program(), &self.webhooks, &self.conversions),
            _ => Vec::new(),
        }
    }

    pub(super) fn check(&mut self) -> Result<()> {
        if let Some(invalid) = self.invalid.take() {
            return Err(Error::Versions(invalid));
        }
        let mut paths = BTreeSet::new();
        match self.webhooks.iter().map(Webhook::path).find(|path| !paths.insert(path.clone())) {
            Some(twice) => Err(Error::WebhookTwice(twice)),
            None => Ok(()),
        }
    }

    /// Begins to serve them, before anything is read from the cluster: it may have to be converted by these very webhooks.
    pub(super) async fn begin(
        self,
        inspector: &Inspector,
        client: Client,
        leadership: Option<Leadership>,
        clock: &Clock,
        into: &mut JoinSet<()>,
    ) -> Result<Option<Teller>> {
        if self.is_empty() {
            return Ok(None);
        }
        let Some(server) = self.server else {
            tracing::warn!(
                "webhooks are not served: nothing says how the API server reaches them (--webhook-service, --webhook-url, \
                 --webhook-cert-dir)"
            );
            return Ok(None);
        };
        let address = server.address();
        let not_served = |source| Error::NotServed { address, source };
        let listening = Listening::bind(address).await.map_err(not_served)?;
        inspector.serves_webhooks(listening.address().ok());
        let handlers = Handlers::new(&self.webhooks, &self.conversions);
        let hooks = (self.webhooks, self.conversions);
        let follower = Follower::new(&server, &listening, &program(), hooks, (client, leadership, clock));
        let follower = follower.map_err(not_served)?;
        let (readiness, teller) = (follower.readiness(), follower.teller());
        inspector.check_ready("webhooks".to_owned(), Box::new(move || readiness.check()));
        let measured = handlers.clone();
        inspector.collect(Box::new(move |page| measured.write_metrics(page)));
        into.spawn(listening.serve(handlers));
        into.spawn(follower.follow());
        Ok(teller)
    }
}

impl Manager {
    /// Answers the API server with this handler: see [`webhook`](crate::webhook).
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.webhooks.webhooks.push(webhook);
        self
    }

    /// This operator defines this kind, in several versions, and converts between them: see [`Spoke`](crate::webhook::Spoke). It takes
    /// the place of [`Manager::crds`].
    pub fn versions<H: Object + CustomResourceExt>(mut self, versions: Versions<H>) -> Self {
        match versions.crd() {
            Ok(definition) => self.definitions.push(definition),
            Err(invalid) => self.webhooks.invalid = Some(invalid),
        }
        self.webhooks.conversions.push(versions.conversions().clone());
        self
    }

    /// Serves its webhooks there while it runs, on every replica. Without this they are not served.
    pub fn serve_webhooks(mut self, server: WebhookServer) -> Self {
        self.webhooks.server = Some(server);
        self
    }
}
