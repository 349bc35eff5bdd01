//! Kubebuilder's markers: what each takes and refuses, or which test shows what it does.

/// A marker that decides what is taken.
pub(crate) struct Case {
    pub(crate) marker: &'static str,
    /// Fields of the spec that are taken.
    pub(crate) good: &'static str,
    /// Fields of the spec that are refused.
    pub(crate) bad: &'static str,
    /// What the refusal says.
    pub(crate) says: &'static str,
}

const fn case(marker: &'static str, good: &'static str, bad: &'static str, says: &'static str) -> Case {
    Case { marker, good, bad, says }
}

/// The test that tries all of [`CASES`].
pub(crate) const VERDICTS: &str = "valid values are accepted and invalid ones rejected";

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    case("validation:Maximum", r#"{"maximum": 10}"#, r#"{"maximum": 11}"#, "spec.maximum in body should be less than or equal to 10"),
    case("validation:Minimum", r#"{"minimum": 1}"#, r#"{"minimum": 0}"#, "spec.minimum in body should be greater than or equal to 1"),
    case("validation:ExclusiveMaximum", r#"{"exclusiveMaximum": 9}"#, r#"{"exclusiveMaximum": 10}"#, "spec.exclusiveMaximum in body should be less than 10"),
    case("validation:ExclusiveMinimum", r#"{"exclusiveMinimum": 2}"#, r#"{"exclusiveMinimum": 1}"#, "spec.exclusiveMinimum in body should be greater than 1"),
    case("validation:MultipleOf", r#"{"multipleOf": 10}"#, r#"{"multipleOf": 11}"#, "spec.multipleOf in body should be a multiple of 5"),
    case("validation:MaxLength", r#"{"maxLength": "abc"}"#, r#"{"maxLength": "abcd"}"#, "spec.maxLength: Too long"),
    case("validation:MinLength", r#"{"minLength": "ab"}"#, r#"{"minLength": "a"}"#, "spec.minLength in body should be at least 2 chars long"),
    case("validation:Pattern", r#"{"pattern": "abc"}"#, r#"{"pattern": "ABC"}"#, "spec.pattern in body should match"),
    case("validation:Format", r#"{"format": "10.0.0.1"}"#, r#"{"format": "10.0.0"}"#, "spec.format in body must be of type ipv4"),
    case("validation:Enum", r#"{"enum": "Red"}"#, r#"{"enum": "Green"}"#, "spec.enum: Unsupported value"),
    case("validation:Type", r#"{"type": "5"}"#, r#"{"type": 5}"#, "spec.type"),
    case("validation:MaxItems", r#"{"maxItems": ["a", "b"]}"#, r#"{"maxItems": ["a", "b", "c"]}"#, "spec.maxItems: Too many"),
    case("validation:MinItems", r#"{"minItems": ["a", "b"]}"#, r#"{"minItems": ["a"]}"#, "spec.minItems in body should have at least 2 items"),
    case("validation:UniqueItems", r#"{"uniqueItems": ["a", "b"]}"#, r#"{"uniqueItems": ["a", "a"]}"#, "spec.uniqueItems[1]: Duplicate value"),
    case("validation:items:*", r#"{"items": ["abc"]}"#, r#"{"items": ["a", "abcd"]}"#, "spec.items[1]: Too long"),
    case("validation:MaxProperties", r#"{"maxProperties": {"a": "", "b": ""}}"#, r#"{"maxProperties": {"a": "", "b": "", "c": ""}}"#, "spec.maxProperties: Too many"),
    case("validation:MinProperties", r#"{"minProperties": {"a": "", "b": ""}}"#, r#"{"minProperties": {"a": ""}}"#, "spec.minProperties in body should have at least 2 properties"),
    case("validation:Required", r#"{"required": ""}"#, r#"{"required": null}"#, "spec.required: Required value"),
    case("validation:EmbeddedResource", r#"{"embeddedResource": {"apiVersion": "v1", "kind": "Pod"}}"#, r#"{"embeddedResource": {"kind": "Pod"}}"#, "spec.embeddedResource.apiVersion: Required value"),
    case("validation:XIntOrString", r#"{"intOrString": "80%"}"#, r#"{"intOrString": true}"#, "spec.intOrString"),
    case("validation:XValidation:rule", r#"{"rule": {"low": 1, "high": 2}}"#, r#"{"rule": {"low": 3, "high": 2}}"#, "spec.rule.low: Forbidden: low is above high"),
    case("validation:XValidation:messageExpression", r#"{"rule": {"low": 2, "high": 2}}"#, r#"{"rule": {"low": 4, "high": 2}}"#, "low is far above high"),
    case("validation:XValidation:reason", r#"{"rule": {"low": 0, "high": 2}}"#, r#"{"rule": {"low": 5, "high": 2}}"#, "Forbidden"),
    case("validation:XValidation:fieldPath", r#"{"rule": {"low": 0, "high": 0}}"#, r#"{"rule": {"low": 6, "high": 2}}"#, "spec.rule.low"),
    case("validation:AtMostOneOf", r#"{"atMostOneOf": {}}"#, r#"{"atMostOneOf": {"one": "a", "two": "b"}}"#, "at most one of one, two may be set"),
    case("validation:ExactlyOneOf", r#"{"exactlyOneOf": {"two": "b"}}"#, r#"{"exactlyOneOf": {}}"#, "exactly one of one, two must be set"),
    case("validation:AtLeastOneOf", r#"{"atLeastOneOf": {"one": "a", "two": "b"}}"#, r#"{"atLeastOneOf": {}}"#, "at least one of one, two must be set"),
];

/// Markers that do something else, and the test that shows it.
#[rustfmt::skip]
pub(crate) const OTHERS: &[(&str, &str)] = &[
    ("validation:Optional", "values are defaulted, preserved and pruned"),
    ("nullable", "values are defaulted, preserved and pruned"),
    ("default", "values are defaulted, preserved and pruned"),
    ("example", "values are defaulted, preserved and pruned"),
    ("title", "values are defaulted, preserved and pruned"),
    ("pruning:PreserveUnknownFields", "values are defaulted, preserved and pruned"),
    ("validation:Schemaless", "values are defaulted, preserved and pruned"),
    ("validation:XValidation:message", "transition rules compare with the old value"),
    ("validation:XValidation:optionalOldSelf", "transition rules compare with the old value"),
    ("immutable (a rule)", "transition rules compare with the old value"),
    ("listType", "lists, maps and structs are merged as declared"),
    ("listMapKey", "lists, maps and structs are merged as declared"),
    ("mapType", "lists, maps and structs are merged as declared"),
    ("structType", "lists, maps and structs are merged as declared"),
    ("printcolumn", "printer columns, scale and selectable fields are as declared"),
    ("subresource:status", "printer columns, scale and selectable fields are as declared"),
    ("subresource:scale", "printer columns, scale and selectable fields are as declared"),
    ("resource:shortName", "printer columns, scale and selectable fields are as declared"),
    ("resource:categories", "printer columns, scale and selectable fields are as declared"),
    ("resource:scope", "printer columns, scale and selectable fields are as declared"),
    ("resource:path, singular", "printer columns, scale and selectable fields are as declared"),
    ("selectablefield", "printer columns, scale and selectable fields are as declared"),
    ("storageversion", "versions are stored, served and deprecated as declared"),
    ("unservedversion", "versions are stored, served and deprecated as declared"),
    ("deprecatedversion", "versions are stored, served and deprecated as declared"),
    ("metadata:annotations", "values are defaulted, preserved and pruned"),
    ("metadata:labels", "values are defaulted, preserved and pruned"),
];

/// All of them, in the order of the page. Those that are not here say nothing about objects: `skip`, `skipversion`, `groupName` and
/// the like tell kubebuilder's generator what to read.
#[rustfmt::skip]
pub(crate) const MARKERS: &[&str] = &[
    "validation:Maximum",
    "validation:Minimum",
    "validation:ExclusiveMaximum",
    "validation:ExclusiveMinimum",
    "validation:MultipleOf",
    "validation:MaxLength",
    "validation:MinLength",
    "validation:Pattern",
    "validation:Format",
    "validation:Enum",
    "validation:Type",
    "validation:MaxItems",
    "validation:MinItems",
    "validation:UniqueItems",
    "validation:items:*",
    "validation:MaxProperties",
    "validation:MinProperties",
    "validation:Required",
    "validation:Optional",
    "nullable",
    "default",
    "example",
    "title",
    "validation:EmbeddedResource",
    "pruning:PreserveUnknownFields",
    "validation:Schemaless",
    "validation:XIntOrString",
    "validation:XValidation:rule",
    "validation:XValidation:message",
    "validation:XValidation:messageExpression",
    "validation:XValidation:reason",
    "validation:XValidation:fieldPath",
    "validation:XValidation:optionalOldSelf",
    "immutable (a rule)",
    "validation:AtMostOneOf",
    "validation:ExactlyOneOf",
    "validation:AtLeastOneOf",
    "listType",
    "listMapKey",
    "mapType",
    "structType",
    "printcolumn",
    "subresource:status",
    "subresource:scale",
    "resource:shortName",
    "resource:categories",
    "resource:scope",
    "resource:path, singular",
    "selectablefield",
    "storageversion",
    "unservedversion",
    "deprecatedversion",
    "metadata:annotations",
    "metadata:labels",
];
