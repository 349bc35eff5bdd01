//! Defaults must be valid under their own schema, and contain nothing that pruning would remove.

use crate::field::{self, FieldError, Path};
use crate::rules::Rules;
use crate::schema::{Additional, Schema};
use crate::{embedded, prune, validate};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The way from the nearest resource to a schema inside of its metadata.
#[derive(Clone, Copy)]
enum Way<'a> {
    Root,
    Field(&'a Way<'a>, &'a str),
    Index(&'a Way<'a>),
}

impl Way<'_> {
    /// A whole object with `value` at the end of the way.
    fn surround(&self, value: Value) -> Value {
        match self {
            Way::Root => match value {
                Value::Object(mut fields) => {
                    fields.insert("apiVersion".to_owned(), "validation/v1".into());
                    fields.insert("kind".to_owned(), "Validation".into());
                    Value::Object(fields)
                }
                other => other,
            },
            Way::Field(parent, name) => parent.surround(Map::from_iter([((*name).to_owned(), value)]).into()),
            Way::Index(parent) => parent.surround(Value::Array(vec![value])),
        }
    }
}

pub(super) fn check(root: &Arc<Schema>, path: &Path, errors: &mut Vec<FieldError>) {
    let root = &for_defaults(root);
    node(&as_resource(root), root, &Way::Root, false, path, errors);
}

/// How the real server reads a schema to check defaults: `x-kubernetes-int-or-string` allows every type, and every format
/// counts.
fn for_defaults(schema: &Arc<Schema>) -> Arc<Schema> {
    let mut copy = Schema { int_or_string: false, any_format: true, ..(**schema).clone() };
    copy.properties.values_mut().for_each(|property| *property = for_defaults(property));
    if let Some(Additional::Schema(further)) = &mut copy.additional {
        *further = for_defaults(further);
    }
    let logic = copy.all_of.iter_mut().chain(&mut copy.any_of).chain(&mut copy.one_of);
    for inner in logic.chain(&mut copy.not).chain(&mut copy.items) {
        *inner = for_defaults(inner);
    }
    Arc::new(copy)
}

fn as_resource(schema: &Arc<Schema>) -> Arc<Schema> {
    if schema.embedded_resource {
        return schema.clone();
    }
    Arc::new(Schema { embedded_resource: true, ..(**schema).clone() })
}

fn node(
    schema: &Arc<Schema>,
    resource: &Arc<Schema>,
    way: &Way<'_>,
    inside_meta: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let (resource, way, inside_meta) =
        if schema.embedded_resource { (schema, &Way::Root, false) } else { (resource, way, inside_meta) };
    if let Some(default) = &schema.default {
        let path = path.child("default");
        if inside_meta {
            in_metadata(schema, default, resource, way, &path, errors);
        } else {
            anywhere(schema, default, &path, errors);
        }
    }
    // Not into additionalProperties, where nothing says what a default would belong to.
    if let Some(items) = &schema.items {
        node(items, resource, &Way::Index(way), inside_meta, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        let meta = schema.embedded_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let path = path.child("properties").key(name);
        node(property, resource, &Way::Field(way, name), inside_meta || meta, &path, errors);
    }
}

fn in_metadata(
    schema: &Arc<Schema>,
    default: &Value,
    resource: &Arc<Schema>,
    way: &Way<'_>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let mut object = way.surround(default.clone());
    let resource = as_resource(resource);
    let nowhere = Path::root();
    let wrong = match embedded::coerce(&resource, &mut object, &nowhere) {
        Err(error) => Some(error.to_string()),
        Ok(_) => {
            let wrong = embedded::validate(&resource, &object, &nowhere);
            (!wrong.is_empty()).then(|| field::aggregate(&wrong))
        }
    };
    match wrong {
        Some(why) => {
            let why = format!("must result in valid metadata: {why}");
            errors.push(FieldError::invalid(path, default.clone(), why));
        }
        None => errors.extend(by_schema_and_rules(schema, default, path)),
    }
}

fn anywhere(schema: &Arc<Schema>, default: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let mut pruned = default.clone();
    prune::prune(schema, &mut pruned, schema.embedded_resource);
    if pruned != *default {
        errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
    }
    let mut coerced = default.clone();
    if let Err(error) = embedded::coerce(schema, &mut coerced, path) {
        return errors.push(error);
    }
    let wrong = embedded::validate(schema, &coerced, path);
    if !wrong.is_empty() {
        return errors.extend(wrong);
    }
    errors.extend(by_schema_and_rules(schema, &coerced, path));
}

fn by_schema_and_rules(schema: &Arc<Schema>, default: &Value, path: &Path) -> Vec<FieldError> {
    let errors = validate::against_schema(schema, default, path);
    match Rules::of(schema, schema.embedded_resource) {
        Some(rules) if errors.is_empty() => rules.of_default(default, path),
        _ => errors,
    }
}
