//! Random requests about two objects of a kind, by several managers, through all of its versions and subresources.

use super::draw::draw;
use super::merge::{json_operation, merge_patch, strategic_patch};
use super::{Kind, piece};
use crate::compare::exchange::media;
use crate::compare::{Random, Request, objects};
use serde_json::{Value, json};

const MANAGERS: [&str; 3] = ["alice", "bob", "carol"];
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Makes requests about objects of one kind.
pub struct Requests {
    /// The versions of the kind.
    pub versions: Vec<Kind>,
    /// Where its objects are.
    pub namespace: String,
    /// Their names.
    pub names: [String; 2],
}

/// One request in the making.
struct Draft<'a> {
    random: &'a mut Random,
    kind: &'a Kind,
    namespace: &'a str,
    name: &'a str,
    manager: &'static str,
    status: bool,
    last: Option<&'a Value>,
}

impl Requests {
    /// A random request about the object with this number, given what it was last seen as.
    pub fn request(&self, random: &mut Random, number: usize, last: Option<&Value>) -> Request {
        let kind = random.pick(&self.versions);
        let mut draft = Draft {
            kind,
            namespace: &self.namespace,
            name: &self.names[number],
            manager: random.pick::<&str>(&MANAGERS),
            status: kind.has_status() && last.is_some() && random.chance(20),
            random,
            last,
        };
        let request = match (draft.random.below(20), last) {
            (0, _) | (1..=6, None) => draft.create(),
            (1, Some(_)) => Request::new("GET", draft.item()),
            (2..=4, Some(last)) => draft.replace(last),
            (5 | 6, _) => draft.merge(),
            (7 | 8, _) => draft.json_patch(),
            (9..=12, _) => draft.strategic(),
            (13, Some(_)) => draft.scale(),
            (14, Some(_)) if draft.random.chance(60) => draft.delete(),
            _ => draft.apply(),
        };
        draft.options(request)
    }
}

impl Draft<'_> {
    fn collection(&self) -> String {
        self.kind.collection(self.namespace)
    }

    fn item(&self) -> String {
        let part = if self.status { "/status" } else { "" };
        format!("{}/{}{part}", self.collection(), self.name)
    }

    /// A whole object; its status only where it counts.
    fn fresh(&mut self) -> Value {
        let mut object = draw(self.kind.template, self.random);
        if !self.status
            && !self.random.chance(5)
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        object["apiVersion"] = json!(self.kind.api_version);
        object["kind"] = json!(self.kind.kind);
        object["metadata"] = draw(piece("metadata"), self.random);
        object["metadata"]["name"] = json!(self.name);
        self.finish(&mut object);
        object
    }

    /// Puts in what a template cannot know, and now and then something wrong.
    fn finish(&mut self, body: &mut Value) {
        place(body, self.namespace);
        if self.random.chance(6) {
            spoil(body, self.random, 0);
        }
    }

    fn create(&mut self) -> Request {
        let object = self.fresh();
        Request::new("POST", self.collection()).body(media::JSON, object)
    }

    fn apply(&mut self) -> Request {
        let mut intent = self.fresh();
        if let (Some(changes), Some(_)) = (self.kind.changes, self.last) {
            let template = intent["spec"].get("template").cloned();
            intent["spec"] = draw(&changes["spec!"], self.random);
            if let Some(template) = template {
                intent["spec"]["template"] = template;
            }
        }
        // Who made the object would take back what is not mentioned now.
        let changing = self.kind.changes.is_some() && self.last.is_some();
        let manager = if changing { "dora" } else { self.manager };
        let mut request = Request::new("PATCH", self.item()).body(media::APPLY_PATCH, intent);
        if self.random.chance(15) {
            request = request.as_yaml();
        }
        if self.random.chance(50) {
            request = request.with("force", "true");
        }
        request.with("fieldManager", manager)
    }

    fn replace(&mut self, last: &Value) -> Request {
        let mut object = self.fresh();
        // Half of the updates are of what was read, as clients do it.
        let read = self.random.chance(50) || self.kind.changes.is_some();
        if read && last["apiVersion"] == object["apiVersion"] {
            let mut read = last.clone();
            let patch = self.merged();
            json_merge(&mut read, &patch);
            if let Some(metadata) = read["metadata"].as_object_mut() {
                metadata.remove("managedFields");
                metadata.remove("creationTimestamp");
                metadata.remove("deletionTimestamp");
            }
            place(&mut read, self.namespace);
            object = read;
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            match (self.random.chance(80), last["metadata"].get("resourceVersion")) {
                (true, Some(version)) => metadata.insert("resourceVersion".to_owned(), version.clone()),
                _ => metadata.remove("resourceVersion"),
            };
        }
        Request::new("PUT", self.item()).body(media::JSON, object)
    }

    /// A merge patch of what may change. Lists are replaced whole, which those of a kind that changes little are not.
    fn merged(&mut self) -> Value {
        let mut patch = merge_patch(self.kind.changing(), self.random, false);
        if self.kind.changes.is_some()
            && let Some(spec) = patch.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.retain(|_, value| !value.is_array());
        }
        patch
    }

    fn merge(&mut self) -> Request {
        let mut patch = self.merged();
        if self.random.chance(30) {
            patch["metadata"] = merge_patch(piece("metadata"), self.random, false);
        }
        self.finish(&mut patch);
        Request::new("PATCH", self.item()).body(media::MERGE_PATCH, patch)
    }

    fn strategic(&mut self) -> Request {
        let mut patch = strategic_patch(self.kind.changing(), &self.kind.go_type(), self.random, false);
        if patch.get("$patch").is_some() || patch.get("$retainKeys").is_some() {
            // The whole object is replaced: it needs its name, and to say what it is.
            patch = strategic_patch(piece("metadata"), OBJECT_META, self.random, false);
            patch = json!({"metadata": patch});
        } else if self.random.chance(30) {
            patch["metadata"] = strategic_patch(piece("metadata"), OBJECT_META, self.random, false);
        }
        let versioned = self.random.chance(10) && !patch.to_string().contains("$patch");
        // Nor are they replaced.
        if self.kind.changes.is_some()
            && patch["spec"].to_string().contains("$patch")
            && let Some(fields) = patch.as_object_mut()
        {
            fields.remove("spec");
        }
        if versioned && let Some(version) = self.last.map(|last| &last["metadata"]["resourceVersion"]) {
            patch["metadata"]["resourceVersion"] = version.clone();
        }
        if versioned {
            place(&mut patch, self.namespace);
        } else {
            self.finish(&mut patch);
        }
        // Errors about directives quote what stands beside them, and nobody knows versions by the numbers in a text.
        if !versioned && self.random.chance(4) {
            confuse(&mut patch, self.random);
        }
        Request::new("PATCH", self.item()).body(media::STRATEGIC_PATCH, patch)
    }

    fn json_patch(&mut self) -> Request {
        let mut operations = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let operation = json_operation(self.kind.changing(), self.random);
            // Containers do not come and go in what changes little.
            operations.push(match operation["path"].as_str() {
                Some(path) if self.kind.changes.is_some() && path.starts_with("/spec/containers") => {
                    json!({"op": "replace", "path": "/spec/containers/0/image", "value": "i:3"})
                }
                _ => operation,
            });
        }
        let mut patch = Value::Array(operations);
        place(&mut patch, self.namespace);
        Request::new("PATCH", self.item()).body(media::JSON_PATCH, patch)
    }

    fn scale(&mut self) -> Request {
        let item = format!("{}/{}/scale", self.collection(), self.name);
        // After a scale, the reference rewrites what someone applied once more, for nothing.
        let applied =
            self.last.is_some_and(|last| last["metadata"]["managedFields"].to_string().contains("Apply"));
        if !self.kind.has_scale() || applied {
            return Request::new("GET", self.item());
        }
        // Hardly ever the same again: then the reference gives the owners of the replicas other names each time.
        let replicas = json!({"replicas": self.random.below(1000)});
        let whole = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": self.name, "namespace": self.namespace}, "spec": replicas,
        });
        match self.random.below(6) {
            0 => Request::new("GET", item),
            1 => Request::new("PUT", item).body(media::JSON, whole),
            2 => Request::new("PATCH", item).body(media::MERGE_PATCH, json!({"spec": replicas})),
            3 => Request::new("PATCH", item).body(media::STRATEGIC_PATCH, json!({"spec": replicas})),
            4 => Request::new("PATCH", item).body(
                media::JSON_PATCH,
                json!([{"op": "replace", "path": "/spec/replicas", "value": replicas["replicas"]}]),
            ),
            _ => {
                let request = Request::new("PATCH", item).body(media::APPLY_PATCH, whole);
                let force = if self.random.chance(50) { "true" } else { "false" };
                request.with("fieldManager", self.manager).with("force", force)
            }
        }
    }

    fn delete(&mut self) -> Request {
        let request = Request::new("DELETE", format!("{}/{}", self.collection(), self.name));
        let uid = self.last.map_or(Value::Null, |last| last["metadata"]["uid"].clone());
        let version = self.last.map_or(Value::Null, |last| last["metadata"]["resourceVersion"].clone());
        let options = match self.random.below(6) {
            0 => json!({"preconditions": {"uid": uid}}),
            1 => json!({"preconditions": {"resourceVersion": version}}),
            2 => json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}}),
            3 => json!({"propagationPolicy": self.random.pick(&["Orphan", "Foreground", "Background"])}),
            4 => json!({"dryRun": ["All"]}),
            _ => return request,
        };
        request.body(media::JSON, options)
    }

    fn options(&mut self, mut request: Request) -> Request {
        let random = &mut *self.random;
        if !matches!(request.method, "POST" | "PUT" | "PATCH") {
            return request;
        }
        if request.content_type != media::APPLY_PATCH && random.chance(60) {
            request = request.with("fieldManager", self.manager);
        }
        if random.chance(35) {
            request = request.with("fieldValidation", *random.pick(&["Strict", "Warn", "Ignore"]));
        }
        // The reference gives every rehearsed Service the same address.
        if random.chance(8) && self.kind.plural != "services" {
            request = request.with("dryRun", "All");
        }
        request
    }
}

/// Names the namespace where a template leaves it open.
fn place(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text == "$namespace" => *text = namespace.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| place(item, namespace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| place(field, namespace)),
        _ => {}
    }
}

/// Makes something wrong somewhere: an unknown field, or a value of another type.
fn spoil(value: &mut Value, random: &mut Random, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let here = depth > 0 && random.chance(25);
            if here && random.chance(60) {
                fields.insert("unknown".to_owned(), objects::anything(random, 1));
                return;
            }
            let at = random.below(fields.len());
            if let Some((name, field)) = fields.iter_mut().nth(at) {
                // What it is and how it is called has tests of its own.
                if depth == 0 && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    return;
                }
                // A directive of the wrong type makes the reference drop the connection.
                if name.starts_with('$') {
                    return;
                }
                // A port of any type is read as 0, and what numbers are ports no type says.
                if name.to_ascii_lowercase().contains("port") {
                    return;
                }
                if here {
                    *field = wrong(random);
                } else {
                    spoil(field, random, depth + 1);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            spoil(&mut items[at], random, depth + 1);
        }
        other => {
            if depth > 0 {
                *other = wrong(random);
            }
        }
    }
}

/// What hardly ever is of the type that is asked for; and where it is, what a type cannot forbid.
fn wrong(random: &mut Random) -> Value {
    let values =
        [json!(true), json!(-1.5), json!(30_000_000_000_i64), json!([]), json!([1]), json!({"a": 1})];
    random.pick(&values).clone()
}

/// Puts a directive where it does not belong, or one that is none.
fn confuse(value: &mut Value, random: &mut Random) {
    let Some(fields) = value.as_object_mut() else { return };
    if fields.is_empty() || random.chance(30) {
        let directives = [
            ("$patch", json!("reconcile")),
            ("$patch", json!(5)),
            ("$retainKeys", json!("a")),
            ("$deleteFromPrimitiveList/finalizers", json!("a")),
            ("$setElementOrder/finalizers", json!({})),
            ("$setElementOrder/nothing", json!(["a"])),
            ("$unknown", json!(1)),
        ];
        let (name, directive) = random.pick(&directives);
        fields.insert((*name).to_owned(), directive.clone());
        return;
    }
    let at = random.below(fields.len());
    if let Some(field) = fields.values_mut().nth(at) {
        match field {
            Value::Array(items) if !items.is_empty() => confuse(&mut items[0], random),
            field => confuse(field, random),
        }
    }
}

/// RFC 7386, for updates of what was read.
fn json_merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        match value {
            Value::Null => drop(target.as_object_mut().and_then(|fields| fields.remove(name))),
            value => json_merge(&mut target[name.as_str()], value),
        }
    }
}
