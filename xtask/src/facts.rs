//! `cargo xtask facts`: asks a running Kubernetes what its built-in kinds are, and writes that down for the embedded one.
//!
//! In: discovery and the OpenAPI documents, through `kubectl get --raw`. Out: one JSON file with the rows of discovery and
//! the schema definitions of [`KINDS`], without descriptions; the same server always gives the same bytes.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::process::Command;

/// The kinds to write down: group, version, kinds.
const KINDS: &[(&str, &str, &[&str])] = &[
    ("", "v1", &["ConfigMap", "Event", "Namespace", "Secret"]),
    ("apiextensions.k8s.io", "v1", &["CustomResourceDefinition"]),
    ("coordination.k8s.io", "v1", &["Lease"]),
    ("events.k8s.io", "v1", &["Event"]),
];

/// Definitions to write down besides those of the kinds, where the server has them.
const ALSO: &[&str] = &[
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
];

const KINDS_KEY: &str = "x-kubernetes-group-version-kind";
const REF_PREFIX: &str = "#/components/schemas/";
const OUT: &str = "crates/apiserver/facts/openapi.json";

const USAGE: &str = "\
cargo xtask facts [--kubectl PATH] [--kubeconfig FILE] [--server URL --token TOKEN] [--out FILE] [--check]
  --kubectl     the kubectl to ask with (default: kubectl)
  --kubeconfig  the cluster to ask (default: kubectl's own)
  --server, --token  a server on this machine to ask instead, without checking its certificate
  --out         where to write (default: crates/apiserver/facts/openapi.json)
  --check       write nothing; fail if the file is not what the server says";

/// Runs the task with what came after its name on the command line.
pub(crate) fn run(args: impl IntoIterator<Item = String>) -> Result<()> {
    let options = Options::parse(args)?;
    let facts = collect(&|path| options.get(path))?;
    let text = print(&facts)?;
    let out = options.out.display();
    if options.check {
        let found = std::fs::read_to_string(&options.out).with_context(|| format!("cannot read {out}"))?;
        ensure!(found == text, "{out} is not what the server says; run `cargo xtask facts` without --check");
    } else {
        std::fs::write(&options.out, text).with_context(|| format!("cannot write {out}"))?;
    }
    Ok(())
}

struct Options {
    kubectl: String,
    /// What says to kubectl which server to ask.
    connection: Vec<String>,
    out: PathBuf,
    check: bool,
}

impl Options {
    fn parse(args: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut options =
            Self { kubectl: "kubectl".into(), connection: Vec::new(), out: OUT.into(), check: false };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--kubectl" => options.kubectl = value()?,
                "--kubeconfig" => options.connection.extend(["--kubeconfig".into(), value()?]),
                "--token" => options.connection.extend(["--token".into(), value()?]),
                "--server" => {
                    let server = value()?;
                    ensure!(is_loopback(&server), "{server} is not on this machine: use --kubeconfig");
                    options.connection.extend([
                        "--server".into(),
                        server,
                        "--insecure-skip-tls-verify".into(),
                    ]);
                }
                "--out" => options.out = value()?.into(),
                "--check" => options.check = true,
                _ => bail!("unknown option {arg}\n{USAGE}"),
            }
        }
        Ok(options)
    }

    fn get(&self, path: &str) -> Result<Value> {
        let mut command = Command::new(&self.kubectl);
        command.args(&self.connection).args(["get", "--raw", path]);
        let output = command.output().with_context(|| format!("cannot run {}", self.kubectl))?;
        ensure!(
            output.status.success(),
            "the server does not answer GET {path}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        serde_json::from_slice(&output.stdout).with_context(|| format!("GET {path} answers no JSON"))
    }
}

/// Whether a URL's host is this machine, so that nobody in between can lie about the certificate.
fn is_loopback(server: &str) -> bool {
    let host_and_rest = server.strip_prefix("https://").or_else(|| server.strip_prefix("http://"));
    let authority = host_and_rest.unwrap_or("").split('/').next().unwrap_or("");
    match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').is_some_and(|(host, _)| host == "::1"),
        None => {
            let host = authority.split(':').next().unwrap_or("");
            host == "localhost" || host.parse().is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback())
        }
    }
}

/// Everything to write, asked for with `get`.
fn collect(get: &dyn Fn(&str) -> Result<Value>) -> Result<Value> {
    let version = get("/version")?["gitVersion"].as_str().context("the server has no version")?.to_owned();
    let mut known = BTreeMap::new();
    let mut wanted: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (group, version, kinds) in KINDS {
        let path =
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        learn(&mut known, get(&format!("/openapi/v3/{path}"))?).with_context(|| path.clone())?;
        let discovered = get(&format!("/{path}"))?;
        for kind in *kinds {
            let definition = definition_of(&known, group, version, kind)
                .with_context(|| format!("{path} defines no {kind}"))?;
            let list = definition_of(&known, group, version, &format!("{kind}List"));
            rows.push(row(&discovered, group, version, kind, &definition)?);
            wanted.push(definition);
            wanted.extend(list);
        }
    }
    rows.sort_by_key(|row| {
        ["group", "version", "plural"].map(|field| row[field].as_str().map(str::to_owned))
    });
    wanted.extend(ALSO.iter().map(|name| (*name).to_owned()).filter(|name| known.contains_key(name)));
    Ok(json!({ "version": version, "definitions": reachable(&known, wanted)?, "resources": rows }))
}

/// Adds the definitions of an OpenAPI document to those that are known, without descriptions.
fn learn(known: &mut BTreeMap<String, Value>, mut document: Value) -> Result<()> {
    let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas").map(Value::take) else {
        bail!("the OpenAPI document has no schemas");
    };
    for (name, mut schema) in schemas {
        strip(&mut schema);
        match known.entry(name) {
            Entry::Vacant(vacant) => _ = vacant.insert(schema),
            Entry::Occupied(mut before) => {
                join_kinds(before.get_mut(), &mut schema);
                ensure!(*before.get() == schema, "two documents disagree about {}", before.key());
            }
        }
    }
    Ok(())
}

/// Gives both the kinds of either. What all groups share, such as DeleteOptions, is a kind in each of them, and a
/// document names only those that its server knows.
fn join_kinds(one: &mut Value, other: &mut Value) {
    let kinds = [&*one, &*other].map(|schema| schema[KINDS_KEY].as_array().cloned().unwrap_or_default());
    let mut kinds = kinds.concat();
    if kinds.is_empty() {
        return;
    }
    kinds.sort_by_key(|kind| {
        ["group", "version", "kind"].map(|field| kind[field].as_str().map(str::to_owned))
    });
    kinds.dedup();
    one[KINDS_KEY] = Value::Array(kinds.clone());
    other[KINDS_KEY] = Value::Array(kinds);
}

/// Calls `visit` for every schema directly inside `schema`. Only these places hold schemas: elsewhere the same words are
/// data, and in `properties` they are the names of fields.
fn for_each_child(schema: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Value)) {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(schemas)) => schemas.values_mut().for_each(&mut *visit),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(&mut *visit),
            ("additionalProperties" | "items" | "not", schema) => visit(schema),
            _ => {}
        }
    }
}

/// Removes descriptions: they are prose of others, and most of the bytes.
fn strip(schema: &mut Value) {
    if let Value::Object(schema) = schema {
        schema.remove("description");
        for_each_child(schema, &mut strip);
    }
}

/// The name of the definition that is this kind and no other.
fn definition_of(known: &BTreeMap<String, Value>, group: &str, version: &str, kind: &str) -> Option<String> {
    let wanted = json!([{ "group": group, "version": version, "kind": kind }]);
    let mut found = known.iter().filter(|(_, schema)| schema[KINDS_KEY] == wanted);
    found.next().map(|(name, _)| name.clone())
}

/// A resource and its subresources as discovery shows them.
fn row(discovered: &Value, group: &str, version: &str, kind: &str, definition: &str) -> Result<Value> {
    let resources = discovered["resources"].as_array().context("discovery lists no resources")?;
    let text = |resource: &Value, field: &str| resource[field].as_str().unwrap_or_default().to_owned();
    let list = |resource: &Value, field: &str| resource.get(field).cloned().unwrap_or_else(|| json!([]));
    let is_it = |resource: &&Value| resource["kind"] == kind && !text(resource, "name").contains('/');
    let resource = resources.iter().find(is_it).with_context(|| format!("discovery shows no {kind}"))?;
    let plural = text(resource, "name");
    let subresources = resources.iter().filter_map(|sub| {
        let name = text(sub, "name").strip_prefix(&format!("{plural}/"))?.to_owned();
        // A subresource of its parent's group and version leaves both out.
        let or_parents = |field: &str, parents: &str| sub[field].as_str().unwrap_or(parents).to_owned();
        Some(json!({
            "name": name,
            "group": or_parents("group", group),
            "version": or_parents("version", version),
            "kind": text(sub, "kind"),
            "verbs": list(sub, "verbs"),
        }))
    });
    Ok(json!({
        "group": group,
        "version": version,
        "kind": kind,
        "list_kind": format!("{kind}List"),
        "plural": plural,
        "singular": text(resource, "singularName"),
        "namespaced": resource["namespaced"] == true,
        "short_names": list(resource, "shortNames"),
        "categories": list(resource, "categories"),
        "verbs": list(resource, "verbs"),
        "definition": definition,
        "subresources": subresources.collect::<Vec<_>>(),
    }))
}

/// The `wanted` definitions and all that they refer to.
fn reachable(known: &BTreeMap<String, Value>, mut wanted: Vec<String>) -> Result<Map<String, Value>> {
    let mut reached = Map::new();
    while let Some(name) = wanted.pop() {
        if reached.contains_key(&name) {
            continue;
        }
        let mut schema =
            known.get(&name).with_context(|| format!("{name} is referred to, not defined"))?.clone();
        references(&mut schema, &mut wanted);
        reached.insert(name, schema);
    }
    Ok(reached)
}

fn references(schema: &mut Value, names: &mut Vec<String>) {
    if let Value::Object(schema) = schema {
        let reference = schema.get("$ref").and_then(Value::as_str);
        names.extend(reference.and_then(|target| target.strip_prefix(REF_PREFIX)).map(str::to_owned));
        for_each_child(schema, &mut |child| references(child, names));
    }
}

/// JSON with one definition or resource per line: small, and a change shows as the lines it touches.
fn print(facts: &Value) -> Result<String> {
    let definitions = facts["definitions"].as_object().context("definitions are an object")?;
    let definitions = definitions
        .iter()
        .map(|(name, schema)| {
            Ok(format!("{}:{}", serde_json::to_string(name)?, serde_json::to_string(schema)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let resources = facts["resources"].as_array().context("resources are a list")?;
    let resources = resources.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(format!(
        "{{\"version\":{},\n\"definitions\":{{\n{}\n}},\n\"resources\":[\n{}\n]}}\n",
        facts["version"],
        definitions.join(",\n"),
        resources.join(",\n"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_go_and_fields_called_description_stay() {
        let mut schema = json!({
            "description": "gone",
            "default": { "description": "stays" },
            "properties": {
                "description": { "type": "string", "description": "gone" },
                "properties": { "items": { "description": "gone", "allOf": [{ "description": "gone" }] } },
            },
        });
        strip(&mut schema);
        let expected = json!({
            "default": { "description": "stays" },
            "properties": {
                "description": { "type": "string" },
                "properties": { "items": { "allOf": [{}] } },
            },
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn documents_may_differ_in_the_kinds_they_name_and_in_nothing_else() {
        let document = |group: &str, kind_of: &str| {
            let kinds = json!([{ "group": group, "version": "v1", "kind": "DeleteOptions" }]);
            json!({ "components": { "schemas": { "a": { "type": kind_of, KINDS_KEY: kinds } } } })
        };
        let mut known = BTreeMap::new();
        learn(&mut known, document("z", "object")).unwrap();
        learn(&mut known, document("b", "object")).unwrap();
        learn(&mut known, document("b", "object")).unwrap();
        let groups = known["a"][KINDS_KEY].as_array().unwrap().iter().map(|kind| &kind["group"]);
        assert_eq!(groups.collect::<Vec<_>>(), ["b", "z"]);
        assert!(learn(&mut known, document("b", "string")).is_err());
        assert!(learn(&mut known, json!([])).is_err());
    }

    #[test]
    fn what_is_referred_to_comes_along_even_in_circles() {
        let to = |name: &str| json!({ "items": { "allOf": [{ "$ref": format!("{REF_PREFIX}{name}") }] } });
        let known = BTreeMap::from(
            [("a", to("b")), ("b", to("a")), ("c", json!({})), ("d", to("lost"))].map(|(k, v)| (k.into(), v)),
        );
        let reached = reachable(&known, vec!["a".into()]).unwrap();
        assert_eq!(reached.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(reachable(&known, vec!["d".into()]).unwrap_err().to_string().contains("lost"));
    }

    #[test]
    fn an_unchecked_certificate_is_for_this_machine_alone() {
        for server in ["https://127.0.0.1:6443", "https://[::1]:6443/", "http://localhost:1"] {
            assert!(is_loopback(server), "{server}");
        }
        for server in
            ["https://10.0.0.1:6443", "https://127.0.0.1.evil.example", "127.0.0.1", "https://x@localhost"]
        {
            assert!(!is_loopback(server), "{server}");
        }
    }

    #[test]
    fn what_is_printed_is_json() {
        let facts = json!({ "version": "v1", "definitions": { "a": {}, "b\"": {} }, "resources": [{}, {}] });
        assert_eq!(serde_json::from_str::<Value>(&print(&facts).unwrap()).unwrap(), facts);
    }
}
