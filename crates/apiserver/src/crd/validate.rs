//! Validation of a CustomResourceDefinition.

use super::approval::{self, Approval};
use super::{conversion, flag, go_format, is_true, versions};
use crate::object::text;
use serde_json::Value;
use std::sync::Arc;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::meta::NameRule;
use windlass_schema::{Schema, Type, rules, structural};

/// Checks a new definition, its name apart from the rules for all names.
pub(crate) fn create(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let required = format!("{}.{}", text(crd, &["spec", "names", "plural"]), text(crd, &["spec", "group"]));
    let name = text(crd, &["metadata", "name"]);
    if name != required {
        let path = Path::new("metadata").child("name");
        errors.push(FieldError::invalid(&path, name, r#"must be spec.names.plural+"."+spec.group"#));
    }
    errors.extend(spec(crd));
    errors.extend(status(crd));
    errors.extend(approval(crd, None));
    errors.extend(preserves(crd));
    errors
}

/// Checks a changed definition.
pub(crate) fn update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    if subresource == "status" {
        return names(new.pointer("/status/acceptedNames"), &Path::new("status").child("acceptedNames"));
    }
    let mut errors = spec(new);
    errors.retain(|error| !rules::is_of_one_estimate(error) || !is_of_old_schema(error, new, old));
    let mut immutable = |pointer: &str, path: Path| {
        let (new, old) = (new.pointer(pointer), old.pointer(pointer));
        if new != old {
            errors.push(FieldError::invalid(&path, new.cloned().unwrap_or_default(), "field is immutable"));
        }
    };
    let spec_path = Path::new("spec");
    if is_true(old, "Established") {
        immutable("/spec/scope", spec_path.child("scope"));
        immutable("/spec/names/kind", spec_path.child("names").child("kind"));
    }
    immutable("/spec/group", spec_path.child("group"));
    immutable("/spec/names/plural", spec_path.child("names").child("plural"));
    errors.extend(status(new));
    errors.extend(approval(new, Some(old)));
    errors.extend(preserves(new));
    errors
}

/// Is the error about a schema that was there before? What its rules could cost was found to be in order, or was not looked
/// at, when it came.
fn is_of_old_schema(error: &FieldError, new: &Value, old: &Value) -> bool {
    let versions =
        |crd: &Value| crd.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default();
    let before = versions(old);
    versions(new).iter().enumerate().any(|(index, version)| {
        let known = before.iter().find(|known| known["name"] == version["name"]);
        error.path.starts_with(&format!("spec.versions[{index}].schema"))
            && known.is_some_and(|known| known["schema"] == version["schema"])
    })
}

fn spec(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = Path::new("spec");
    let group = text(crd, &["spec", "group"]);
    let wrong = NameRule::Subdomain.check(group);
    if group.is_empty() {
        errors.push(FieldError::required(&path.child("group"), ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid(&path.child("group"), group, wrong.join(",")));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&path.child("group"), group, why));
    }
    match text(crd, &["spec", "scope"]) {
        "" => errors.push(FieldError::required(&path.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => {
            errors.push(FieldError::not_supported(&path.child("scope"), other, &["Cluster", "Namespaced"]));
        }
    }
    let versions_path = path.child("versions");
    for (index, version) in versions(crd).iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let path = versions_path.index(index).child("schema").child("openAPIV3Schema");
            errors.push(FieldError::required(&path, ""));
        }
    }
    for (index, version) in versions(crd).iter().enumerate() {
        errors.extend(one_version(crd, version, &versions_path.index(index)));
    }
    let all = crd.pointer("/spec/versions").cloned().unwrap_or_default();
    let wrong = |why: &str| {
        let error = FieldError::invalid(&versions_path, all.clone(), why);
        match all.is_null() {
            true => error,
            false => error.showing(go_format::versions(versions(crd), |part| shared(crd, part))),
        }
    };
    let mut seen: Vec<&str> = versions(crd).iter().map(|version| text(version, &["name"])).collect();
    seen.sort_unstable();
    if seen.windows(2).any(|pair| pair[0] == pair[1]) {
        errors.push(wrong("must contain unique version names"));
    }
    if versions(crd).iter().filter(|version| flag(version, "storage")).count() != 1 {
        errors.push(wrong("must have exactly one version marked as storage version"));
    }
    // The name of the first version was once a field of its own, and is still looked at there too.
    let first = versions(crd).first().map_or("", |version| text(version, &["name"]));
    let misnamed = NameRule::Label1035.check(first);
    if !first.is_empty() && !misnamed.is_empty() {
        errors.push(FieldError::invalid(&path.child("version"), first, misnamed.join(",")));
    }
    let names_path = path.child("names");
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(crd, &["spec", "names", name]).is_empty() {
            errors.push(FieldError::required(&names_path.child(name), ""));
        }
    }
    errors.extend(names(crd.pointer("/spec/names"), &names_path));
    if let Some(first) = versions(crd).first() {
        errors.extend(shared_parts(crd, first, &path));
    }
    errors.extend(conversion::validate(crd, &path.child("conversion")));
    errors
}

fn one_version(crd: &Value, version: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(version, &["name"]);
    let wrong = NameRule::Label1035.check(name);
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(&path.child("name"), name, wrong.join(",")));
    }
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        let mut complain = |why: &str| {
            errors.push(FieldError::invalid(&path.child("deprecationWarning"), warning, why));
        };
        match warning.len() {
            _ if !flag(version, "deprecated") => complain("can only be set for deprecated versions"),
            0 => complain("must not be an empty string"),
            257.. => complain("must be <= 256 characters long"),
            _ => {}
        }
    }
    if !shared(crd, "schema") {
        errors.extend(schema_part(version, &path.child("schema")));
    }
    if !shared(crd, "subresources") {
        errors.extend(scale(version, &path.child("subresources")));
    }
    if !shared(crd, "additionalPrinterColumns") {
        errors.extend(printer_columns(version, &path.child("additionalPrinterColumns")));
    }
    if !shared(crd, "selectableFields") {
        errors.extend(selectable_fields(version, &path.child("selectableFields")));
    }
    errors
}

/// Whether all versions say the same: then the reference keeps it in one place, and tells of that place.
fn shared(crd: &Value, field: &str) -> bool {
    let first = versions(crd).first().and_then(|version| version.get(field)).filter(|value| !value.is_null());
    first.is_some_and(|first| versions(crd).iter().all(|version| version.get(field) == Some(first)))
}

fn shared_parts(crd: &Value, first: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if shared(crd, "schema") {
        errors.extend(schema_part(first, &path.child("validation")));
    }
    if shared(crd, "subresources") {
        errors.extend(scale(first, &path.child("subresources")));
    }
    if shared(crd, "additionalPrinterColumns") {
        errors.extend(printer_columns(first, &path.child("additionalPrinterColumns")));
    }
    if shared(crd, "selectableFields") {
        errors.extend(selectable_fields(first, &path.child("selectableFields")));
    }
    errors
}

/// How many fields of a version selectors may name.
const MOST_SELECTABLE: usize = 8;

/// Fields that selectors may name must be there, and be of a type that can be written in a selector.
fn selectable_fields(version: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let fields = version.get("selectableFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(schema) = schema_of(version).filter(|_| !fields.is_empty()) else { return errors };
    let mut known: Vec<String> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let (given, path) = (text(field, &["jsonPath"]), path.index(index).child("jsonPath"));
        if given.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let found = match rules::find_field(given, &schema, false) {
            Ok(found) => found,
            Err(rules::Refused(why)) => {
                errors.push(FieldError::invalid(&path, given, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if found.path.split('.').next() == Some("metadata") {
            errors.push(FieldError::invalid(&path, given, "must not point to fields in metadata"));
        }
        if !matches!(found.schema.kind, Some(Type::String | Type::Boolean | Type::Integer)) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                       formats are allowed.";
            errors.push(FieldError::invalid(&path, given, why));
        }
        if known.contains(&found.path) {
            errors.push(FieldError::duplicate(&path, given));
        } else {
            known.push(found.path);
        }
    }
    if known.len() > MOST_SELECTABLE {
        errors.push(FieldError::too_many(path, known.len(), MOST_SELECTABLE));
    }
    errors
}

fn schema_part(version: &Value, path: &Path) -> Vec<FieldError> {
    let Some(schema) = version.pointer("/schema/openAPIV3Schema") else { return Vec::new() };
    let status = version.pointer("/subresources/status").is_some();
    schema_errors(schema, status, &path.child("openAPIV3Schema"))
}

fn printer_columns(version: &Value, path: &Path) -> Vec<FieldError> {
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array).into_iter().flatten();
    columns.enumerate().flat_map(|(index, column)| printer_column(column, &path.index(index))).collect()
}

fn schema_errors(schema: &Value, has_status: bool, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_status && text(schema, &["type"]) != "object" && schema.get("type").is_some() {
        let why = r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
        let path = Path::new(&format!("{path}.type"));
        errors.push(FieldError::invalid(&path, text(schema, &["type"]), why));
    }
    errors.extend(structural::check(schema, path));
    errors
}

/// The schema of a version, if it can be read; validation has made sure of it for what is stored.
pub(crate) fn schema_of(version: &Value) -> Option<Arc<Schema>> {
    Schema::from_json(version.pointer("/schema/openAPIV3Schema")?).ok().map(Arc::new)
}

fn scale(version: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(scale) = version.pointer("/subresources/scale") else { return errors };
    let fields: [(&str, &[&str], &str); 3] = [
        ("specReplicasPath", &[".spec."], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ];
    for (field, prefixes, why) in fields {
        let value = text(scale, &[field]);
        let path = path.child(&format!("scale.{field}"));
        if value.is_empty() {
            if field != "labelSelectorPath" {
                errors.push(FieldError::required(&path, ""));
            }
        } else if !value.starts_with('.') {
            errors.push(FieldError::invalid(&path, value, "must be a simple json path starting with ."));
        } else if !prefixes.iter().any(|prefix| value.starts_with(prefix)) {
            errors.push(FieldError::invalid(&path, value, why));
        }
    }
    errors
}

fn printer_column(column: &Value, path: &Path) -> Vec<FieldError> {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let mut errors = Vec::new();
    if text(column, &["name"]).is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let kind = text(column, &["type"]);
    let must = |known: &[&str]| format!("must be one of {}", known.join(","));
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), must(&TYPES)));
    } else if !TYPES.contains(&kind) {
        errors.push(FieldError::invalid(&path.child("type"), kind, must(&TYPES)));
    }
    let format = text(column, &["format"]);
    if !format.is_empty() && !FORMATS.contains(&format) {
        errors.push(FieldError::invalid(&path.child("format"), format, must(&FORMATS)));
    }
    let json_path = text(column, &["jsonPath"]);
    if json_path.is_empty() {
        errors.push(FieldError::required(&path.child("JSONPath"), ""));
    } else if !json_path.starts_with('.') {
        let why = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(&path.child("JSONPath"), json_path, why));
    }
    errors
}

fn names(names: Option<&Value>, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(names) = names else { return errors };
    let mut check = |path: Path, shown: &str, checked: &str, prefix: &str| {
        let wrong = NameRule::Label1035.check(checked);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path, shown, format!("{prefix}{}", wrong.join(","))));
        }
    };
    for name in ["plural", "singular", "kind", "listKind"] {
        let value = text(names, &[name]);
        if value.is_empty() {
            continue;
        }
        let (lower, prefix) = match name {
            "kind" | "listKind" => {
                (value.to_lowercase(), "may have mixed case, but should otherwise match: ")
            }
            _ => (value.to_owned(), ""),
        };
        check(path.child(name), value, &lower, prefix);
    }
    let list = |name: &str| names.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    for (index, name) in list("shortNames") {
        let name = name.as_str().unwrap_or_default();
        check(path.child("shortNames").index(index), name, name, "");
    }
    let kind = text(names, &["kind"]);
    let same = (!kind.is_empty() && kind == text(names, &["listKind"]))
        .then(|| FieldError::invalid(&path.child("listKind"), kind, "kind and listKind may not be the same"));
    let before = errors.len();
    let mut check = |path: Path, shown: &str| {
        let wrong = NameRule::Label1035.check(shown);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path, shown, wrong.join(",")));
        }
    };
    for (index, name) in list("categories") {
        check(path.child("categories").index(index), name.as_str().unwrap_or_default());
    }
    if let Some(same) = same {
        errors.insert(before, same);
    }
    errors
}

fn status(crd: &Value) -> Vec<FieldError> {
    let mut errors = names(crd.pointer("/status/acceptedNames"), &Path::new("status").child("acceptedNames"));
    let path = Path::new("status").child("storedVersions");
    let stored = crd.pointer("/status/storedVersions").cloned().unwrap_or_default();
    let listed = stored.as_array().map_or(&[][..], Vec::as_slice);
    if listed.is_empty() {
        errors.push(FieldError::invalid(&path, stored, "must have at least one stored version"));
        return errors;
    }
    let name_of = |version: &Value| version.get("name").cloned().unwrap_or_default();
    for version in versions(crd) {
        if flag(version, "storage") && !listed.contains(&name_of(version)) {
            let why = format!("must have the storage version {}", text(version, &["name"]));
            errors.push(FieldError::invalid(&path, stored.clone(), why));
        }
    }
    for (index, name) in listed.iter().enumerate() {
        if !versions(crd).iter().any(|version| name_of(version) == *name) {
            let shown = name.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {shown} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {shown} and removes {shown} from \
                 status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(index), shown, why));
        }
    }
    errors
}

fn approval(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some((state, why)) = approval::of(crd) else { return Vec::new() };
    if old.is_some_and(|old| approval::value(old) == approval::value(crd)) {
        return Vec::new();
    }
    let path = Path::new("metadata").child("annotations").key(approval::ANNOTATION);
    match state {
        Approval::Approved | Approval::Bypassed => Vec::new(),
        Approval::Missing => vec![FieldError::required(&path, why)],
        Approval::Invalid => vec![FieldError::invalid(&path, approval::value(crd), why)],
    }
}

fn preserves(crd: &Value) -> Vec<FieldError> {
    if !crd.pointer("/spec/preserveUnknownFields").and_then(Value::as_bool).unwrap_or(false) {
        return Vec::new();
    }
    let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    vec![FieldError::invalid(&Path::new("spec").child("preserveUnknownFields"), true, why)]
}
