//! Answers the commands of an operator's binary: fetches what they need, and prints.

use super::error::{Error, Result};
use super::find_operator::Question;
use super::{Manager, program};
use crate::cache::Cache;
use crate::client::DirectClient;
use crate::command::{self, CommandError};
use crate::config::{Command, ObjectName};
use crate::controller::{ControllerContext, Description, Parts, Previewer};
use crate::error_chain::chain;
use crate::events::EventSender;
use crate::key::Key;
use crate::kind::Kind;
use crate::write::Schemas;
use serde_json::Value;
use std::fs::{OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinSet;

/// A capture that is larger is no capture.
const LARGEST_CAPTURE: u64 = 256 << 20;

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
                self.webhooks.check()?;
                let webhooks = crate::webhook::described(&self.webhooks.webhooks, &self.webhooks.conversions);
                let definitions = &self.definitions;
                let all = command::describe(&program(), &self.namespaces, definitions, &described, webhooks);
                format!("{all:#}\n")
            }
            Command::Plan { kind: Some(kind), name: Some(name), controller } => {
                // Capturing uses the controllers up.
                let previewers = self.previewers(controller.as_deref())?;
                let captured = self.capture(&kind, &name, controller.as_deref()).await?;
                command::plan(captured, &previewers, self.json)?
            }
            Command::Plan { controller, .. } => {
                let previewers = self.previewers(controller.as_deref())?;
                let mut captured = String::new();
                let read = std::io::stdin().lock().take(LARGEST_CAPTURE).read_to_string(&mut captured);
                read.map_err(|error| CommandError(format!("no capture on standard input: {error}")))?;
                let captured: Value = serde_json::from_str(&captured)
                    .map_err(|error| CommandError(format!("no capture: it is no JSON: {error}")))?;
                let captures = command::captures(captured, controller.as_deref());
                command::plan(captures, &previewers, self.json)?
            }
            Command::Capture { object: ObjectName { kind, name }, controller, with_secrets, file } => {
                let mut captured = self.capture(&kind, &name, controller.as_deref()).await?;
                if !with_secrets {
                    captured.iter_mut().for_each(command::redact);
                }
                let text = match captured.as_slice() {
                    [one] => format!("{one:#}\n"),
                    several => format!("{:#}\n", Value::from(several.to_vec())),
                };
                match file {
                    None => text,
                    Some(file) => {
                        write_private(&file, &text).map_err(|error| {
                            CommandError(format!("cannot write {}: {error}", file.display()))
                        })?;
                        format!("wrote {}\n", file.display())
                    }
                }
            }
            Command::Why(ObjectName { kind, name }) => self.why(&kind, &name).await?,
        }))
    }

    /// What is asked about the controllers, or about the one of a name.
    fn previewers(&self, named: Option<&str>) -> Result<Vec<Previewer>> {
        if let Some(name) = named {
            self.check_controller(name)?;
        }
        Ok(self.controllers.iter().map(Parts::previewer).collect())
    }

    fn check_controller(&self, name: &str) -> Result<()> {
        if self.controllers.iter().any(|one| one.name() == name) {
            return Ok(());
        }
        let names: Vec<&str> = self.controllers.iter().map(Parts::name).collect();
        Err(CommandError(format!("no controller is called {name:?}: there are {}", names.join(", "))).into())
    }

    /// What is watched is listed once, and each controller of the kind, or the one of a name, asked what it would observe.
    async fn capture(&mut self, kind: &str, name: &str, named: Option<&str>) -> Result<Vec<Value>> {
        let (described, client) = self.asked_about(kind).await?;
        let key = self.key_of(&described.kind, &client, name);
        let cache = Cache::new(self.cluster.clone(), self.scope());
        let clock = self.clock.clone();
        let schemas = Arc::new(Schemas::new(client.clone(), clock.clone()));
        let direct = DirectClient::of(&client);
        let watched_whole = self.controllers.iter().flat_map(Parts::watches_all_of).cloned().collect();
        let context =
            ControllerContext { client, direct, cache, clock, schemas, watched_whole, leadership: None };
        let all = std::mem::take(&mut self.controllers).into_iter();
        let concerned = all.filter(|one| {
            named.is_none_or(|name| one.name() == name) && one.describe().kind == described.kind
        });
        // Nothing is sent: they only watch.
        let events = EventSender::new();
        let started: Vec<_> = concerned
            .map(|one| {
                let recorder = events.recorder(one.name().into());
                one.prepare(&context, recorder)
            })
            .collect();
        if started.is_empty() {
            let named = named.unwrap_or_default();
            return Err(CommandError(format!("controller {named} is not for {}", described.kind)).into());
        }
        let mut watches = JoinSet::new();
        context.cache.start(&context.client, &context.clock, &mut watches);
        let synced = context.clock.timeout(self.cache_sync_timeout, context.cache.synced()).await;
        synced.map_err(|_| Error::NotSynced {
            kinds: context.cache.unsynced(),
            after: self.cache_sync_timeout,
        })?;
        let captured: Option<Vec<Value>> = started.iter().map(|one| one.capture(&key)).collect();
        watches.shutdown().await;
        Ok(captured.ok_or_else(|| CommandError(format!("there is no {} {key}", described.kind)))?)
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
        let link = self.connection.clone().link().await?;
        let question = Question {
            clock: &self.clock,
            client: &client,
            cluster: link.host(),
            metrics_at: self.metrics_at,
            kind,
            key: &key,
        };
        let operator = question.ask().await;
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

/// Writes a file that only its owner can read, also where it was there before.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}
