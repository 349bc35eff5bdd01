//! One schema node in the raw JSON. A value of the wrong JSON type counts as absent here: parsing the schema reports it.

use serde_json::{Map, Value};

#[derive(Clone, Copy)]
pub(super) struct Node<'a>(&'a Map<String, Value>);

/// `additionalProperties`.
#[derive(Clone, Copy)]
pub(super) enum Further<'a> {
    Allowed(bool),
    Schema(Node<'a>),
}

impl<'a> Node<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    /// The schema as JSON again.
    pub(super) fn json(self) -> Value {
        Value::Object(self.0.clone())
    }

    pub(super) fn get(self, keyword: &str) -> Option<&'a Value> {
        self.0.get(keyword).filter(|value| !value.is_null())
    }

    /// All keywords that are set.
    pub(super) fn keywords(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.as_str(), value))
    }

    pub(super) fn text(self, keyword: &str) -> &'a str {
        self.get(keyword).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn flag(self, keyword: &str) -> bool {
        self.get(keyword) == Some(&Value::Bool(true))
    }

    pub(super) fn texts(self, keyword: &str) -> Vec<&'a str> {
        self.list(keyword).iter().filter_map(Value::as_str).collect()
    }

    pub(super) fn list(self, keyword: &str) -> &'a [Value] {
        self.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn one(self, keyword: &str) -> Option<Node<'a>> {
        self.get(keyword).and_then(Node::of)
    }

    pub(super) fn items(self) -> Option<Node<'a>> {
        self.one("items")
    }

    pub(super) fn several(self, keyword: &str) -> impl Iterator<Item = (usize, Node<'a>)> {
        self.list(keyword).iter().enumerate().filter_map(|(index, json)| Some((index, Node::of(json)?)))
    }

    pub(super) fn properties(self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let properties = self.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flat_map(Map::iter);
        properties.filter_map(|(name, json)| Some((name.as_str(), Node::of(json)?)))
    }

    pub(super) fn property(self, name: &str) -> Option<Node<'a>> {
        self.get("properties")?.get(name).and_then(Node::of)
    }

    pub(super) fn further(self) -> Option<Further<'a>> {
        match self.get("additionalProperties")? {
            Value::Bool(allowed) => Some(Further::Allowed(*allowed)),
            json => Node::of(json).map(Further::Schema),
        }
    }

    /// The first keyword, here or further inside, that no structural schema can hold.
    pub(super) fn unsupported(self) -> Option<String> {
        let set = |keyword: &str| match self.get(keyword) {
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Object(map)) => !map.is_empty() || keyword == "additionalItems",
            other => other.is_some(),
        };
        let keywords = [
            ("id", "id"),
            ("$schema", "schema"),
            ("$ref", "$ref"),
            ("patternProperties", "patternProperties"),
            ("dependencies", "dependencies"),
            ("additionalItems", "additionalItems"),
            ("definitions", "definitions"),
        ];
        if let Some((_, name)) = keywords.into_iter().find(|(keyword, _)| set(keyword)) {
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
        let inner = ["not", "allOf", "anyOf", "oneOf"].into_iter().find_map(|keyword| {
            let nested = self.one(keyword).into_iter().chain(self.several(keyword).map(|(_, node)| node));
            nested.into_iter().find_map(Node::unsupported)
        });
        if inner.is_some() {
            return inner;
        }
        if self.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            return Some(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
            );
        }
        if let Some(Value::Array(_)) = self.get("items") {
            return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        }
        let further = match self.further() {
            Some(Further::Schema(node)) => Some(node),
            _ => None,
        };
        let mut inner =
            self.items().into_iter().chain(self.properties().map(|(_, node)| node)).chain(further);
        inner.find_map(Node::unsupported)
    }
}
