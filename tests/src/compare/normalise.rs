//! What may differ between two servers that behave the same, and how it is taken out: identities and times get names by
//! the order in which they appear, versions by the number of our own writes up to them, and the version of a list that may be of any version not older
//! than one has none. Nothing else is touched.

use super::{Answer, Request};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use windlass_clock::{Clock, Timestamp};

/// What is known about one server's versions and identities.
#[derive(Debug, Clone, Default)]
pub struct Normaliser {
    /// The versions that our own writes got, in order; a version is known by how many of these are not after it.
    writes: Vec<u64>,
    /// Names of things that are random there: uids, generated names.
    names: BTreeMap<String, String>,
    /// Continue tokens, by what they say.
    tokens: BTreeMap<String, String>,
}

/// Within the last hour.
fn is_recent(text: &str) -> bool {
    let now = Clock::real().now();
    text.parse::<Timestamp>().is_ok_and(|time| time <= now && now.duration_since(time).as_secs() < 3600)
}

/// Stands for the version after our Nth write, in requests and answers.
fn version_name(number: usize) -> String {
    format!("<version {number}>")
}

impl Normaliser {
    /// How many of our writes are known.
    pub fn writes(&self) -> usize {
        self.writes.len()
    }

    /// The request as this server must get it: `<version N>` replaced by its own version, `<uid N>` by its own uid.
    pub fn concrete(&self, request: &Request) -> Request {
        let mut request = request.clone();
        let segments: Vec<String> = request.path.split('/').map(|part| self.concrete_text(part)).collect();
        request.path = segments.join("/");
        for (_, value) in &mut request.query {
            *value = self.concrete_text(value);
        }
        self.concrete_value(&mut request.body);
        request
    }

    fn concrete_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let port = text.starts_with("<node port ");
                *text = self.concrete_text(text);
                if port && let Ok(number) = text.parse::<u16>() {
                    *value = number.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.concrete_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.concrete_value(field)),
            _ => {}
        }
    }

    fn concrete_text(&self, text: &str) -> String {
        if let Some(number) = text.strip_prefix("<version ").and_then(|rest| rest.strip_suffix('>')) {
            let number: usize = number.parse().unwrap_or(0);
            // Before our first write there is no version of ours; 1 is before everything and still a version.
            return number.checked_sub(1).and_then(|index| self.writes.get(index)).unwrap_or(&1).to_string();
        }
        if let Some(real) = self.tokens.get(text) {
            return real.clone();
        }
        if text.starts_with('<')
            && let Some((real, _)) = self.names.iter().find(|(_, name)| *name == text)
        {
            return real.clone();
        }
        text.to_owned()
    }

    /// An answer in comparable form. Versions in a successful answer to a write are learnt first.
    pub fn answer(&mut self, request: &Request, mut answer: Answer) -> Answer {
        if request.method != "GET"
            && answer.is_success()
            && answer.body.pointer("/metadata/uid").is_some()
            && let Some(version) = answer.body.pointer("/metadata/resourceVersion").and_then(Value::as_str)
            && let Ok(version) = version.parse()
            && self.writes.last().is_none_or(|last| *last < version)
        {
            self.writes.push(version);
        }
        if let (Some(prefix), Some(name)) =
            (request.body.pointer("/metadata/generateName"), answer.body.pointer("/details/name"))
        {
            let metadata = serde_json::json!({"generateName": prefix, "name": name});
            self.learn_generated(metadata.as_object().expect("it is one"));
        }
        if may_be_newer(request)
            && answer.body.get("items").is_some()
            && let Some(version) = answer.body.pointer_mut("/metadata/resourceVersion")
        {
            *version = "<any version>".into();
        }
        // Labels quote it, and come before it.
        if let Some(uid) = answer.body.pointer("/metadata/uid").and_then(Value::as_str) {
            let uid = uid.to_owned();
            self.named(&uid, "uid");
        }
        self.value(&mut answer.body, "");
        sort_causes(&mut answer.body);
        for warning in &mut answer.warnings {
            *warning = self.text(warning);
        }
        sort_forgiven(&mut answer.warnings);
        answer
    }

    /// A watch event or any other object in comparable form.
    pub fn value(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(fields) => {
                self.learn_generated(fields);
                sort_namespace_finalizers(fields);
                // The keys of owned list items quote uids.
                if fields.keys().any(|key| key.starts_with("k:{")) {
                    *fields = std::mem::take(fields)
                        .into_iter()
                        .map(|(key, field)| (self.text(&key), field))
                        .collect();
                }
                for (key, field) in fields.iter_mut() {
                    self.value(field, key);
                }
            }
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.value(item, key));
                if key == "managedFields" {
                    sort_managers(items);
                }
            }
            Value::String(text) => match key {
                "resourceVersion" => *text = self.version(text),
                "uid" if !text.is_empty() => *text = self.named(text, "uid"),
                "creationTimestamp"
                | "deletionTimestamp"
                | "time"
                | "lastTransitionTime"
                | "lastPhaseTransitionTime" => {
                    *text = "<time>".into();
                }
                // One that a request names is compared; what the server says is about now.
                "lastUpdateTime" if is_recent(text) => *text = "<time>".into(),
                "continue" if !text.is_empty() => *text = self.token(text),
                // Which address a Service gets is chance, and so is what the volume of a pod's token is called.
                "clusterIP" | "clusterIPs" if text.parse::<IpAddr>().is_ok() => {
                    *text = self.named(text, "address");
                }
                "name" if text.starts_with("kube-api-access-") => *text = self.named(text, "volume"),
                _ => *text = self.text(text),
            },
            // So is the port of the nodes.
            Value::Number(port) if key == "nodePort" => {
                *value = self.named(&port.to_string(), "node port").into();
            }
            _ => {}
        }
    }

    /// A name that ends in what the server chose is known by the order of its appearance.
    fn learn_generated(&mut self, metadata: &serde_json::Map<String, Value>) {
        let text = |field: &str| metadata.get(field).and_then(Value::as_str);
        if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
            && name.len() == prefix.len() + 5
            && name.starts_with(prefix)
        {
            let name = name.to_owned();
            self.named(&name, "generated");
        }
    }

    fn version(&self, text: &str) -> String {
        match text.parse::<u64>() {
            Ok(version) => version_name(self.writes.partition_point(|write| *write <= version)),
            Err(_) => text.to_owned(),
        }
    }

    /// The name of something random, given at its first appearance.
    pub fn named(&mut self, real: &str, kind: &str) -> String {
        let number = self.names.len();
        self.names.entry(real.to_owned()).or_insert_with(|| format!("<{kind} {number}>")).clone()
    }

    /// A continue token is known by what it says: which version goes on after which key. Its version may be of someone
    /// else's write.
    fn token(&mut self, real: &str) -> String {
        let parsed = BASE64_URL_SAFE_NO_PAD
            .decode(real)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let said = parsed.and_then(|token| {
            let start = self.text(token["start"].as_str()?.trim_start_matches('/'));
            Some(format!("<token {} {start}>", self.version(&token["rv"].to_string())))
        });
        let name = said.unwrap_or_else(|| "<odd token>".to_owned());
        self.tokens.insert(name.clone(), real.to_owned());
        name
    }

    /// Free text may quote what is random, and times.
    fn text(&mut self, text: &str) -> String {
        let mut text = self.with_quoted_object(text).unwrap_or_else(|| text.to_owned());
        for (real, name) in &self.names {
            if text.contains(real.as_str()) {
                text = text.replace(real.as_str(), name);
            }
        }
        let text = without_review_uid(text);
        without_undeclared(sorted_lines(&without_times(&self.without_versions(&text))))
    }

    /// An error about a patch quotes the whole patched object: its versions and times are taken out too.
    fn with_quoted_object(&mut self, text: &str) -> Option<String> {
        let (head, rest) = text.split_at(text.find("Invalid value: \"{")? + "Invalid value: ".len());
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let mut object: Value = serde_json::from_str(&strings.next()?.ok()?).ok()?;
        let tail = &rest[strings.byte_offset()..];
        self.value(&mut object, "");
        Some(format!("{head}{object}{tail}"))
    }

    /// A failed precondition quotes versions, most of them in brackets.
    fn without_versions(&self, text: &str) -> String {
        if !text.contains("ResourceVersion") {
            return text.to_owned();
        }
        if let Some((head, rest)) = text.split_once("ResourceVersion in precondition: ")
            && let Some((wanted, found)) = rest.split_once(", ResourceVersion in object meta: ")
        {
            return format!("{head}{} against {}", self.version(wanted), self.version(found));
        }
        let mut parts = text.split('(');
        let mut result = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            result.push('(');
            match part.split_once(')') {
                Some((version, rest)) => result.push_str(&format!("{}){rest}", self.version(version))),
                None => result.push_str(part),
            }
        }
        result
    }
}

/// The answer of a webhook that has another UID than the question quotes both.
fn without_review_uid(text: String) -> String {
    const BEFORE: &str = "expected response.uid=\"";
    const LENGTH: usize = 36;
    match text.find(BEFORE).map(|at| at + BEFORE.len()) {
        Some(at) if text.is_char_boundary(at + LENGTH) => {
            format!("{}<uid>{}", &text[..at], &text[at + LENGTH..])
        }
        _ => text,
    }
}

/// Is this a list that may be of a newer version than it asks for? The reference answers it from a cache, whose version
/// moves with the writes of everyone.
pub fn may_be_newer(request: &Request) -> bool {
    let query = |name: &str| request.query.iter().find(|(known, _)| *known == name);
    let version = query("resourceVersion").map_or("", |(_, version)| version);
    let exact = match query("resourceVersionMatch") {
        Some((_, wanted)) => wanted == "Exact",
        None => query("limit").is_some() && version != "0",
    };
    request.method == "GET" && query("watch").is_none() && !version.is_empty() && !exact
}

/// `using v1 at 2026-01-01T00:00:00Z` quotes a time.
fn without_times(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" at 20") {
        let (before, after) = rest.split_at(at + 4);
        let end = after.find('Z').filter(|end| *end <= 30);
        result.push_str(before);
        match end {
            Some(end) => {
                result.push_str("<time>");
                rest = &after[end + 1..];
            }
            None => rest = after,
        }
    }
    result.push_str(rest);
    result
}

/// What is wrong and forgiven is found in the order of a Go map, as causes are.
fn sort_forgiven(warnings: &mut [String]) {
    if warnings.iter().all(|warning| warning.contains(": Invalid value: ")) {
        warnings.sort();
    }
}

/// Several causes come in the order of a Go map, and the message repeats them in it; the set is what is compared.
fn sort_causes(body: &mut Value) {
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    if causes.len() < 2 {
        return;
    }
    causes.sort_by_key(ToString::to_string);
    if let Some(message) = body.get_mut("message")
        && let Some(text) = message.as_str()
    {
        let head = text.split_once('[').map_or(text, |(head, _)| head).to_owned();
        *message = Value::String(head);
    }
}

/// Entries are sorted by their times, which have whole seconds: two servers may see a second end between different
/// steps. The set is what is compared here; the order has tests of its own.
fn sort_managers(entries: &mut [Value]) {
    let key = |entry: &Value| {
        ["operation", "manager", "apiVersion", "subresource"].map(|key| entry[key].to_string())
    };
    entries.sort_by_key(key);
}

/// A field that is not declared ends the look at its siblings, and these come in the order of a Go map: which of them
/// were found wrong before is left out.
fn without_undeclared(text: String) -> String {
    const UNDECLARED: &str = "field not declared in schema";
    match text.split_once("): ") {
        Some((head, list)) if head.starts_with("failed to ") && list.contains(UNDECLARED) => {
            format!("{head}): {UNDECLARED}, among others")
        }
        _ => text,
    }
}

/// The first deletion of a namespace rewrites its finalizers in the order of a Go map; the set is what is compared. A
/// namespace is known by the label that every namespace has.
fn sort_namespace_finalizers(metadata: &mut serde_json::Map<String, Value>) {
    let label = metadata.get("labels").and_then(|labels| labels.get("kubernetes.io/metadata.name"));
    if label.is_some()
        && let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut)
    {
        finalizers.sort_by_key(ToString::to_string);
    }
}

/// Errors of one kind are listed in the order of a Go map, a line each.
fn sorted_lines(text: &str) -> String {
    let Some((head, list)) = text.split_once("errors:\n") else { return text.to_owned() };
    let mut lines: Vec<&str> = list.split('\n').collect();
    lines.sort_unstable();
    format!("{head}errors:\n{}", lines.join("\n"))
}
