//! Random requests about a few names of a few kinds, so that they meet: most are sensible, some are wrong.

use super::exchange::media;
use super::kinds::Kind;
use super::{Random, Request};
use serde_json::{Value, json};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const CLIENTS: [&str; 3] = ["alice", "bob", "carol"];

/// Makes requests. What servers choose (versions, uids, continue tokens) is written as the name that the normalisation
/// gives it.
pub struct Requests {
    /// Where chance comes from.
    pub random: Random,
    /// What the requests are about.
    pub kinds: Vec<Kind>,
    /// How many versions are known.
    pub versions: usize,
    /// The uids that were seen.
    pub uids: Vec<String>,
    /// The continue tokens that were seen.
    pub tokens: Vec<String>,
}

impl Requests {
    /// Requests of this seed about these kinds.
    pub fn new(seed: u64, kinds: Vec<Kind>) -> Self {
        Self { random: Random::seeded(seed), kinds, versions: 0, uids: Vec::new(), tokens: Vec::new() }
    }

    /// A version that exists.
    pub fn version(&mut self) -> String {
        format!("<version {}>", 1 + self.random.below(self.versions.max(1)))
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.random.below(from.len())]
    }

    fn uid(&mut self) -> String {
        match self.uids.is_empty() || self.random.chance(20) {
            true => "00000000-0000-4000-8000-000000000000".to_owned(),
            false => self.random.pick(&self.uids).clone(),
        }
    }

    /// A whole object.
    pub fn object(&mut self, kind_index: usize, name: &str) -> Value {
        let (random, kind) = (&mut self.random, &self.kinds[kind_index]);
        let mut object = kind.object(name, random);
        if random.chance(70) {
            object["metadata"]["labels"]["l"] = json!(random.pick(&["1", "2"]));
            object["metadata"]["labels"]["m"] = json!(random.pick(&["x", "y"]));
        }
        if random.chance(25) {
            object["metadata"]["finalizers"] =
                json!([random.pick(&["windlass.test/one", "windlass.test/two"])]);
        }
        if random.chance(20) {
            object["metadata"]["annotations"] = json!({"note": random.pick(&["p", "q"])});
        }
        if self.random.chance(8) {
            object["metadata"]["ownerReferences"] = self.owners();
        }
        if self.random.chance(6) {
            self.spoil(kind_index, &mut object);
        }
        object
    }

    fn owners(&mut self) -> Value {
        let mut owners = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let mut owner = json!({
                "apiVersion": "v1", "kind": self.pick(&["ConfigMap", "Secret", "Event"]),
                "name": self.pick(&NAMES), "uid": self.uid(),
            });
            if self.random.chance(50) {
                owner["blockOwnerDeletion"] = json!(self.random.chance(70));
            }
            if self.random.chance(50) {
                owner["controller"] = json!(self.random.chance(70));
            }
            owners.push(owner);
        }
        json!(owners)
    }

    /// Makes something wrong with an object, or at least odd.
    fn spoil(&mut self, kind: usize, object: &mut Value) {
        let metadata = &mut object["metadata"];
        match self.random.below(12) {
            0 => {
                let name = self.pick(&["A_b", "-", "a/b", "..", "x.y", "other"]);
                metadata["name"] = json!(self.kinds[kind].name(name));
            }
            1 => metadata["labels"]["l"] = json!(self.pick(&["-", "a b", ""])),
            2 => metadata["labels"] = json!({"not/a/name": "1", "": "2"}),
            3 => metadata["finalizers"] = json!([self.pick(&["no-slash", "a/b/c", "orphan", ""])]),
            4 => metadata["namespace"] = json!("elsewhere"),
            5 => metadata["resourceVersion"] = json!(self.pick(&["abc", "0", "-1", "1"])),
            6 => metadata["uid"] = json!(self.uid()),
            7 => metadata["generation"] = json!(7),
            8 => metadata["deletionTimestamp"] = json!("2026-01-31T10:00:00Z"),
            9 => object["unknown"] = json!({"x": 1}),
            10 => object["kind"] = json!(self.pick(&["", "Secret", "Nothing"])),
            _ => object["apiVersion"] = json!(self.pick(&["", "v2", "apps/v1"])),
        }
    }

    /// The next request, and the kind that it is about.
    pub fn any(&mut self) -> (usize, Request) {
        let kind = self.random.below(self.kinds.len());
        let collection = self.kinds[kind].collection.clone();
        let short = self.pick(&NAMES);
        let name = self.kinds[kind].name(short);
        let item = format!("{collection}/{name}");
        let client = self.pick(&CLIENTS);
        let mut request = match self.random.below(24) {
            0..=4 => {
                let mut object = self.object(kind, &name);
                if self.random.chance(5) {
                    // Only rehearsed: two servers would put generated names in different places of a list.
                    object["metadata"]["generateName"] = json!(self.pick(&["g-", "A_"]));
                    object["metadata"].as_object_mut().expect("it is one").remove("name");
                    Request::new("POST", collection).with("dryRun", "All").body(media::JSON, object)
                } else if self.kinds[kind].kind == "ConfigMap" && self.random.chance(20) {
                    // Into a namespace that may be going, or may not be there.
                    let namespace = self.kinds.last().map_or_else(String::new, |kind| kind.name(short));
                    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
                    Request::new("POST", path).body(media::JSON, object)
                } else {
                    Request::new("POST", collection).body(media::JSON, object)
                }
            }
            5..=7 => {
                let mut object = self.object(kind, &name);
                if self.random.chance(30) {
                    object["metadata"]["resourceVersion"] = json!(self.version());
                }
                if self.random.chance(5) {
                    object["metadata"]["uid"] = json!(self.uid());
                }
                Request::new("PUT", item).body(media::JSON, object)
            }
            8..=11 => self.patch(kind, &name, item, client),
            12..=14 => self.delete(item),
            15 => {
                let version = self.version();
                match self.random.below(4) {
                    0 => Request::new("GET", item).with("resourceVersion", version),
                    1 => Request::new("GET", item)
                        .with("resourceVersion", self.pick(&["0", "abc", "-1", "18446744073709551616"])),
                    _ => Request::new("GET", item),
                }
            }
            16 => self.delete_many(kind, collection),
            17 => self.part(kind, &name, item),
            _ => self.list(kind, collection),
        };
        if matches!(request.method, "POST" | "PUT" | "PATCH") {
            request = self.options(request);
        }
        (kind, request.by(client))
    }

    fn options(&mut self, request: Request) -> Request {
        match self.random.below(40) {
            0 => request.with("dryRun", "All"),
            1 => request.with("dryRun", "Some"),
            2 => request.with("fieldValidation", self.pick(&["Strict", "Ignore", "Wrong"])),
            3 => request.with("force", "true"),
            _ => request,
        }
    }

    fn patch(&mut self, kind: usize, name: &str, item: String, client: &'static str) -> Request {
        match self.random.below(10) {
            0..=4 => {
                let patch = match self.random.below(6) {
                    0 | 1 => json!({"metadata": {"finalizers": null}}),
                    2 => json!({"metadata": {"labels": {"l": self.pick(&["1", "2", "3"])}}}),
                    3 => json!({"metadata": {"labels": {"l": null}, "resourceVersion": self.version()}}),
                    4 => {
                        json!({"metadata": {"annotations": {"note": self.pick(&["p", "r"])}, "uid": self.uid()}})
                    }
                    _ => json!({"metadata": {"finalizers": ["windlass.test/one"]}}),
                };
                Request::new("PATCH", item).body(media::MERGE_PATCH, patch)
            }
            5..=7 => {
                let mut steps = Vec::new();
                for _ in 0..1 + self.random.below(2) {
                    steps.push(match self.random.below(6) {
                        0 => json!({"op": "add", "path": "/metadata/labels/l", "value": self.pick(&["1", "2"])}),
                        1 => json!({"op": "replace", "path": "/metadata/annotations", "value": {"note": "s"}}),
                        2 => json!({"op": "remove", "path": "/metadata/finalizers"}),
                        3 => json!({"op": "test", "path": "/metadata/labels/m", "value": "x"}),
                        4 => json!({"op": "add", "path": "/metadata/finalizers/-", "value": "windlass.test/two"}),
                        _ => json!({"op": "add", "path": "/metadata/labels", "value": {"l": "2"}}),
                    });
                }
                Request::new("PATCH", item).body(media::JSON_PATCH, json!(steps))
            }
            _ => {
                let object = self.object(kind, name);
                let request = Request::new("PATCH", item).body(media::APPLY_PATCH, object);
                let request = request.with("fieldManager", client);
                if self.random.chance(40) { request.with("force", "true") } else { request }
            }
        }
    }

    /// A request to a part of the object that has a path of its own, which it may not have.
    fn part(&mut self, kind: usize, name: &str, item: String) -> Request {
        let part = *self.random.pick(self.kinds[kind].parts);
        let item = format!("{item}/{part}");
        match self.random.below(4) {
            0 => Request::new("GET", item),
            1 => Request::new("PATCH", item)
                .body(media::MERGE_PATCH, json!({"status": {"phase": self.pick(&["Active", "Ready"])}})),
            _ => {
                let mut object = self.object(kind, name);
                if self.random.chance(50) {
                    object["metadata"]["resourceVersion"] = json!(self.version());
                }
                if part == "finalize" {
                    object["spec"] = json!({"finalizers": []});
                }
                Request::new("PUT", item).body(media::JSON, object)
            }
        }
    }

    fn delete_options(&mut self) -> Option<Value> {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        match self.random.below(12) {
            0 => options["preconditions"] = json!({"resourceVersion": self.version()}),
            1 => options["preconditions"] = json!({"uid": self.uid()}),
            2 => options["propagationPolicy"] = json!(self.pick(&["Foreground", "Background", "Orphan"])),
            3 => options["gracePeriodSeconds"] = json!(self.random.below(3)),
            4 => options["dryRun"] = json!(["All"]),
            5 => options["orphanDependents"] = json!(self.random.chance(50)),
            6 => match self.random.below(4) {
                0 => options["propagationPolicy"] = json!("Maybe"),
                1 => options["dryRun"] = json!(["Some"]),
                2 => {
                    options["propagationPolicy"] = json!("Orphan");
                    options["orphanDependents"] = json!(true);
                }
                _ => options["gracePeriodSeconds"] = json!(-1),
            },
            _ => return None,
        }
        Some(options)
    }

    fn delete(&mut self, item: String) -> Request {
        let request = Request::new("DELETE", item);
        match self.delete_options() {
            Some(options) => request.body(media::JSON, options),
            None if self.random.chance(15) => {
                request.with("propagationPolicy", self.pick(&["Foreground", "Background", "Orphan", "x"]))
            }
            None => request,
        }
    }

    fn delete_many(&mut self, kind: usize, collection: String) -> Request {
        let selector = format!("l={}", self.pick(&["1", "2"]));
        let request = self.delete(collection).with("labelSelector", self.kinds[kind].selector(&selector));
        if self.random.chance(20) { request.with("limit", "1") } else { request }
    }

    /// A list.
    pub fn list(&mut self, kind: usize, collection: String) -> Request {
        let mut request = self.select(kind, Request::new("GET", collection));
        if !self.kinds[kind].is_shared() && self.random.chance(35) {
            request = request.with("limit", (1 + self.random.below(3)).to_string());
        }
        match self.random.below(12) {
            0 => request.with("resourceVersion", "0"),
            1 => {
                let version = self.version();
                request.with("resourceVersion", version)
            }
            2 | 3 => {
                let version = self.version();
                request.with("resourceVersion", version).with("resourceVersionMatch", "Exact")
            }
            4 => {
                let version = self.version();
                request.with("resourceVersion", version).with("resourceVersionMatch", "NotOlderThan")
            }
            5 => request.with("resourceVersionMatch", self.pick(&["Exact", "Wrong"])),
            6 => request.with("resourceVersion", "0").with("resourceVersionMatch", "Exact"),
            7 => match self.random.below(4) {
                0 => request.with("resourceVersion", self.pick(&["abc", "-1", "18446744073709551616"])),
                1 => request.with("limit", "x"),
                2 => request.with("continue", self.pick(&["x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"])),
                _ => request.with("sendInitialEvents", "true"),
            },
            8 | 9 if !self.tokens.is_empty() && !self.kinds[kind].is_shared() => {
                let token = self.tokens[self.tokens.len() - 1].clone();
                request.with("limit", "2").with("continue", token)
            }
            _ => request,
        }
    }

    /// With selectors, perhaps wrong ones.
    fn select(&mut self, kind: usize, mut request: Request) -> Request {
        let labels = match self.random.below(100) {
            0..=34 => self.pick(&["l=1", "l!=1", "m in (x,z)", "!l", "l,m=y", "l notin (1),m==x"]),
            35..=36 => self.pick(&["l in", "=", "l=a=b", "x y", "l in (1", "-=1", "l>x"]),
            _ => "",
        };
        let labels = self.kinds[kind].selector(labels);
        if !labels.is_empty() {
            request = request.with("labelSelector", labels);
        }
        match self.random.below(100) {
            0..=14 => {
                let fields = match self.random.below(3) {
                    0 => format!("metadata.name={}", self.kinds[kind].name("a")),
                    1 => format!("metadata.name!={}", self.kinds[kind].name("b")),
                    _ => self.pick(self.kinds[kind].fields).to_owned(),
                };
                request.with("fieldSelector", fields)
            }
            15..=17 => {
                request.with("fieldSelector", self.pick(&["metadata.name", "spec.none=1", "=x", "a=b=c"]))
            }
            _ => request,
        }
    }

    /// A watch that tells about `last`, which was written last, and the event that ends it.
    pub fn watch(&mut self, kind: usize, form: usize, last: &str) -> (Request, String) {
        let mut request = Request::new("GET", self.kinds[kind].collection.clone()).with("watch", "true");
        let labels = match self.random.chance(50) {
            true => self.pick(&["l=1", "m=x", "l in (1,2)", "l"]),
            false => "",
        };
        let labels = self.kinds[kind].selector(labels);
        if !labels.is_empty() {
            request = request.with("labelSelector", labels);
        }
        if self.random.chance(15) {
            let fields = match self.random.chance(50) {
                true => format!("metadata.name={last}"),
                false => format!("metadata.name!={}", self.kinds[kind].name("a")),
            };
            request = request.with("fieldSelector", fields);
        }
        // Before the last object, or its event would not come.
        let before = format!("<version {}>", 1 + self.random.below(self.versions.max(2) - 1));
        let until = if form == 4 { "BOOKMARK" } else { last };
        let request = match form {
            0 | 1 => request.with("resourceVersion", before),
            2 => request,
            3 => request.with("resourceVersion", "0"),
            4 => request
                .with("sendInitialEvents", "true")
                .with("resourceVersionMatch", "NotOlderThan")
                .with("allowWatchBookmarks", "true"),
            _ => match self.random.below(5) {
                0 => request.with("resourceVersion", self.pick(&["abc", "-1"])),
                1 => request.with("sendInitialEvents", "true"),
                2 => request.with("resourceVersionMatch", "NotOlderThan"),
                3 => request.with("fieldSelector", "spec.none=1"),
                _ => request.with("labelSelector", "l in"),
            },
        };
        (request, until.to_owned())
    }
}
