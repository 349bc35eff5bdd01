//! Whether we lead, and a client that stops writing when we do not.

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use std::sync::Arc;
use tower::BoxError;
use windlass_clock::{Clock, Moment};

/// Whether a candidate leads. Clones agree.
#[derive(Debug, Clone)]
pub struct Leadership {
    clock: Clock,
    /// No write starts from here on; nothing while another one leads.
    until: Arc<Mutex<Option<Moment>>>,
}

/// A write that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sent: another replica may be leading by now")]
pub struct NotLeading;

impl Leadership {
    pub(super) fn none(clock: Clock) -> Self {
        Self { clock, until: Arc::default() }
    }

    pub(super) fn lead_until(&self, deadline: Moment) {
        *self.until.lock() = Some(deadline);
    }

    pub(super) fn end(&self) {
        *self.until.lock() = None;
    }

    /// When it ends unless it is renewed; in the past for one who does not lead.
    pub(super) fn deadline(&self) -> Moment {
        self.until.lock().unwrap_or_default()
    }

    /// Does it lead at this moment?
    pub fn leads(&self) -> bool {
        self.clock.moment() < self.deadline()
    }

    /// The same client, but that it starts no write while another one may lead. Reads go through.
    pub fn guard(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let leadership = self.clone();
        let guarded = tower::service_fn(move |request: Request<Body>| {
            let (client, leadership) = (client.clone(), leadership.clone());
            async move {
                let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
                // Asked for at the last moment: whatever made it wait, it does not start too late.
                if !reads && !leadership.leads() {
                    return Err(BoxError::from(NotLeading));
                }
                Ok(client.send(request).await?)
            }
        });
        Client::new(guarded, namespace)
    }
}
