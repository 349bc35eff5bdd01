//! The writer: applies only what would change, tells the cache what the server answered, and remembers doubts.
//!
//! Usable alone: a [`Writer`] needs a client, a cache and a name.
//!
//! Whether applying would change anything is answered by the cheapest question that can tell, in this order:
//!
//! - `memory`: the object is at the very version that our last apply of the same intent left. The intent is known by a hash
//!   of what it would be made of, so that it need not be made.
//! - `change`: our own `managedFields` entry. A string or boolean of ours that differs settles it.
//! - `schemas`: the server's own schemas, which know what is only written differently.
//! - `memory` again: what the server made of the same intent before.
//!
//! Answers stay text: the cache decodes them as it decodes events, and `unchanged` sees from the text whether the server
//! took what was sent. Of a child that is cached as metadata alone, the contents are read live before it is written, once
//! per version; that they were as intended is remembered. `ledger` tells the echoes of our own writes from news.

mod answers;
mod change;
mod claim;
mod errors;
mod fights;
mod initial;
mod ledger;
mod lists;
mod memory;
mod recreate;
mod refresh;
mod requests;
mod schemas;
mod unchanged;
mod verbs;

use answers::{Answer, Doubt};
use change::{Found, compare};
pub use change::{Verdict, own_fields, would_change};
pub use errors::{Failed, WriteError};
pub use fights::Contest;
pub use initial::keep_initial;
pub(crate) use ledger::Ledgers;
pub(crate) use refresh::Listed;
pub use requests::Subresource;
pub(crate) use schemas::Schemas;
pub use verbs::{Basis, Deletion};

use crate::cache::{AnyObject, Cache, Listener, ObjectVersion, Origin};
use crate::client::DirectClient;
use crate::error_chain::chain;
use crate::key::Key;
use crate::kind::Kind;
use crate::plan::Generate;
use fights::Fights;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::core::DynamicObject;
use memory::{Known, Memory};
use parking_lot::Mutex;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use windlass_clock::Clock;

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Nothing was to be done, and nothing was sent; or it was sent, and changed nothing.
    Unchanged,
    /// The object is another now.
    Changed,
}

/// What happens when somebody else holds a field that is to be applied otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflicts {
    /// The field is taken over. If the other takes it back again and again, the fight is reported, and fought seldom.
    #[default]
    Force,
    /// Nothing is written, and the object's conditions name the field and who holds it.
    Report,
}

/// Writes in the name of one controller.
#[derive(Clone)]
pub struct Writer {
    conflicts: Conflicts,
    client: Client,
    /// The same as the client's, but shorter.
    direct: DirectClient,
    cache: Cache,
    manager: Arc<str>,
    clock: Clock,
    shared: Arc<Shared>,
}

struct Shared {
    memory: Memory,
    fights: Fights,
    schemas: Arc<Schemas>,
    ledgers: Arc<Ledgers>,
    /// By the object whose reconcile it was: what may or may not have been written.
    doubts: Mutex<HashMap<Key, BTreeSet<(Kind, Key)>>>,
}

impl Shared {
    fn forget(&self, kind: &Kind, key: &Key) {
        self.memory.forget(kind, key);
        self.fights.forget(kind, key);
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("manager", &self.manager).finish_non_exhaustive()
    }
}

impl Writer {
    /// A hand that writes as the field manager `manager`, whose entries the cache keeps from now on.
    pub fn new(client: Client, cache: Cache, manager: Arc<str>, clock: Clock) -> Self {
        let schemas = Arc::new(Schemas::new(client.clone(), clock.clone()));
        let direct = DirectClient::of(&client);
        Self::sharing(schemas, client, direct, cache, manager, clock)
    }

    /// The same, with schemas that others use too.
    pub(crate) fn sharing(
        schemas: Arc<Schemas>,
        client: Client,
        direct: DirectClient,
        cache: Cache,
        manager: Arc<str>,
        clock: Clock,
    ) -> Self {
        cache.keep_fields_of(manager.clone());
        let shared = Shared {
            memory: Memory::default(),
            fights: Fights::default(),
            schemas,
            ledgers: Arc::default(),
            doubts: Mutex::default(),
        };
        Self {
            conflicts: Conflicts::default(),
            client,
            direct,
            cache,
            manager,
            clock,
            shared: Arc::new(shared),
        }
    }

    /// The same, with another way with conflicts.
    #[must_use]
    pub fn conflicts(mut self, conflicts: Conflicts) -> Self {
        self.conflicts = conflicts;
        self
    }

    /// The field manager it writes as.
    pub fn manager(&self) -> &Arc<str> {
        &self.manager
    }

    /// Lets go of what is remembered about objects of a kind when they are gone, whoever deleted them.
    pub(crate) fn forgetting(&self, kind: Kind) -> Listener {
        // Not the hand itself: it holds the cache that holds its listeners.
        let shared = self.shared.clone();
        Arc::new(move |changed| {
            if changed.new.is_none() {
                shared.forget(&kind, &changed.key);
            }
        })
    }

    /// What its reconciles wrote, and what was heard meanwhile.
    pub(crate) fn ledgers(&self) -> &Arc<Ledgers> {
        &self.shared.ledgers
    }

    /// The cache that it tells of what it writes.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The client it writes with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Makes an object be as `intent` says, in the reconcile of `reconciled`; sends nothing if it is so already. `live` is the
    /// object as it was seen: if it is another by now, nothing is done.
    ///
    /// # Errors
    /// [`WriteError`], which says whether it was done.
    pub async fn apply(
        &self,
        kind: &Kind,
        key: &Key,
        subresource: Subresource,
        intent: &Value,
        live: Option<&Arc<dyn AnyObject>>,
        reconciled: &Key,
    ) -> Result<Done, WriteError> {
        self.apply_made(kind, key, subresource, (intent, || Cow::Borrowed(intent)), live, reconciled).await
    }

    /// As [`Writer::apply`], of an intent that is made only if it is not known from what it is `made_of` that the object is so
    /// already: which it mostly is.
    pub(crate) async fn apply_made<'a>(
        &self,
        kind: &Kind,
        key: &Key,
        subresource: Subresource,
        (made_of, make): (impl Hash, impl FnOnce() -> Cow<'a, Value>),
        live: Option<&Arc<dyn AnyObject>>,
        reconciled: &Key,
    ) -> Result<Done, WriteError> {
        let before = live.and_then(|live| version_of(live.meta()));
        let memory = &self.shared.memory;
        let (place, meant) = (memory.place(kind, key, subresource), memory.meant(made_of));
        if before.as_ref().is_some_and(|before| memory.is_settled(place, meant, before)) {
            return Ok(Done::Unchanged);
        }
        let intent: &Value = &make();
        if let (Some(live), Some(before)) = (live, &before) {
            let (so, own, there) = self.look(kind, key, subresource, intent, live).await?;
            if so {
                if let (true, Some(now)) = (live.is_partial(), there) {
                    memory.remember(place, meant, &now, own.as_ref());
                }
                return Ok(Done::Unchanged);
            }
            match memory.of(place, meant, before, own.as_ref()) {
                Known::Settled => return Ok(Done::Unchanged),
                Known::Undone if there.is_some() => self.keep_peace(kind, key, subresource, intent).await?,
                Known::Undone | Known::Nothing => {}
            }
        }
        let sent = match &before {
            Some(before) => requests::for_uid(intent, &before.uid),
            None => requests::body(intent),
        };
        let force = subresource == Subresource::Status || self.conflicts == Conflicts::Force;
        let request =
            requests::apply(kind, key.namespace(), key.name(), subresource, &self.manager, force, sent);
        let answer = self.send("apply", kind, key, reconciled, request).await?;
        let after = self.take_in(kind, key, &answer, reconciled);
        if let Some(after) = &after {
            // Where the server took it as it was sent, comparing tells all there is to tell later on.
            let as_sent = unchanged::as_sent(intent, &answer.text, &self.manager, subresource)
                || would_change(intent, answer.object(), &self.manager, subresource) == Verdict::Same;
            let own = if as_sent { None } else { own_fields(answer.object(), &self.manager, subresource) };
            memory.remember(place, meant, after, own.as_ref());
        }
        Ok(if after.is_some() && after == before { Done::Unchanged } else { Done::Changed })
    }

    /// Whether the object is as intended, what of it is ours, and the version that it was looked at with, if it is there.
    async fn look(
        &self,
        kind: &Kind,
        key: &Key,
        subresource: Subresource,
        intent: &Value,
        live: &Arc<dyn AnyObject>,
    ) -> Result<(bool, Option<Value>, Option<ObjectVersion>), WriteError> {
        let live = if live.is_partial() {
            // Contents that are not cached are read once, and what came of it is remembered.
            self.read(kind, key).await?.unwrap_or_default()
        } else if change::applied_by(live.meta(), &self.manager, subresource) {
            live.to_json()
        } else {
            // Applying makes the fields ours, whatever their values.
            return Ok((false, None, version_of(live.meta())));
        };
        let so = self.is_so(kind, subresource, intent, &live).await;
        Ok((so, own_fields(&live, &self.manager, subresource), version_of_json(&live)))
    }

    /// What was applied was undone by another: whether to apply it again, or leave it for a while.
    async fn keep_peace(
        &self,
        kind: &Kind,
        key: &Key,
        subresource: Subresource,
        intent: &Value,
    ) -> Result<(), WriteError> {
        let Some(retry_after) = self.shared.fights.undone(kind, key, subresource, self.clock.moment()) else {
            return Ok(());
        };
        // Read live, since the cache does not keep what others hold.
        let live = self.read(kind, key).await?.unwrap_or_default();
        let contests = fights::contests(intent, &live, &self.manager, subresource);
        Err(WriteError::Contested { kind: kind.kind.to_string(), key: key.clone(), contests, retry_after })
    }

    /// Creates an object with generated values.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] when it is there already, and the others.
    pub async fn create(
        &self,
        kind: &Kind,
        key: &Key,
        object: &Value,
        generate: &Generate,
        reconciled: &Key,
    ) -> Result<Done, WriteError> {
        let mut object = object.clone();
        generate.fill(&mut object).map_err(WriteError::Generate)?;
        let request = requests::create(kind, key.namespace(), &self.manager, &object);
        let answer = self.send("create", kind, key, reconciled, request).await?;
        self.take_in(kind, key, &answer, reconciled);
        Ok(Done::Changed)
    }

    fn doubt(&self, kind: &Kind, key: &Key, reconciled: &Key) {
        self.shared.doubts.lock().entry(reconciled.clone()).or_default().insert((kind.clone(), key.clone()));
    }

    /// Deletes exactly the object with this UID; one that is gone already is deleted.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] when an object of another UID has the name now, and the others.
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &Key,
        last: &ObjectVersion,
        reconciled: &Key,
    ) -> Result<Done, WriteError> {
        self.remove(kind, key, last, &Deletion::new(Basis::Observed), reconciled).await
    }

    /// Reads live whatever is in doubt for this reconcile, and tells the cache.
    ///
    /// # Errors
    /// [`WriteError`] when a read failed; the doubt remains.
    pub async fn settle_doubts(&self, reconciled: &Key) -> Result<(), WriteError> {
        let doubts = match self.shared.doubts.lock().get(reconciled) {
            Some(doubts) => doubts.clone(),
            None => return Ok(()),
        };
        for (kind, key) in doubts {
            let before = self.cache.version_of(&kind, &key);
            let answer = self.ask(requests::get(&kind, key.namespace(), key.name())).await;
            match (answer, before) {
                (Ok(answer), _) => drop(self.take_in(&kind, &key, &answer, reconciled)),
                (Err(error), Some(before)) if is_not_found(&error) => {
                    self.gone(&kind, &key, &before, reconciled)
                }
                (Err(error), None) if is_not_found(&error) => {}
                (Err(error), _) => return Err(WriteError::from_request("read", &kind, &key, error)),
            }
            if let Some(left) = self.shared.doubts.lock().get_mut(reconciled) {
                left.remove(&(kind, key));
            }
        }
        self.forget_reconcile(reconciled);
        Ok(())
    }

    /// An object as it is at this moment, past the cache; `None` if it is not there.
    ///
    /// # Errors
    /// [`WriteError`] when it could not be read.
    pub async fn read(&self, kind: &Kind, key: &Key) -> Result<Option<Value>, WriteError> {
        match self.ask(requests::get(kind, key.namespace(), key.name())).await {
            Ok(answer) => Ok(Some(answer.into_object())),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(WriteError::from_request("read", kind, key, error)),
        }
    }

    /// The same object whole, read live if the cache has only its metadata; `None` if it is gone.
    pub(crate) async fn whole(
        &self,
        kind: &Kind,
        key: &Key,
        object: Arc<dyn AnyObject>,
    ) -> Result<Option<Arc<dyn AnyObject>>, WriteError> {
        if object.is_partial() { self.read_object(kind, key).await } else { Ok(Some(object)) }
    }

    /// As [`Writer::read`], as the cache would have it.
    pub(crate) async fn read_object(
        &self,
        kind: &Kind,
        key: &Key,
    ) -> Result<Option<Arc<dyn AnyObject>>, WriteError> {
        let read = self.read(kind, key).await?;
        Ok(read
            .and_then(|json| serde_json::from_value::<DynamicObject>(json).ok())
            .map(|whole| Arc::new(whole) as _))
    }

    /// Nothing more is to be decided for this object.
    pub fn forget_reconcile(&self, reconciled: &Key) {
        let mut doubts = self.shared.doubts.lock();
        if doubts.get(reconciled).is_none_or(BTreeSet::is_empty) {
            doubts.remove(reconciled);
        }
    }

    /// Leaves exactly these finalizers on an object, in the reconcile of `reconciled`, if it is still at the version of `meta`.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] when it is not, and the others.
    pub async fn set_finalizers(
        &self,
        kind: &Kind,
        key: &Key,
        meta: &ObjectMeta,
        finalizers: &[String],
        reconciled: &Key,
    ) -> Result<(), WriteError> {
        // Not by apply: a finalizer that somebody else claims too, as a restored backup does, would stay.
        let request =
            requests::set_finalizers(kind, key.namespace(), key.name(), &self.manager, meta, finalizers);
        match self.send("remove a finalizer of", kind, key, reconciled, request).await {
            Ok(answer) => drop(self.take_in(kind, key, &answer, reconciled)),
            Err(WriteError::Refused(failed)) if is_not_found(&failed.answer) => {
                if let Some(last) = version_of(meta) {
                    self.gone(kind, key, &last, reconciled);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether applying would certainly change nothing. First by what the manager's own entry tells, which needs no
    /// schema; where that does not do, by the server's schema, which knows what is only written differently.
    async fn is_so(&self, kind: &Kind, subresource: Subresource, intent: &Value, live: &Value) -> bool {
        match compare(intent, live, &self.manager, subresource) {
            Found::Same => return true,
            Found::Other => return false,
            Found::Unclear => {}
        }
        if !change::applied_before(live, &self.manager, subresource) {
            return false;
        }
        let Some(version) = self.shared.schemas.of(kind).await else { return false };
        let Some(schema) = version.schema(kind) else { return false };
        let api_version = kind.api_version();
        let context = windlass_schema::apply::Context {
            blank: None,
            settled: false,
            schema: &|_| Some(schema.clone()),
            convert: &windlass_schema::apply::Same,
            now: self.clock.now(),
            subresource: subresource.subresource(),
            reset_fields: &Default::default(),
            api_version: &api_version,
            kind: &kind.kind,
        };
        let verdict = windlass_schema::apply::would_change(live, intent, &self.manager, &context);
        verdict == windlass_schema::apply::WouldChange::No
    }

    /// Whether the server's schema of a kind has a field, named by the fields on the way to it.
    pub(crate) async fn knows_field(&self, kind: &Kind, path: &[&str]) -> bool {
        let Some(version) = self.shared.schemas.of(kind).await else { return false };
        let Some(schema) = version.schema(kind) else { return false };
        let found =
            path.iter().try_fold(schema, |schema, field| schema.resolved().properties.get(*field).cloned());
        found.is_some()
    }

    async fn send(
        &self,
        verb: &'static str,
        kind: &Kind,
        key: &Key,
        reconciled: &Key,
        request: Result<http::Request<Vec<u8>>, kube::Error>,
    ) -> Result<Answer, WriteError> {
        let mut doubt = Doubt { writer: self, kind, key, reconciled, clear: false };
        let answer = self.ask(request).await;
        let answer = answer.map_err(|error| WriteError::from_request(verb, kind, key, error));
        tracing::debug!(controller = %self.manager, object = %key, ok = answer.is_ok(), "sent: {verb} {kind}");
        doubt.clear = match &answer {
            Ok(_) => true,
            // A conflict means that what was seen is old: reading live beats waiting for the watch.
            Err(error) => !matches!(error, WriteError::Ambiguous(_) | WriteError::Conflict(_)),
        };
        drop(doubt);
        answer
    }

    fn take_in(&self, kind: &Kind, key: &Key, answer: &Answer, reconciled: &Key) -> Option<ObjectVersion> {
        let object_version = answer.object_version.clone()?;
        if answer.gone {
            self.gone(kind, key, &object_version, reconciled);
            return None;
        }
        self.shared.ledgers.wrote(reconciled, &object_version.uid, Some(object_version.version));
        if let Err(error) =
            self.cache.wrote(kind, key, &object_version, &answer.text, Some(&self.origin(reconciled)))
        {
            tracing::warn!(controller = %self.manager, object = %key, "{}", chain(&error));
        }
        Some(object_version)
    }

    fn gone(&self, kind: &Kind, key: &Key, last: &ObjectVersion, reconciled: &Key) {
        self.shared.ledgers.wrote(reconciled, &last.uid, None);
        self.shared.forget(kind, key);
        self.cache.wrote_gone(kind, key, last, Some(&self.origin(reconciled)));
    }

    fn origin(&self, reconciled: &Key) -> Origin {
        Origin { controller: self.manager.clone(), reconciled: reconciled.clone() }
    }
}

/// The version in an object's metadata, if it is complete.
pub(crate) fn version_of(meta: &ObjectMeta) -> Option<ObjectVersion> {
    let version = meta.resource_version.as_deref()?.parse().ok()?;
    Some(ObjectVersion { uid: meta.uid.as_deref()?.into(), version })
}

pub(crate) fn version_of_json(object: &Value) -> Option<ObjectVersion> {
    let text = |field: &str| object.get("metadata")?.get(field)?.as_str();
    Some(ObjectVersion { uid: text("uid")?.into(), version: text("resourceVersion")?.parse().ok()? })
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
