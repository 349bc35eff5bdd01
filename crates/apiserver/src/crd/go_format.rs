//! A CRD's versions as Go formats them in errors: by the names of the Go fields, all of them.

use serde_json::Value;

/// How a field looks when nothing is set.
#[derive(Clone, Copy)]
enum Is {
    Text,
    Truth,
    /// A pointer, a list or a map: null when it is not set.
    Null,
    Schema,
    Schemas,
    Named,
    /// `items`: one schema or several.
    Items,
    /// `additionalProperties`: a schema or a truth.
    Further,
    Rules,
}

/// Go's names of a schema's fields, and the keywords they stand for.
const FIELDS: [(&str, &str, Is); 44] = [
    ("ID", "id", Is::Text),
    ("Schema", "$schema", Is::Text),
    ("Ref", "$ref", Is::Null),
    ("Description", "description", Is::Text),
    ("Type", "type", Is::Text),
    ("Nullable", "nullable", Is::Truth),
    ("Format", "format", Is::Text),
    ("Title", "title", Is::Text),
    ("Default", "default", Is::Null),
    ("Maximum", "maximum", Is::Null),
    ("ExclusiveMaximum", "exclusiveMaximum", Is::Truth),
    ("Minimum", "minimum", Is::Null),
    ("ExclusiveMinimum", "exclusiveMinimum", Is::Truth),
    ("MaxLength", "maxLength", Is::Null),
    ("MinLength", "minLength", Is::Null),
    ("Pattern", "pattern", Is::Text),
    ("MaxItems", "maxItems", Is::Null),
    ("MinItems", "minItems", Is::Null),
    ("UniqueItems", "uniqueItems", Is::Truth),
    ("MultipleOf", "multipleOf", Is::Null),
    ("Enum", "enum", Is::Null),
    ("MaxProperties", "maxProperties", Is::Null),
    ("MinProperties", "minProperties", Is::Null),
    ("Required", "required", Is::Null),
    ("Items", "items", Is::Items),
    ("AllOf", "allOf", Is::Schemas),
    ("OneOf", "oneOf", Is::Schemas),
    ("AnyOf", "anyOf", Is::Schemas),
    ("Not", "not", Is::Schema),
    ("Properties", "properties", Is::Named),
    ("AdditionalProperties", "additionalProperties", Is::Further),
    ("PatternProperties", "patternProperties", Is::Named),
    ("Dependencies", "dependencies", Is::Null),
    ("AdditionalItems", "additionalItems", Is::Further),
    ("Definitions", "definitions", Is::Named),
    ("ExternalDocs", "externalDocs", Is::Null),
    ("Example", "example", Is::Null),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Is::Null),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Is::Truth),
    ("XIntOrString", "x-kubernetes-int-or-string", Is::Truth),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Is::Null),
    ("XListType", "x-kubernetes-list-type", Is::Null),
    ("XMapType", "x-kubernetes-map-type", Is::Null),
    ("XValidations", "x-kubernetes-validations", Is::Rules),
];

/// Go's names of a rule's fields.
const RULE: [(&str, &str, Is); 6] = [
    ("Rule", "rule", Is::Text),
    ("Message", "message", Is::Text),
    ("MessageExpression", "messageExpression", Is::Text),
    ("Reason", "reason", Is::Null),
    ("FieldPath", "fieldPath", Is::Text),
    ("OptionalOldSelf", "optionalOldSelf", Is::Null),
];

fn object(fields: &[(&str, &str, Is)], value: &Value) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, keyword, is)| format!("\"{name}\":{}", field(value.get(keyword), *is)))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn list(value: &Value, item: impl Fn(&Value) -> String) -> String {
    let items: Vec<String> = value.as_array().into_iter().flatten().map(item).collect();
    format!("[{}]", items.join(","))
}

fn plain(value: &Value) -> String {
    String::from_utf8_lossy(&windlass_schema::json::write(value)).into_owned()
}

fn field(value: Option<&Value>, is: Is) -> String {
    let value = value.filter(|value| !value.is_null());
    match (value, is) {
        (None, Is::Text) => "\"\"".to_owned(),
        (None, Is::Truth) => "false".to_owned(),
        (None, _) => "null".to_owned(),
        (Some(value), Is::Schema) => schema(value),
        (Some(value), Is::Schemas) => list(value, schema),
        (Some(value), Is::Rules) => list(value, |rule| object(&RULE, rule)),
        (Some(value), Is::Named) => {
            let fields = value.as_object().into_iter().flatten();
            let fields: Vec<String> = fields
                .map(|(name, inner)| format!("{}:{}", plain(&Value::from(name.as_str())), schema(inner)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        (Some(value), Is::Items) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        (Some(Value::Bool(allowed)), Is::Further) => format!("{{\"Allows\":{allowed},\"Schema\":null}}"),
        (Some(value), Is::Further) => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value)),
        (Some(value), Is::Text | Is::Truth | Is::Null) => plain(value),
    }
}

fn schema(value: &Value) -> String {
    object(&FIELDS, value)
}

/// The versions; `shared` says whether a part is the same in all, and so kept elsewhere.
pub(super) fn versions(versions: &[Value], shared: impl Fn(&str) -> bool) -> String {
    let part = |version: &Value, name: &str, show: &dyn Fn(&Value) -> String| {
        let value = version.get(name).filter(|value| !value.is_null() && !shared(name));
        value.map_or_else(|| "null".to_owned(), show)
    };
    let shown = versions.iter().map(|version| {
        let columns = |columns: &Value| {
            list(columns, |column| {
                let fields = [
                    ("Name", "name", Is::Text),
                    ("Type", "type", Is::Text),
                    ("Format", "format", Is::Text),
                    ("Description", "description", Is::Text),
                ];
                let object = object(&fields, column);
                let priority = column.get("priority").map_or_else(|| "0".to_owned(), plain);
                let path = field(column.get("jsonPath"), Is::Text);
                format!("{},\"Priority\":{priority},\"JSONPath\":{path}}}", object.trim_end_matches('}'))
            })
        };
        let subresources = |subresources: &Value| {
            let status = subresources.get("status").filter(|status| !status.is_null());
            let scale = subresources.get("scale").filter(|scale| !scale.is_null());
            let paths = [
                ("SpecReplicasPath", "specReplicasPath", Is::Text),
                ("StatusReplicasPath", "statusReplicasPath", Is::Text),
                ("LabelSelectorPath", "labelSelectorPath", Is::Null),
            ];
            format!(
                "{{\"Status\":{},\"Scale\":{}}}",
                if status.is_some() { "{}" } else { "null" },
                scale.map_or_else(|| "null".to_owned(), |scale| object(&paths, scale))
            )
        };
        let whole = |wrapped: &Value| {
            let inner = wrapped.get("openAPIV3Schema").map_or_else(|| "null".to_owned(), schema);
            format!("{{\"OpenAPIV3Schema\":{inner}}}")
        };
        let selectable =
            |fields: &Value| list(fields, |field| object(&[("JSONPath", "jsonPath", Is::Text)], field));
        let first = [
            ("Name", "name", Is::Text),
            ("Served", "served", Is::Truth),
            ("Storage", "storage", Is::Truth),
            ("Deprecated", "deprecated", Is::Truth),
            ("DeprecationWarning", "deprecationWarning", Is::Null),
        ];
        format!(
            "{},\"Schema\":{},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
            object(&first, version).trim_end_matches('}'),
            part(version, "schema", &whole),
            part(version, "subresources", &subresources),
            part(version, "additionalPrinterColumns", &columns),
            part(version, "selectableFields", &selectable)
        )
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(","))
}
