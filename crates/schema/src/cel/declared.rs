//! The types that a schema declares for expressions.

use super::escape::escape;
use super::types::{ObjectType, Type};
use crate::schema::{self, Additional, Schema};
use std::sync::Arc;

/// The schema's type; none where expressions see nothing of it.
pub(super) fn declare(schema: &Schema, name: &str) -> Option<Type> {
    if schema.int_or_string {
        return Some(Type::Dyn);
    }
    Some(match schema.kind? {
        schema::Type::Array => {
            let item = declare(schema.items.as_ref()?, &format!("{name}.@idx"))?;
            Type::List(item.into())
        }
        schema::Type::Object => {
            if let Some(Additional::Schema(values)) = &schema.additional {
                let value = declare(values, &format!("{name}.@elem"))?;
                return Some(Type::Map(Type::String.into(), value.into()));
            }
            let fields = schema.properties.iter().filter_map(|(property, schema)| {
                let escaped = escape(property)?.into_owned();
                let declared = declare(schema, &format!("{name}.{escaped}"))?;
                Some((escaped, declared))
            });
            let fields = fields.collect();
            Type::Object(Arc::new(ObjectType { name: name.to_owned(), fields, open: false }))
        }
        schema::Type::String => match schema.format.as_deref() {
            Some("byte") => Type::Bytes,
            Some("duration") => Type::Duration,
            Some("date" | "date-time") => Type::Timestamp,
            _ => Type::String,
        },
        schema::Type::Boolean => Type::Bool,
        schema::Type::Number => Type::Double,
        schema::Type::Integer => Type::Int,
    })
}

/// The schema as rules see it: the root of a resource always has `apiVersion`, `kind`, and of `metadata` the names alone.
pub(crate) fn as_seen(schema: &Schema, root: bool) -> Schema {
    let mut seen = schema.clone();
    seen.items = schema.items.as_ref().map(|items| Arc::new(as_seen(items, items.embedded_resource)));
    seen.properties = schema
        .properties
        .iter()
        .map(|(name, schema)| (name.clone(), Arc::new(as_seen(schema, schema.embedded_resource))))
        .collect();
    if let Some(Additional::Schema(values)) = &schema.additional {
        seen.additional = Some(Additional::Schema(Arc::new(as_seen(values, values.embedded_resource))));
    }
    if root && !names_itself(schema) {
        let text = || Arc::new(Schema { kind: Some(schema::Type::String), ..Schema::default() });
        let names = [("name".to_owned(), text()), ("generateName".to_owned(), text())];
        let metadata = Schema {
            kind: Some(schema::Type::Object),
            properties: names.into_iter().collect(),
            ..Schema::default()
        };
        seen.properties.insert("apiVersion".to_owned(), text());
        seen.properties.insert("kind".to_owned(), text());
        seen.properties.insert("metadata".to_owned(), Arc::new(metadata));
    }
    seen
}

/// Does the schema itself declare all that the root of a resource has?
fn names_itself(schema: &Schema) -> bool {
    let is_text = |schema: &Schema, name: &str| {
        schema.properties.get(name).is_some_and(|property| property.kind == Some(schema::Type::String))
    };
    let metadata = schema.properties.get("metadata");
    is_text(schema, "apiVersion")
        && is_text(schema, "kind")
        && metadata.is_some_and(|metadata| is_text(metadata, "name") && is_text(metadata, "generateName"))
}
