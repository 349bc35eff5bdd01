//! Random requests by several managers for the objects of a random CRD.

use super::exchange::media;
use super::{Random, Request, objects, schemas};
use serde_json::{Value, json};

/// The objects that requests are about.
pub const NAMES: [&str; 2] = ["one", "two"];
const MANAGERS: [&str; 3] = ["alice", "bob", "carol"];

/// A CRD, and what requests for it need to know.
pub struct RandomCrd<'a> {
    /// Where it came from.
    pub seed: u64,
    /// The versions, as the CRD has them.
    pub versions: &'a [Value],
}

/// The path of the objects in a version.
pub fn collection(seed: u64, version: &str) -> String {
    format!("/apis/{}/{version}/namespaces/default/things", schemas::group(seed))
}

/// One request in the making.
struct Draft<'a> {
    random: &'a mut Random,
    seed: u64,
    version: &'a str,
    schema: &'a Value,
    /// Whether it goes through the status.
    status: bool,
    name: &'a str,
    /// How often a value is wrong, in a hundred.
    wrong: usize,
    manager: &'static str,
}

impl RandomCrd<'_> {
    /// A random request about the object `name`, given what it was last seen as.
    pub fn request(&self, random: &mut Random, name: &str, last: Option<&Value>) -> Request {
        let version = random.pick(self.versions);
        let has_status = version.get("subresources").is_some();
        let mut draft = Draft {
            seed: self.seed,
            version: version["name"].as_str().unwrap_or_default(),
            schema: &version["schema"]["openAPIV3Schema"]["properties"],
            // Without the subresource its path is not there.
            status: random.chance(if has_status { 20 } else { 2 }),
            name,
            wrong: if random.chance(25) { 6 } else { 0 },
            manager: random.pick::<&str>(&MANAGERS),
            random,
        };
        let request = match (draft.random.below(14), last) {
            (0, _) | (1 | 2, None) => draft.create(),
            (1, Some(_)) => Request::new("GET", draft.item()),
            (2 | 3, Some(last)) => draft.replace(last),
            (4 | 5, Some(_)) => draft.merge(),
            (6, Some(_)) => draft.json_patch(),
            (7, Some(_)) if draft.random.chance(60) => draft.delete(),
            (8, _) if draft.random.chance(30) => draft.broken_patch(),
            _ => draft.apply(),
        };
        draft.options(request)
    }
}

impl Draft<'_> {
    fn item(&self) -> String {
        let part = if self.status { "/status" } else { "" };
        format!("{}/{}{part}", collection(self.seed, self.version), self.name)
    }

    fn part(&self) -> &'static str {
        if self.status { "status" } else { "spec" }
    }

    fn value(&mut self, part: &str) -> Value {
        objects::value(&self.schema[part], self.random, self.wrong)
    }

    fn fresh(&mut self) -> Value {
        let mut metadata = json!({"name": self.name});
        self.decorate(&mut metadata);
        json!({
            "apiVersion": format!("{}/{}", schemas::group(self.seed), self.version), "kind": "Thing",
            "metadata": metadata, "spec": self.value("spec"),
        })
    }

    /// Labels, annotations, finalizers and owners, now and then.
    fn decorate(&mut self, metadata: &mut Value) {
        let random = &mut *self.random;
        if random.chance(25) {
            metadata["labels"] = match random.below(4) {
                0 => json!({}),
                1 => json!({"l": random.pick(&["1", "2", "3"]), "m": "x"}),
                _ => json!({"l": random.pick(&["1", "2"])}),
            };
        }
        if random.chance(12) {
            metadata["annotations"] = json!({(*random.pick(&["a", "b"])): random.pick(&["x", "y"])});
        }
        if random.chance(6) {
            let finalizers =
                [json!([]), json!(["e.io/a"]), json!(["e.io/a", "e.io/b"]), json!(["plain.name"])];
            metadata["finalizers"] = random.pick(&finalizers).clone();
        }
        if random.chance(6) {
            let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": uid});
            let owners = [json!([]), json!([owner("u1")]), json!([owner("u1"), owner("u2")])];
            metadata["ownerReferences"] = random.pick(&owners).clone();
        }
        if self.wrong > 0 && random.chance(8) {
            let wrong = [
                ("labels", json!({"l": 1})),
                ("unknown", json!("x")),
                ("labels", Value::Null),
                ("name", json!("other")),
                ("namespace", json!("elsewhere")),
            ];
            let (field, value) = random.pick(&wrong);
            metadata[*field] = value.clone();
        }
    }

    fn create(&mut self) -> Request {
        let mut object = self.fresh();
        if self.random.chance(10) {
            object["status"] = self.value("status");
        }
        Request::new("POST", collection(self.seed, self.version)).body(media::JSON, object)
    }

    fn apply(&mut self) -> Request {
        let mut intent = self.fresh();
        if self.status || self.random.chance(15) {
            intent["status"] = self.value("status");
        }
        // Who applies nothing gives up everything.
        if self.random.chance(8)
            && let Some(intent) = intent.as_object_mut()
        {
            intent.remove("spec");
        }
        let mut request = Request::new("PATCH", self.item()).body(media::APPLY_PATCH, intent);
        if self.random.chance(20) {
            request = request.as_yaml();
        }
        if self.random.chance(45) {
            request = request.with("force", "true");
        }
        if self.random.chance(98) { request.with("fieldManager", self.manager) } else { request }
    }

    fn replace(&mut self, last: &Value) -> Request {
        let mut body = last.clone();
        body["apiVersion"] = json!(format!("{}/{}", schemas::group(self.seed), self.version));
        if let Some(meta) = body["metadata"].as_object_mut() {
            meta.remove("creationTimestamp");
            meta.remove("managedFields");
            if self.random.chance(10) {
                meta.remove("resourceVersion");
            }
        }
        let mut metadata = body["metadata"].take();
        self.decorate(&mut metadata);
        // One empty entry forgets who owns what.
        if self.random.chance(6) {
            metadata["managedFields"] = self.random.pick(&[json!([{}]), json!([])]).clone();
        }
        body["metadata"] = metadata;
        body["spec"] = self.value("spec");
        if self.status || self.random.chance(20) {
            body["status"] = self.value("status");
        }
        Request::new("PUT", self.item()).body(media::JSON, body)
    }

    fn merge(&mut self) -> Request {
        let part = self.part();
        let mut patch = json!({part: self.value(part)});
        if self.random.chance(15) {
            let mut metadata = json!({});
            self.decorate(&mut metadata);
            if self.random.chance(20) {
                metadata["managedFields"] = json!([{}]);
            }
            patch["metadata"] = metadata;
        }
        Request::new("PATCH", self.item()).body(media::MERGE_PATCH, patch)
    }

    fn json_patch(&mut self) -> Request {
        let field = *self.random.pick(&schemas::FIELDS);
        let part = self.part();
        let path = format!("/{part}/{field}");
        let operation = match self.random.below(4) {
            0 => json!({"op": "remove", "path": path}),
            1 => json!({"op": "test", "path": path, "value": objects::anything(self.random, 1)}),
            2 => json!({"op": "replace", "path": path, "value": objects::anything(self.random, 1)}),
            _ => {
                let schema = &self.schema[part]["properties"][field];
                json!({"op": "add", "path": path, "value": objects::value(schema, self.random, self.wrong)})
            }
        };
        Request::new("PATCH", self.item()).body(media::JSON_PATCH, json!([operation]))
    }

    /// What is no patch of its type.
    fn broken_patch(&mut self) -> Request {
        let kinds = [media::JSON_PATCH, media::MERGE_PATCH, media::APPLY_PATCH];
        let bodies = [
            json!({}),
            json!([]),
            json!("text"),
            json!(5),
            json!([5]),
            json!([{"op": "add"}]),
            json!([{"op": "reconcile", "path": "/spec"}]),
            json!([{"op": "add", "path": "spec", "value": 1}]),
            json!({"spec": 1}),
            json!({"apiVersion": "v1", "kind": "Thing"}),
            json!({"apiVersion": 1, "kind": "Thing"}),
            json!({"kind": "Other", "metadata": {"name": self.name}}),
            json!({"metadata": 5}),
            json!({"metadata": {"managedFields": []}}),
        ];
        let kind = *self.random.pick(&kinds);
        let request = Request::new("PATCH", self.item()).body(kind, self.random.pick(&bodies).clone());
        if kind == media::APPLY_PATCH { request.with("fieldManager", self.manager) } else { request }
    }

    fn delete(&mut self) -> Request {
        Request::new("DELETE", format!("{}/{}", collection(self.seed, self.version), self.name))
    }

    fn options(&mut self, mut request: Request) -> Request {
        let random = &mut *self.random;
        if !matches!(request.method, "POST" | "PUT" | "PATCH") {
            return request;
        }
        if request.content_type != media::APPLY_PATCH && random.chance(60) {
            let long = "m".repeat(129);
            let manager = match random.below(60) {
                0 => long.as_str(),
                1 => "tab\there",
                _ => self.manager,
            };
            request = request.with("fieldManager", manager);
        }
        if random.chance(35) {
            request = request.with("fieldValidation", *random.pick(&["Strict", "Warn", "Ignore"]));
        }
        if random.chance(8) {
            request = request.with("dryRun", "All");
        }
        request
    }
}
