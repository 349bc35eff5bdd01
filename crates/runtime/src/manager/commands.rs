//! Answers the commands of an operator's binary: fetches what they need, and prints.

use super::error::{Error, Result};
use super::{Manager, program};
use crate::cache::Cache;
use crate::client::DirectClient;
use crate::command::{self, CommandError};
use crate::config::{Command, ObjectName};
use crate::controller::{ControllerContext, Decider, Description, Parts};
use crate::error_chain::chain;
use crate::events::EventSender;
use crate::key::Key;
use crate::kind::Kind;
use crate::serve::Bind;
use crate::write::Schemas;
use serde_json::Value;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A capture that is larger is no capture.
const LARGEST_CAPTURE: u64 = 256 << 20;
/// What an operator says of one object is short.
const LARGEST_ANSWER: u64 = 1 << 20;
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

impl Manager {
    /// The answer to a command, as it is printed; nothing when it is to run.
    pub(super) async fn answer(&mut self) -> Result<Option<String>> {
        if let Some(help) = self.help.take() {
            return Ok(Some(help));
        }
        Ok(Some(match self.command.clone() {
            Command::Run => return Ok(None),
            Command::Describe => {
                let described: Vec<Description> = self.controllers.iter().map(|one| one.describe()).collect();
                format!(
                    "{:#}\n",
                    command::describe(&program(), &self.namespaces, &self.definitions, &described)
                )
            }
            Command::Plan { kind: Some(kind), name: Some(name) } => {
                // What was watched is asked by a controller that is then used up.
                let deciders = self.deciders();
                command::plan(&self.capture(&kind, &name).await?, &deciders, self.json)?
            }
            Command::Plan { .. } => {
                let mut captured = String::new();
                let read = std::io::stdin().lock().take(LARGEST_CAPTURE).read_to_string(&mut captured);
                read.map_err(|error| CommandError(format!("no capture on standard input: {error}")))?;
                command::plan(&captured, &self.deciders(), self.json)?
            }
            Command::Capture(ObjectName { kind, name }) => self.capture(&kind, &name).await?,
            Command::Why(ObjectName { kind, name }) => self.why(&kind, &name).await?,
        }))
    }

    fn deciders(&self) -> Vec<Decider> {
        self.controllers.iter().map(Parts::decider).collect()
    }

    /// What is watched is listed once, and a controller of the kind asked what it would see.
    async fn capture(&mut self, kind: &str, name: &str) -> Result<String> {
        let (described, client) = self.asked_about(kind).await?;
        let key = self.key_of(&described.kind, &client, name);
        let cache = Cache::new(self.cluster.clone(), self.scope());
        let clock = self.clock.clone();
        let schemas = Arc::new(Schemas::new(client.clone(), clock.clone()));
        let direct = DirectClient::of(&client);
        let context = ControllerContext { client, direct, cache, clock, schemas, leadership: None };
        let place = self.controllers.iter().position(|one| one.name() == described.name);
        let Some(controller) = place.map(|place| self.controllers.swap_remove(place)) else {
            return Err(CommandError(format!("no controller is for {kind}")).into());
        };
        // Nothing is sent: it only watches.
        let events = EventSender::new();
        let started = controller.prepare(&context, events.recorder(described.name.as_str().into()));
        let mut watches = JoinSet::new();
        context.cache.start(&context.client, &context.clock, &mut watches);
        let synced = context.clock.timeout(self.cache_sync_timeout, context.cache.synced()).await;
        synced.map_err(|_| Error::NotSynced {
            kinds: context.cache.unsynced(),
            after: self.cache_sync_timeout,
        })?;
        let captured = started.capture(&key);
        watches.shutdown().await;
        let captured =
            captured.ok_or_else(|| CommandError(format!("there is no {} {key}", described.kind)))?;
        Ok(format!("{captured:#}\n"))
    }

    async fn why(&mut self, kind: &str, name: &str) -> Result<String> {
        let (described, client) = self.asked_about(kind).await?;
        let kind = &described.kind;
        let key = self.key_of(kind, &client, name);
        let path = format!("{}/{}", kind.collection_path(key.namespace()), key.name());
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|_| CommandError(format!("{name:?} is no name")))?;
        let object: Value = client
            .request(request)
            .await
            .map_err(|error| CommandError(format!("{kind} {key} cannot be read: {}", chain(&error))))?;
        let operator = match self.metrics_at {
            Bind::Off => Err("it serves no /debug".to_owned()),
            Bind::At(address) => {
                let asking = ask(address, kind, &key);
                let operator = self.clock.timeout(ANSWERS_WITHIN, asking).await;
                operator
                    .unwrap_or_else(|late| Err(late.to_string()))
                    .map_err(|why| format!("{why} (asked {address}, see --metrics-bind-address)"))
            }
        };
        let title = format!("{kind} {key}");
        Ok(match self.json {
            true => format!("{:#}\n", command::why_to_json(&title, &object, &operator)),
            false => command::why_to_text(&title, &object, &operator),
        })
    }

    /// The controller of a kind that a person named, and a client.
    async fn asked_about(&mut self, kind: &str) -> Result<(Description, kube::Client)> {
        let all: Vec<Description> = self.controllers.iter().map(|one| one.describe()).collect();
        let kinds = all.iter().map(|one| &*one.kind.kind).collect::<Vec<_>>().join(", ");
        let found = all.into_iter().find(|one| one.kind.is_called(kind));
        let described = found
            .ok_or_else(|| CommandError(format!("this operator is not for {kind}; it is for {kinds}")))?;
        let link = self.connection.clone().link().await?;
        Ok((described, link.client(self.inspector.requests(), None, &self.clock)?.0))
    }

    /// `shop/orders`, or `orders` in the namespace that was said, or in the client's.
    fn key_of(&self, kind: &Kind, client: &kube::Client, name: &str) -> Key {
        let home = self.namespaces.first().map_or(client.default_namespace(), String::as_str);
        let (namespace, name) = name.split_once('/').unwrap_or((home, name));
        Key::new(self.cluster.clone(), kind.namespaced.then_some(namespace), name)
    }
}

/// Asks a running operator about an object.
async fn ask(address: SocketAddr, kind: &Kind, key: &Key) -> Result<Value, String> {
    // Who serves on all interfaces is reached on the nearest.
    let host = if address.ip().is_unspecified() { IpAddr::from(Ipv4Addr::LOCALHOST) } else { address.ip() };
    let unreached = |error: std::io::Error| format!("no operator is reached: {error}");
    let mut stream = TcpStream::connect((host, address.port())).await.map_err(unreached)?;
    let namespace = key.namespace().map(|namespace| format!("&namespace={namespace}")).unwrap_or_default();
    let path = format!("/debug?kind={}{namespace}&name={}", kind.plural, key.name());
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(unreached)?;
    let mut answer = String::new();
    stream.take(LARGEST_ANSWER).read_to_string(&mut answer).await.map_err(unreached)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body).map_err(|_| "what answers is no operator".to_owned())
}
