//! Conversion webhooks of custom resources: what they are asked, and what their answers do to each verb.
//!
//! The servers are real ones. The reference converts objects for its caches, too, and at other times: which reviews it sends is compared
//! only where a request alone brings them about.

mod admission;
mod apply;
mod faults;
mod metadata;
mod reads;
mod reviews;
mod selectors;
mod storage;
mod writes;

use super::webhooks::server::{Reply, Server};
use super::{Behaviour, Script};
use crate::compare::exchange::media;
use crate::compare::{Answer, Request};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn behaviours() -> Vec<Behaviour> {
    [
        reads::behaviours(),
        writes::behaviours(),
        apply::behaviours(),
        selectors::behaviours(),
        storage::behaviours(),
        metadata::behaviours(),
        reviews::behaviours(),
        faults::behaviours(),
        admission::behaviours(),
    ]
    .concat()
}

/// How a webhook answers the request of a review.
type Answering = Arc<dyn Fn(&Value) -> Reply + Send + Sync>;

/// A kind of two versions, v1 and v2, and the webhook that converts between them.
struct Widgets {
    /// Where the objects are, in v1, in which they are stored unless a behaviour says otherwise.
    v1: String,
    /// The same in v2.
    v2: String,
    /// Where the definition is.
    definition: String,
    group: String,
    server: Server,
    answering: Arc<Mutex<Answering>>,
}

impl Widgets {
    /// Defines the kind; `change` changes its definition before.
    async fn define(script: &mut Script, change: impl FnOnce(&mut Value)) -> anyhow::Result<Self> {
        let answering: Arc<Mutex<Answering>> = Arc::new(Mutex::new(Arc::new(converted)));
        let answer = answering.clone();
        let server = Server::start(move |_, request| {
            let answer = answer.lock().clone();
            answer(request)
        })
        .await?;
        script.name(&server.address().to_string(), "server");
        let mut definition =
            definition(script, &json!({"url": server.url("convert"), "caBundle": Server::bundle()}));
        change(&mut definition);
        let defined = script.define(definition).await?;
        let v2 = defined.objects.replace("/v1/", "/v2/");
        script.until(&v2, 200).await?;
        Ok(Self {
            v1: defined.objects,
            v2,
            definition: defined.path,
            group: defined.group,
            server,
            answering,
        })
    }

    /// The usual kind.
    async fn usual(script: &mut Script) -> anyhow::Result<Self> {
        Self::define(script, |_| {}).await
    }

    /// From now on the webhook answers so.
    fn answer(&self, answering: impl Fn(&Value) -> Reply + Send + Sync + 'static) {
        *self.answering.lock() = Arc::new(answering);
    }

    /// From now on the webhook answers with what this makes of each good answer's objects.
    fn spoil(&self, spoil: impl Fn(&mut Vec<Value>) + Send + Sync + 'static) {
        self.answer(move |request| {
            let mut objects = objects(request);
            spoil(&mut objects);
            success(objects)
        });
    }

    fn first(&self, name: &str, fields: Value) -> Value {
        object(&self.group, "v1", name, fields)
    }

    fn second(&self, name: &str, fields: Value) -> Value {
        object(&self.group, "v2", name, fields)
    }

    /// Makes objects in v1, without noting it down.
    async fn make(&self, script: &mut Script, names: &[&str]) -> anyhow::Result<()> {
        for (number, name) in names.iter().enumerate() {
            let color = if number % 2 == 0 { "green" } else { "yellow" };
            let spec = json!({"size": number + 1, "color": color});
            let body = self.first(name, json!({"spec": spec, "labels": {"number": number.to_string()}}));
            let request = Request::new("POST", &self.v1).body(media::JSON, body);
            let answer = script.quiet(request).await?;
            anyhow::ensure!(answer.is_success(), "an object was refused: {answer}");
        }
        Ok(())
    }

    fn one(&self, name: &str) -> String {
        format!("{}/{name}", self.v1)
    }

    fn two(&self, name: &str) -> String {
        format!("{}/{name}", self.v2)
    }
}

fn object(group: &str, version: &str, name: &str, fields: Value) -> Value {
    let mut object =
        json!({"apiVersion": format!("{group}/{version}"), "kind": "Widget", "metadata": {"name": name}});
    for (field, value) in fields.as_object().into_iter().flatten() {
        match field.as_str() {
            "labels" | "annotations" | "finalizers" | "resourceVersion" | "uid" => {
                object["metadata"][field] = value.clone()
            }
            _ => object[field] = value.clone(),
        }
    }
    object
}

/// The definition, with a webhook at `client`: v1 has `size` and `color` where v2 has `amount` and `hue`.
fn definition(script: &Script, client: &Value) -> Value {
    let group = script.group();
    let version = |name: &str, number: &str, word: &str, default: &str, count: &str, stored: bool| {
        json!({
            "name": name, "served": true, "storage": stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    number: {"type": "integer"}, word: {"type": "string", "default": default},
                    "list": {"type": "array", "items": {"type": "string"}},
                }},
                "status": {"type": "object", "properties": {count: {"type": "integer"}}},
            }}},
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": format!(".spec.{number}"), "statusReplicasPath": format!(".status.{count}"),
            }},
            "additionalPrinterColumns": [{"name": word, "type": "string", "jsonPath": format!(".spec.{word}")}],
            "selectableFields": [{"jsonPath": format!(".spec.{word}")}],
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                version("v1", "size", "color", "red", "ready", true),
                version("v2", "amount", "hue", "blue", "count", false),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": client, "conversionReviewVersions": ["v1"],
            }},
        },
    })
}

/// What becomes of one object in the version that is asked for.
fn convert(object: &Value, api_version: &str) -> Value {
    let (mut object, second) = (object.clone(), api_version.ends_with("/v2"));
    object["apiVersion"] = json!(api_version);
    for (part, one, two) in
        [("spec", "size", "amount"), ("spec", "color", "hue"), ("status", "ready", "count")]
    {
        let (from, to) = if second { (one, two) } else { (two, one) };
        if let Some(fields) = object.get_mut(part).and_then(Value::as_object_mut)
            && let Some(value) = fields.remove(from)
        {
            fields.insert(to.to_owned(), value);
        }
    }
    object
}

fn objects(request: &Value) -> Vec<Value> {
    let version = request["desiredAPIVersion"].as_str().unwrap_or_default();
    request["objects"].as_array().into_iter().flatten().map(|object| convert(object, version)).collect()
}

fn success(objects: Vec<Value>) -> Reply {
    Reply::Response(json!({"result": {"status": "Success"}, "convertedObjects": objects}))
}

/// The usual answer.
fn converted(request: &Value) -> Reply {
    success(objects(request))
}

/// Waits until nothing can be read in v2: the reference has a cache of it, which learns late that it cannot be filled.
async fn until_unreadable(script: &mut Script, widgets: &Widgets) -> anyhow::Result<()> {
    script.until_it(&widgets.v2, |answer: &Answer| answer.status >= 429).await
}

/// A behaviour about the usual kind.
fn about<F, Fut>(name: &str, body: F) -> Behaviour
where
    F: Fn(Script, Widgets) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = anyhow::Result<Script>> + Send + 'static,
{
    Behaviour::new(format!("conversion: {name}"), move |mut script| {
        let body = body.clone();
        async move {
            let widgets = Widgets::usual(&mut script).await?;
            body(script, widgets).await
        }
    })
}
