//! The script of a behaviour: it sends requests to one server and records the responses.

use crate::compare::exchange::{Events, media};
use crate::compare::{Answer, Request, Server, Side};
use crate::targets::Embedded;
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_apiserver::Identity;
use windlass_clock::Clock;
use windlass_harness::Target;

/// How long a definition may take to be served or to be gone, and events to come.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often that is looked at.
const PAUSE: Duration = Duration::from_millis(40);
/// How long a watch goes on that a change of its definition does not end.
const LINGER: Duration = Duration::from_secs(3);
/// Where definitions are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Sends requests to one server and writes down what comes back.
pub struct Script {
    side: Side,
    /// The same server as its administrator; what is not compared is asked by that one.
    administrator: Server,
    target: Target,
    pub(super) namespace: String,
    transcript: Vec<Value>,
    /// Cluster-wide things to remove at the end.
    leftovers: Vec<String>,
}

/// A custom resource that a script defined.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its group: the script's own.
    pub group: String,
    /// Where the definition is.
    pub path: String,
    /// Where its objects are, in the script's namespace.
    pub objects: String,
}

impl Definition {
    /// An object of the kind, of version v1.
    pub fn object(&self, name: &str, mut fields: Value) -> Value {
        fields["apiVersion"] = json!(format!("{}/v1", self.group));
        fields["kind"] = json!("Widget");
        fields["metadata"]["name"] = json!(name);
        fields
    }

    /// The path of an object.
    pub fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.objects)
    }
}

impl Script {
    pub(super) async fn begin(target: &Target) -> anyhow::Result<Self> {
        let mut side = Side::new(Server::new(target.environment(), target.client()));
        let namespace = target.namespace().await?;
        side.normaliser.named(&namespace, "namespace");
        let administrator = Server::new(target.environment(), target.client());
        let (target, transcript, leftovers) = (target.clone(), Vec::new(), Vec::new());
        Ok(Self { side, administrator, target, namespace, transcript, leftovers })
    }

    /// Removes what would burden the next behaviour, and gives back everything that was asked and answered.
    pub(super) async fn end(mut self) -> anyhow::Result<Value> {
        for path in std::mem::take(&mut self.leftovers) {
            self.quiet(Request::new("DELETE", path)).await?;
        }
        Ok(Value::Array(self.transcript))
    }

    /// The path of a namespaced collection, such as `/api/v1` and `configmaps`.
    pub fn path(&self, prefix: &str, plural: &str) -> String {
        format!("{prefix}/namespaces/{}/{plural}", self.namespace)
    }

    /// Where the script's config maps are.
    pub fn maps(&self) -> String {
        self.path("/api/v1", "configmaps")
    }

    /// The behaviour's own namespace. No other behaviour has a name that begins with it.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// An API group that no other behaviour uses.
    pub fn group(&self) -> String {
        format!("{}.example.com", self.namespace)
    }

    /// Sends a request; the answer is part of what is compared.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn send(&mut self, request: Request) -> anyhow::Result<Answer> {
        let mut answer = self.side.ask(&request).await?;
        hide_identity(&mut answer.body);
        let shown = request.to_string().replace(&self.namespace, "<namespace>");
        self.transcript.push(json!({
            "request": shown, "status": answer.status, "warnings": answer.warnings, "body": answer.body,
        }));
        Ok(answer)
    }

    /// Sends a request whose answer is not compared.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn quiet(&mut self, request: Request) -> anyhow::Result<Answer> {
        self.side.ask_through(&self.administrator, &request).await
    }

    /// The same for what may be answered in several ways: nothing is learnt from the answer.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn unseen(&self, request: &Request) -> anyhow::Result<Answer> {
        self.administrator.send(request).await
    }

    /// Writes an answer down that was changed to be comparable.
    pub fn note(&mut self, answer: &Answer) {
        self.transcript.push(json!({"status": answer.status, "body": answer.body}));
    }

    /// Writes down what somebody else was asked.
    pub(super) fn note_reviews(&mut self, mut told: Vec<Value>) {
        told.iter_mut().for_each(|review| self.side.normaliser.value(review, ""));
        self.transcript.push(json!({"asked": told}));
    }

    /// Gives a name to what is random.
    pub(super) fn name(&mut self, real: &str, kind: &str) {
        self.side.normaliser.named(real, kind);
    }

    /// Removes this at the end.
    pub fn leave(&mut self, path: String) {
        self.leftovers.push(path);
    }

    /// Sends what is compared as a service account of the script's namespace from now on. Gives back its user name.
    ///
    /// # Errors
    /// When there can be none.
    pub async fn become_account(&mut self, name: &str) -> anyhow::Result<String> {
        let accounts = self.path("/api/v1", "serviceaccounts");
        let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": name}});
        self.quiet(Request::new("POST", &accounts).body(media::JSON, account)).await?;
        let client = match self.target.extra::<Embedded>() {
            Some(embedded) => {
                let identity = Identity::service_account(&self.namespace, name);
                kube::Client::new(embedded.api.service(identity), "default")
            }
            None => {
                let wanted =
                    json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}});
                let path = format!("{accounts}/{name}/token");
                let request = Request::new("POST", path).body(media::JSON, wanted);
                let answer = self.administrator.send(&request).await?;
                let token = answer.body["status"]["token"].as_str().context("no token was given")?;
                self.target.client_with_token(token).await?
            }
        };
        self.side.server = Server::new(self.target.environment(), client);
        Ok(format!("system:serviceaccount:{}:{name}", self.namespace))
    }

    /// Creates.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn post(&mut self, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.send(Request::new("POST", path).body(media::JSON, body)).await
    }

    /// Reads.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn get(&mut self, path: impl Into<String>) -> anyhow::Result<Answer> {
        self.send(Request::new("GET", path)).await
    }

    /// Updates.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn put(&mut self, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.send(Request::new("PUT", path).body(media::JSON, body)).await
    }

    /// Sends a merge patch.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn merge(&mut self, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.send(Request::new("PATCH", path).body(media::MERGE_PATCH, body)).await
    }

    /// Sends a strategic merge patch.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn strategic(&mut self, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.send(Request::new("PATCH", path).body(media::STRATEGIC_PATCH, body)).await
    }

    /// Sends a JSON patch.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn edit(&mut self, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.send(Request::new("PATCH", path).body(media::JSON_PATCH, body)).await
    }

    /// Applies as this manager.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn apply(&mut self, path: &str, manager: &str, body: Value) -> anyhow::Result<Answer> {
        self.send(Request::new("PATCH", path).with("fieldManager", manager).body(media::APPLY_PATCH, body))
            .await
    }

    /// Deletes, with options unless they are null.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn delete(&mut self, path: &str, options: Value) -> anyhow::Result<Answer> {
        let request = Request::new("DELETE", path);
        self.send(if options.is_null() { request } else { request.body(media::JSON, options) }).await
    }

    /// Makes a config map with these labels, without noting it down.
    ///
    /// # Errors
    /// When it was refused.
    pub async fn map(&mut self, name: &str, labels: Value) -> anyhow::Result<Answer> {
        let path = self.maps();
        let body =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}});
        let answer = self.quiet(Request::new("POST", path).body(media::JSON, body)).await?;
        ensure!(answer.is_success(), "a config map was refused: {answer}");
        Ok(answer)
    }

    /// A definition of `Widget` in the script's own group, with this schema and a status subresource.
    pub fn definition(&self, schema: Value) -> Value {
        let group = self.group();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }],
            },
        })
    }

    /// The same, where only the schema of `spec` is of interest.
    pub fn with_spec(&self, spec: Value) -> Value {
        self.definition(json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}}}))
    }

    /// Defines `Widget` and waits until it is served. The definition itself is not compared.
    ///
    /// # Errors
    /// When the definition was refused, or was not served in time.
    pub async fn define(&mut self, definition: Value) -> anyhow::Result<Definition> {
        let answer = self.quiet(Request::new("POST", DEFINITIONS).body(media::JSON, definition)).await?;
        ensure!(answer.is_success(), "the definition was refused: {answer}");
        let defined = self.defined();
        self.leftovers.push(defined.path.clone());
        self.until(&defined.objects, 200).await?;
        Ok(defined)
    }

    /// Where the script's definition and its objects are.
    pub fn defined(&self) -> Definition {
        let group = self.group();
        Definition {
            path: format!("{DEFINITIONS}/widgets.{group}"),
            objects: self.path(&format!("/apis/{group}/v1"), "widgets"),
            group,
        }
    }

    /// Tries a definition, and notes down what the server says.
    ///
    /// # Errors
    /// As [`Script::send`].
    pub async fn try_define(&mut self, definition: Value) -> anyhow::Result<Answer> {
        let answer = self.post(DEFINITIONS, definition).await?;
        if answer.is_success() {
            let name = answer.body["metadata"]["name"].as_str().unwrap_or_default();
            let name = name.replace("<namespace 0>", &self.namespace);
            self.leftovers.push(format!("{DEFINITIONS}/{name}"));
        }
        Ok(answer)
    }

    /// Waits until a path is answered with this status.
    ///
    /// # Errors
    /// When it is not within some seconds.
    pub async fn until(&mut self, path: &str, status: u16) -> anyhow::Result<()> {
        self.until_it(path, |answer| answer.status == status).await
    }

    /// Waits until a path is answered as wanted.
    ///
    /// # Errors
    /// When it is not within some seconds.
    pub async fn until_it(&mut self, path: &str, wanted: impl Fn(&Answer) -> bool) -> anyhow::Result<()> {
        self.until_asked(Request::new("GET", path), wanted).await
    }

    /// Sends a request again and again until it is answered as wanted.
    ///
    /// # Errors
    /// When it is not within some seconds.
    pub async fn until_asked(
        &mut self,
        request: Request,
        wanted: impl Fn(&Answer) -> bool,
    ) -> anyhow::Result<()> {
        let clock = Clock::real();
        let look = async {
            loop {
                let answer = self.quiet(request.clone()).await?;
                if wanted(&answer) {
                    return anyhow::Ok(());
                }
                clock.sleep(PAUSE).await;
            }
        };
        clock
            .timeout(PATIENCE, look)
            .await
            .with_context(|| format!("{request} is not answered as it should be"))?
    }

    /// Opens a watch that goes on while the script does; see [`Script::until_it_ends`].
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn open_watch(&mut self, request: Request) -> anyhow::Result<Events> {
        self.side.catch_up(&request).await?;
        self.side.server.watch(&self.side.normaliser.concrete(&request)).await
    }

    /// Reads what a watch still tells, until the server ends it.
    ///
    /// # Errors
    /// When it goes on for too long.
    pub async fn until_it_ends(&mut self, mut events: Events) -> anyhow::Result<()> {
        let read = async {
            let mut told = Vec::new();
            while let Some(event) = events.next().await? {
                told.push(event);
            }
            anyhow::Ok(told)
        };
        let told = Clock::real().timeout(PATIENCE, read).await.context("the watch goes on")??;
        self.tell(told);
        Ok(())
    }

    /// Reads this many events of a watch that goes on.
    ///
    /// # Errors
    /// When they do not come in time, or it ended.
    pub async fn events(&mut self, events: &mut Events, count: usize) -> anyhow::Result<()> {
        let read = async {
            let mut told = Vec::new();
            while told.len() < count {
                told.push(events.next().await?.context("the watch ended")?);
            }
            anyhow::Ok(told)
        };
        let told = Clock::real().timeout(PATIENCE, read).await.context("no event came")??;
        self.tell(told);
        Ok(())
    }

    /// Writes to what is watched until the watch tells of it, or has ended: which of both is told.
    ///
    /// # Errors
    /// When it does neither.
    pub async fn until_it_ends_or_goes_on(
        &mut self,
        mut events: Events,
        defined: &Definition,
    ) -> anyhow::Result<()> {
        let clock = Clock::real();
        let deadline = clock.moment() + LINGER;
        let (mut ended, mut writes) = (false, 0);
        while !ended && clock.moment() < deadline {
            writes += 1;
            let label = json!({"metadata": {"labels": {"writes": writes.to_string()}}});
            let request = Request::new("PATCH", defined.item("two")).body(media::MERGE_PATCH, label);
            self.side.server.send(&request).await?;
            // An event of a write may be on its way when the watch ends.
            ended = matches!(clock.timeout(PAUSE, events.next()).await, Ok(Ok(None)));
        }
        self.transcript.push(json!({"the watch ended": ended}));
        Ok(())
    }

    /// Reads a watch until `count` events came, or it ended.
    ///
    /// # Errors
    /// When there was no answer, or the events did not come in time.
    pub async fn watch(&mut self, request: Request, count: usize) -> anyhow::Result<()> {
        self.side.catch_up(&request).await?;
        let mut events = self.side.server.watch(&self.side.normaliser.concrete(&request)).await?;
        let read = async {
            let mut told = Vec::new();
            while told.len() < count
                && let Some(event) = events.next().await?
            {
                told.push(event);
            }
            anyhow::Ok(told)
        };
        let told = Clock::real().timeout(PATIENCE, read).await??;
        self.tell(told);
        Ok(())
    }

    fn tell(&mut self, mut told: Vec<Value>) {
        told.iter_mut().for_each(|event| self.side.normaliser.value(event, ""));
        self.transcript.push(json!({"watch": told}));
    }
}

/// Discovery shows the server's own address, and hashes of names that are random here.
fn hide_identity(body: &mut Value) {
    let addresses = body.get_mut("serverAddressByClientCIDRs").and_then(Value::as_array_mut);
    for address in addresses.into_iter().flatten() {
        address["serverAddress"] = json!("<address>");
    }
    let resources = body.get_mut("resources").and_then(Value::as_array_mut);
    for hash in resources.into_iter().flatten().filter_map(|resource| resource.get_mut("storageVersionHash"))
    {
        *hash = json!("<hash>");
    }
}
