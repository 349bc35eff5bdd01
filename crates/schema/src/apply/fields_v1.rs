//! FieldsV1: how field sets are written into objects, such as `{"f:spec":{".":{},"f:a":{}}}`.

use super::fieldset::{FieldSet, Node};
use super::path::{ElementError, PathElement};
use super::values;
use serde_json::{Map, Value};

/// How deep a field set may be: deeper than any object that is let in.
const MAX_DEPTH: usize = 512;

/// Why a JSON value is no field set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A key that is no path element.
    #[error("parsing key as path element: {0}")]
    Element(String),
    /// Something other than an object where only objects are.
    #[error("expected an object")]
    NotAnObject,
    /// Nested beyond any object.
    #[error("nested too deeply")]
    TooDeep,
}

impl FieldSet {
    /// The set as the JSON of `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        self.to_object(false)
    }

    fn to_object(&self, with_self: bool) -> Value {
        let mut object = Map::new();
        if with_self {
            object.insert(".".into(), Value::Object(Map::new()));
        }
        for node in self.nodes() {
            let inside = match &node.children {
                Some(children) => children.to_object(node.member),
                None => Value::Object(Map::new()),
            };
            object.insert(node.element.to_text(), inside);
        }
        Value::Object(object)
    }

    /// The set as JSON text in the order of its elements, in which the reference writes it for typed kinds.
    pub fn to_fields_v1_text(&self) -> String {
        let mut out = String::new();
        self.write(false, &mut out);
        out
    }

    fn write(&self, with_self: bool, out: &mut String) {
        out.push('{');
        if with_self {
            out.push_str("\".\":{}");
        }
        for (i, node) in self.nodes().iter().enumerate() {
            if i > 0 || with_self {
                out.push(',');
            }
            values::json_string(&node.element.to_text(), out);
            out.push(':');
            match &node.children {
                Some(children) => children.write(node.member, out),
                None => out.push_str("{}"),
            }
        }
        out.push('}');
    }

    /// Reads the JSON of `fieldsV1`. Elements of unknown types are left out: a later version may know them.
    pub fn from_fields_v1(value: &Value) -> Result<FieldSet, FieldsError> {
        Ok(read(value, 0)?.0)
    }
}

/// The paths below a value, and whether the path to the value itself is in the set.
fn read(value: &Value, depth: usize) -> Result<(FieldSet, bool), FieldsError> {
    if depth > MAX_DEPTH {
        return Err(FieldsError::TooDeep);
    }
    let object = match value {
        Value::Object(object) => object,
        Value::Null => return Ok((FieldSet::new(), true)),
        _ => return Err(FieldsError::NotAnObject),
    };
    let mut member = false;
    let mut nodes: Vec<Node> = Vec::with_capacity(object.len());
    for (key, inside) in object {
        if key == "." {
            member = true;
            continue;
        }
        let element = match PathElement::from_text(key) {
            Ok(element) => element,
            Err(ElementError::UnknownType) => continue,
            Err(ElementError::Malformed(message)) => return Err(FieldsError::Element(message)),
        };
        let (children, member) = read(inside, depth + 1)?;
        nodes.push(Node::new(element, member, children));
    }
    let set = FieldSet::from_nodes(nodes);
    let member = member || set.is_empty();
    Ok((set, member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn membership_of_a_node_with_children_is_a_dot() {
        let fields = json!({"f:spec": {
            "f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}},
            "f:set": {"v:\"p\"": {}},
        }});
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        assert_eq!(
            set.texts(),
            [r#".spec.list[name="a"]"#, r#".spec.list[name="a"].name"#, r#".spec.set[="p"]"#]
        );
        assert_eq!(set.to_fields_v1(), fields);
        assert_eq!(serde_json::from_str::<Value>(&set.to_fields_v1_text()).unwrap(), fields);
    }

    #[test]
    fn text_is_in_element_order_not_in_key_order() {
        let set = FieldSet::from_fields_v1(&json!({"v:10": {}, "v:9": {}, "f:z": {}})).unwrap();
        assert_eq!(set.to_fields_v1_text(), r#"{"f:z":{},"v:9":{},"v:10":{}}"#);
    }

    #[test]
    fn unknown_elements_are_dropped_and_broken_ones_refused() {
        let set = FieldSet::from_fields_v1(&json!({"f:a": {"x:future": {}}, "x:b": {}})).unwrap();
        assert_eq!(set, FieldSet::of_fields(&[&["a"]]));
        assert!(FieldSet::from_fields_v1(&json!({"spec": {}})).is_err());
        assert!(FieldSet::from_fields_v1(&json!({"f:a": 1})).is_err());
        assert_eq!(FieldSet::from_fields_v1(&json!({"v:1": {}, "v:1.0": {"f:a": {}}})).unwrap().len(), 2);
    }

    #[test]
    fn depth_is_bounded() {
        let mut deep = json!({});
        for _ in 0..(MAX_DEPTH + 2) {
            deep = json!({"f:a": deep});
        }
        assert_eq!(FieldSet::from_fields_v1(&deep), Err(FieldsError::TooDeep));
    }
}
