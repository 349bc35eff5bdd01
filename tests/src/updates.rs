//! Every update of one field, of the minimal and the full objects of every built-in kind, sent to two servers: the same updates
//! are accepted, with the same result, and rejected, with the same words.
//!
//! Updates are dry runs: each starts from the object as it was created, and none is seen by the next.

pub mod changes;
pub mod definitions;
mod report;
mod shown;

use crate::compare::exchange::media;
use crate::compare::{Answer, Normaliser, Request, Server};
use crate::full_objects::{self, Step};
use crate::minimal_objects;
use anyhow::{Context, ensure};
use changes::Change;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use windlass_clock::Clock;

/// Updates that are under way at once.
const AT_ONCE: usize = 4;

/// How often an update is sent again whose object a controller of the reference changed meanwhile.
const TRIES: usize = 10;

/// Updates that are not equal yet, a line for each kind and the beginning of an update; docs/parity.md explains them.
const UNEQUAL: &str = include_str!("updates/unequal.txt");

/// The lines of the updates that are known not to be equal.
pub fn known() -> impl Iterator<Item = &'static str> {
    UNEQUAL.lines()
}

/// Whether a line is about the update of this title.
pub fn is_about(line: &str, title: &str) -> bool {
    let Some((object, update)) = title.split_once(": ") else { return false };
    let kind = object.split(',').next().unwrap_or_default();
    line.split_once(": ").is_some_and(|(known, start)| known == kind && update.starts_with(start))
}

/// Kinds whose status the reference writes by itself, some time after an object was created: it is there or not.
const TOUCHED: &[&str] = &["APIService", "FlowSchema"];

/// An object whose updates are compared.
#[derive(Debug, Clone)]
pub struct Subject {
    /// `v1 Pod, minimal`.
    pub title: String,
    collection: String,
    object: Value,
    /// What its status becomes before it is updated; null for nothing.
    status: Value,
}

/// All objects: of every kind the minimal one and the full ones.
///
/// # Errors
/// When a file of objects is not as it should be.
pub fn subjects(namespace: &str) -> anyhow::Result<Vec<Subject>> {
    let minimal = minimal_objects::all(namespace).into_iter().map(|minimal| {
        let mut object = minimal.object;
        // Another test has objects of these names.
        if object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("minimal")) {
            object["metadata"]["name"] = json!("updated-minimal");
        }
        let title = format!("{}, minimal", minimal.title);
        Subject { title, collection: minimal.path, object, status: Value::Null }
    });
    let full = full_objects::all(namespace, "updated")?.into_iter().filter_map(|full| {
        let asked = |name: &str| {
            full.steps.iter().find(|(known, _)| known == name).and_then(|(_, step)| match step {
                Step::Ask(request) => Some((request.path.clone(), request.body.clone())),
                Step::Rewrite(..) => None,
            })
        };
        let (collection, object) = asked("created")?;
        let status = asked("its status").map_or(Value::Null, |(_, body)| body["status"].clone());
        Some(Subject { title: full.title.clone(), collection, object, status })
    });
    Ok(minimal.chain(full).collect())
}

/// How updates compare.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The number of updates that were compared.
    pub updates: usize,
    /// The number of those that the reference accepted.
    pub accepted: usize,
    /// The number of those that the reference did not answer: it panicked.
    pub unanswered: usize,
    /// The number of those that are equal but for values that an error shows as Go's internal types, and for diffs of them.
    pub equal_but_shown: usize,
    /// The titles of updates that are not equal, each with how.
    pub unequal: Vec<(String, String)>,
}

impl Comparison {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.updates += other.updates;
        self.accepted += other.accepted;
        self.unanswered += other.unanswered;
        self.equal_but_shown += other.equal_but_shown;
        self.unequal.extend(other.unequal);
    }
}

/// One server, and the object as it is there.
struct Side<'a> {
    server: &'a Server,
    normaliser: Normaliser,
    stored: Value,
}

/// Creates an object on both servers, compares `percent` of its updates, and deletes it. What it has not is taken from `all` of its
/// kind.
///
/// # Errors
/// When a server does not answer, or does not create the object.
pub async fn compare(
    servers: &[Server; 2],
    subject: &Subject,
    all: &[Subject],
    percent: u64,
) -> anyhow::Result<Comparison> {
    let [left, right] = servers;
    let sides = [created(left, subject).await?, created(right, subject).await?];
    let updates = updates(subject, all, &sides[1].stored)?;
    let compared = compare_updates(&sides, subject, updates, percent).await;
    for server in servers {
        deleted(server, &subject.path()).await?;
    }
    compared
}

async fn compare_updates(
    sides: &[Side<'_>; 2],
    subject: &Subject,
    updates: Vec<Update>,
    percent: u64,
) -> anyhow::Result<Comparison> {
    let updates = updates.into_iter().filter(|update| update.is_chosen(&subject.title, percent));
    let outcomes: Vec<(String, Verdict)> = stream::iter(updates)
        .map(|update| async move {
            let verdict = verdict(sides, &subject.path(), &update).await?;
            anyhow::Ok((format!("{}: {update}", subject.title), verdict))
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let mut comparison = Comparison::default();
    for (title, verdict) in outcomes {
        comparison.updates += 1;
        comparison.accepted += usize::from(verdict.accepted);
        match verdict.difference {
            Difference::None => {}
            Difference::Unanswered => comparison.unanswered += 1,
            Difference::Shown => comparison.equal_but_shown += 1,
            Difference::Is(how) => comparison.unequal.push((title, how)),
        }
    }
    Ok(comparison)
}

/// A change, and the path that it is sent to.
#[derive(Debug)]
struct Update {
    subresource: &'static str,
    change: Change,
}

impl Update {
    /// Whether it is among so many in a hundred, the same ones in every run.
    fn is_chosen(&self, title: &str, percent: u64) -> bool {
        let mut hasher = DefaultHasher::new();
        (title, self.to_string()).hash(&mut hasher);
        hasher.finish() % 100 < percent
    }
}

impl std::fmt::Display for Update {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.subresource {
            "" => write!(f, "{}", self.change),
            subresource => write!(f, "/{subresource} {}", self.change),
        }
    }
}

/// The updates of an object: its content and its metadata through its own path, its status through that of the status, and some
/// of each through the path that does not change it.
fn updates(subject: &Subject, all: &[Subject], stored: &Value) -> anyhow::Result<Vec<Update>> {
    let word = |field: &str| subject.object[field].as_str().unwrap_or_default();
    let (version, kind) = (word("apiVersion"), word("kind"));
    let schema = definitions::of_kind(version, kind).with_context(|| format!("no facts of {kind}"))?;
    let alike =
        all.iter().filter(|other| other.object["kind"] == kind && other.object["apiVersion"] == version);
    let example = |other: &Subject| {
        let mut object = other.object.clone();
        object["status"] = other.status.clone();
        object
    };
    let examples: Vec<Value> = alike.map(example).collect();
    let content = changes::of_content(schema, stored, &examples);
    let status = match TOUCHED.contains(&kind) {
        true => Vec::new(),
        false => changes::of_status(schema, stored, &examples),
    };
    let through = |subresource: &'static str, changes: Vec<Change>| {
        changes.into_iter().map(move |change| Update { subresource, change }).collect::<Vec<_>>()
    };
    let some = |changes: &[Change]| changes.iter().step_by(7).cloned().collect::<Vec<_>>();
    let mut updates = through("", changes::of_metadata());
    updates.extend(through("", some(&status)));
    if definitions::updatable_subresources(version, kind).contains(&"status") {
        updates.extend(through("status", changes::of_metadata()));
        updates.extend(through("status", some(&content)));
        updates.extend(through("status", status));
    }
    updates.extend(through("", content));
    Ok(updates)
}

enum Difference {
    None,
    Unanswered,
    Shown,
    Is(String),
}

struct Verdict {
    accepted: bool,
    difference: Difference,
}

async fn verdict(sides: &[Side<'_>; 2], path: &str, update: &Update) -> anyhow::Result<Verdict> {
    let ours = updated(sides, 0, path, update).await?;
    let theirs = match updated(sides, 1, path, update).await {
        Ok(theirs) => Ok(theirs),
        // The connection may have been closed by another update.
        Err(_) => updated(sides, 1, path, update).await,
    };
    let Ok(theirs) = theirs else {
        return Ok(Verdict { accepted: false, difference: Difference::Unanswered });
    };
    let mut answers = [ours, theirs];
    let accepted = answers[1].is_success();
    if answers[0] == answers[1] {
        return Ok(Verdict { accepted, difference: Difference::None });
    }
    answers.iter_mut().for_each(|answer| shown::hide(&mut answer.body));
    let [left, right] = &answers;
    if left == right {
        return Ok(Verdict { accepted, difference: Difference::Shown });
    }
    let (only_left, only_right) = (report::only_of(left, right), report::only_of(right, left));
    let how = format!("{} and {}\n    {only_left}\n    {only_right}", left.status, right.status);
    let difference = Difference::Is(how);
    Ok(Verdict { accepted, difference })
}

/// The answer to an update, in comparable form.
async fn updated(
    sides: &[Side<'_>; 2],
    number: usize,
    path: &str,
    update: &Update,
) -> anyhow::Result<Answer> {
    let side = &sides[number];
    let mut change = update.change.clone();
    if let Some(to) = &mut change.to {
        in_words_of(&sides[1].stored, &side.stored, to);
    }
    let path = match update.subresource {
        "" => path.to_owned(),
        subresource => format!("{path}/{subresource}"),
    };
    let mut object = side.stored.clone();
    for attempt in 0.. {
        change.apply(&mut object);
        let request = Request::new("PUT", path.as_str()).with("dryRun", "All").body(media::JSON, object);
        let answer = side.server.send(&request).await?;
        let conflicting = ["resourceVersion", "uid"].map(Some);
        let expected = change.to.is_some() && conflicting.contains(&change.path.last().map(String::as_str));
        if answer.status != 409 || expected || attempt == TRIES {
            return Ok(full_objects::comparable(&mut side.normaliser.clone(), &request, answer));
        }
        object = side.server.send(&Request::new("GET", path.as_str())).await?.body;
    }
    unreachable!("the last attempt returns")
}

/// Says a value that was taken from the object on one server as the other has it: what is random there is different.
fn in_words_of(theirs: &Value, ours: &Value, value: &mut Value) {
    let mut words = Vec::new();
    differing(theirs, ours, &mut words);
    replace(&words, value);
}

fn differing<'a>(theirs: &'a Value, ours: &'a Value, words: &mut Vec<(&'a Value, &'a Value)>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, theirs) in theirs {
                ours.get(name).into_iter().for_each(|ours| differing(theirs, ours, words));
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            theirs.iter().zip(ours).for_each(|(theirs, ours)| differing(theirs, ours, words));
        }
        (theirs, ours) if theirs != ours => words.push((theirs, ours)),
        _ => {}
    }
}

fn replace(words: &[(&Value, &Value)], value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(words, field)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(words, item)),
        Value::String(text) => {
            for (theirs, ours) in words {
                if let (Some(theirs), Some(ours)) = (theirs.as_str(), ours.as_str()) {
                    *text = text.replace(theirs, ours);
                }
            }
        }
        scalar => {
            if let Some((_, ours)) = words.iter().find(|(theirs, _)| **theirs == *scalar) {
                *scalar = (*ours).clone();
            }
        }
    }
}

impl Subject {
    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.object["metadata"]["name"].as_str().unwrap_or_default())
    }
}

/// Creates the object, anew if an earlier run left it.
async fn created<'a>(server: &'a Server, subject: &Subject) -> anyhow::Result<Side<'a>> {
    let mut normaliser = Normaliser::default();
    let path = subject.path();
    let request = Request::new("POST", subject.collection.as_str()).body(media::JSON, subject.object.clone());
    let mut answer = server.send(&request).await?;
    for _ in 0..TRIES {
        if answer.status != 409 {
            break;
        }
        deleted(server, &path).await?;
        Clock::real().sleep(Duration::from_millis(200)).await;
        answer = server.send(&request).await?;
    }
    ensure!(answer.is_success(), "{} does not create {}: {answer}", server.name, subject.title);
    full_objects::comparable(&mut normaliser, &request, answer);
    if !subject.status.is_null() {
        let status = json!({"status": subject.status});
        let request = Request::new("PATCH", format!("{path}/status")).body(media::MERGE_PATCH, status);
        let answer = server.send(&request).await?;
        full_objects::comparable(&mut normaliser, &request, answer);
    }
    let read = Request::new("GET", path.as_str());
    let mut answer = server.send(&read).await?;
    for _ in 0..100 {
        let settled = match answer.body["kind"].as_str() {
            Some("CustomResourceDefinition") => answer.body["status"].to_string().contains("Established"),
            _ => true,
        };
        if settled {
            break;
        }
        Clock::real().sleep(Duration::from_millis(50)).await;
        answer = server.send(&read).await?;
    }
    let stored = answer.body.clone();
    full_objects::comparable(&mut normaliser, &read, answer);
    Ok(Side { server, normaliser, stored })
}

/// Deletes the object at once, whatever holds it.
async fn deleted(server: &Server, path: &str) -> anyhow::Result<()> {
    let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    server.send(&Request::new("DELETE", path).body(media::JSON, now)).await?;
    let release = json!({"metadata": {"finalizers": null}});
    server.send(&Request::new("PATCH", path).body(media::MERGE_PATCH, release)).await?;
    Ok(())
}
