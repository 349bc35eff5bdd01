//! The facts of the built-in kinds: definitions, discovery rows and struct tags, taken from the reference when the crate was
//! written. Definitions and structs are read one by one, each when first asked for.
//!
//! The files are in `crates/apiserver/facts`, written by `cargo xtask facts`; its README says what is in each.

use crate::typed::{Structs, first_value, lines};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};
use windlass_schema::{Definitions, Schema};

/// Everything known about the built-in kinds.
pub(crate) struct Facts {
    /// As OpenAPI documents show them.
    definitions: HashMap<&'static str, (&'static str, OnceLock<Value>)>,
    /// Those that were asked for, linked: what apply walks.
    linked: RwLock<Definitions>,
    /// The groups with their versions, in the reference's order.
    pub(crate) groups: Vec<Group>,
    /// What discovery says.
    pub(crate) resources: Vec<Row>,
    /// What decoding and encoding do.
    pub(crate) structs: Structs,
}

/// A group as discovery shows it.
#[derive(Debug, Deserialize)]
pub(crate) struct Group {
    pub(crate) name: String,
}

/// A resource as discovery shows it.
#[derive(Deserialize)]
pub(crate) struct Row {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) definition: String,
    /// Which version it is stored in, as discovery tells it: a text that means something only to the reference.
    pub(crate) hash: String,
    pub(crate) subresources: Vec<SubresourceRow>,
}

/// A subresource as discovery shows it.
#[derive(Deserialize)]
pub(crate) struct SubresourceRow {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

/// The objects that every cluster has from the start, written down by `cargo xtask facts`, an object to a line.
pub(crate) static BOOTSTRAP: &str = include_str!("../facts/bootstrap.txt");

/// The facts.
pub(crate) static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    Facts::over(include_str!("../facts/openapi.json"), include_str!("../facts/go.json"))
        .expect("the facts are part of the crate")
});

impl Facts {
    fn over(openapi: &'static str, go: &'static str) -> Option<Self> {
        let (head, rest) = openapi.split_once("\"definitions\":{\n")?;
        let (definitions, resources) = rest.split_once("\n},\n\"resources\":")?;
        let groups = head.split_once("\"groups\":")?.1;
        Some(Self {
            definitions: lines(definitions).map(|(name, text)| (name, (text, OnceLock::new()))).collect(),
            linked: RwLock::default(),
            groups: first_value(groups)?,
            resources: first_value(resources)?,
            structs: Structs::over(go),
        })
    }

    /// A built-in resource in one version.
    pub(crate) fn row(&self, group: &str, version: &str, plural: &str) -> Option<&Row> {
        self.resources.iter().find(|row| row.group == group && row.version == version && row.plural == plural)
    }

    /// The struct of a kind, in the package that others of its group and version are in.
    pub(crate) fn struct_of(&self, api_version: &str, kind: &str) -> Option<String> {
        const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let package = match group {
            "meta.k8s.io" => Some(META),
            "apidiscovery.k8s.io" => Some("io.k8s.api.apidiscovery.v2"),
            _ => {
                let row = self.resources.iter().find(|row| row.group == group && row.version == version);
                row.and_then(|row| row.definition.rsplit_once('.')).map(|(package, _)| package)
            }
        };
        let known = |package: &str| {
            let name = format!("{package}.{kind}");
            self.structs.get(&name).map(|_| name)
        };
        // Documents of discovery say no version, or one of the core group.
        package.and_then(known).or_else(|| known(META).filter(|_| matches!(api_version, "" | "v1")))
    }

    /// Is there a built-in resource of this name?
    pub(crate) fn has(&self, group: &str, plural: &str) -> bool {
        self.resources.iter().any(|row| row.group == group && row.plural == plural)
    }

    /// A definition as OpenAPI documents show it.
    pub(crate) fn definition(&self, name: &str) -> Option<&Value> {
        let (text, read) = self.definitions.get(name)?;
        Some(read.get_or_init(|| first_value(text).expect("the facts are part of the crate")))
    }

    /// A definition with all that it refers to.
    pub(crate) fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        if let Some(schema) = self.linked.read().get(name) {
            return Some(schema.clone());
        }
        let mut linked = self.linked.write();
        let (mut wanted, mut new) = (vec![name.to_owned()], Map::new());
        while let Some(name) = wanted.pop() {
            if linked.contains_key(&name) || new.contains_key(&name) {
                continue;
            }
            let definition = self.definition(&name)?;
            references(definition, &mut wanted);
            new.insert(name, definition.clone());
        }
        let new = windlass_schema::schema::link_with(&new, &linked);
        linked.extend(new.expect("the facts' definitions are well formed"));
        linked.get(name).cloned()
    }
}

/// The names of the definitions that a schema refers to.
fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().and_then(|text| text.strip_prefix("#/components/schemas/")) {
                    Some(target) if name == "$ref" => found.push(target.to_owned()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
