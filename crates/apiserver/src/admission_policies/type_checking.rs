//! Type checking: the expressions of a validating policy, compiled once more with the types of what it is about. What is found is
//! told in its status, and refuses nothing.

use crate::facts::FACTS;
use crate::kinds::policy_expressions::{TypeCheckedVariables, type_checked};
use crate::object::{list, text};
use crate::registry::Served;
use crate::resource::Resource;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_schema::Schema;

/// How many types a policy is checked with, for each of its rules.
const MOST_TYPES: usize = 10;

/// How deep a type may refer to others before the rest of it may be anything.
const MOST_LEVELS: usize = 24;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// What is wrong with an expression of a policy, given the types of what the policy is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// Where the expression is.
    pub field_ref: String,
    /// What is wrong, for each type.
    pub warning: String,
}

/// A type, and how warnings name it.
struct Checked {
    name: String,
    schema: Option<Schema>,
}

/// Checks the validations of a policy.
pub(crate) fn check(served: &Served, policy: &Value) -> Vec<ExpressionWarning> {
    let types: Vec<Checked> =
        resources(served, policy).into_values().map(|resource| checked(&resource)).collect();
    let params = policy.pointer("/spec/paramKind").filter(|kind| kind.is_object());
    let params = params.map(|kind| {
        let version = text(kind, &["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = text(kind, &["kind"]);
        let found = served.all().find(|resource| {
            (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str())
                == (group, version, kind)
        });
        found.and_then(|resource| checked(resource).schema)
    });
    let mut warnings = Vec::new();
    for (index, validation) in list(policy, &["spec", "validations"]).iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let expression = text(validation, &[field]);
            if expression.is_empty() {
                continue;
            }
            let mut found = Vec::new();
            for kind in &types {
                let variables = TypeCheckedVariables {
                    object: kind.schema.as_ref(),
                    params: params.as_ref().map(Option::as_ref),
                    own: list(policy, &["spec", "variables"]),
                };
                if let Err(why) = type_checked(&variables, expression) {
                    found.push(format!("{}: {why}\n", kind.name));
                }
            }
            if !found.is_empty() {
                let field_ref = format!("spec.validations[{index}].{field}");
                warnings.push(ExpressionWarning { field_ref, warning: found.join("\n") });
            }
        }
    }
    warnings
}

/// The resources that the rules of a policy name, by group, version and kind.
fn resources(served: &Served, policy: &Value) -> BTreeMap<(String, String, String), Arc<Resource>> {
    let mut found = BTreeMap::new();
    for rule in list(policy, &["spec", "matchConstraints", "resourceRules"]) {
        let texts = |field: &str| -> Vec<&str> {
            let mut texts: Vec<&str> = list(rule, &[field]).iter().filter_map(Value::as_str).collect();
            texts.sort_unstable();
            texts
        };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.iter().chain(&versions).any(|text| text.contains('*')) {
            continue;
        }
        let named = texts("resources").into_iter().filter(|plural| !plural.contains(['*', '/']));
        let named: Vec<&str> = named.collect();
        let mut count = 0;
        for (group, version) in
            groups.iter().flat_map(|group| versions.iter().map(move |version| (*group, *version)))
        {
            for plural in &named {
                // Without a group any will do.
                let fits = |resource: &&Arc<Resource>| {
                    (group.is_empty() || resource.group == group)
                        && resource.version == version
                        && resource.plural == *plural
                };
                for resource in served.all().filter(fits) {
                    let key = (resource.group.clone(), resource.version.clone(), resource.kind.clone());
                    found.insert(key, resource.clone());
                    count += 1;
                    if count == MOST_TYPES {
                        return found;
                    }
                }
            }
        }
    }
    found
}

fn checked(resource: &Resource) -> Checked {
    let Resource { group, version, kind, .. } = resource;
    let name = format!("{group}/{version}, Kind={kind}");
    let schema = resource.schema().map(|schema| {
        let mut schema = inlined(&schema, MOST_LEVELS);
        if resource.custom {
            let text = || Arc::new(of(&json!({"type": "string"})));
            schema.properties.insert("apiVersion".to_owned(), text());
            schema.properties.insert("kind".to_owned(), text());
            if let Some(metadata) = FACTS.schema(OBJECT_META) {
                schema.properties.insert("metadata".to_owned(), Arc::new(inlined(&metadata, MOST_LEVELS)));
            }
        }
        schema
    });
    Checked { name, schema }
}

fn of(schema: &Value) -> Schema {
    Schema::from_json(schema).unwrap_or_default()
}

/// A type with all that it refers to put in.
fn inlined(schema: &Arc<Schema>, left: usize) -> Schema {
    let mut schema = Schema::clone(&schema.resolved());
    let Some(left) = left.checked_sub(1) else {
        return of(&json!({"x-kubernetes-int-or-string": true}));
    };
    let inner = |schema: &Arc<Schema>| Arc::new(inlined(schema, left));
    schema.items = schema.items.as_ref().map(inner);
    schema.properties.values_mut().for_each(|property| *property = inner(property));
    if let Some(windlass_schema::Additional::Schema(values)) = &mut schema.additional {
        *values = inner(values);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn warnings(spec: Value) -> Vec<ExpressionWarning> {
        check(&Registry::new().served(), &json!({"spec": spec}))
    }

    fn about(groups: &[&str], resources: &[&str]) -> Value {
        json!({"resourceRules": [{"apiGroups": groups, "apiVersions": ["v1"], "resources": resources, "operations": ["*"]}]})
    }

    #[test]
    fn expressions_are_checked_with_the_types_that_a_policy_is_about() {
        let validations = json!([{"expression": "object.spec.replicas > 1"}, {"expression": "object.spec.missing == 1"},
            {"expression": "object.spec.replicas > 'one'", "messageExpression": "object.metadata.nothing"}]);
        let found = warnings(
            json!({"matchConstraints": about(&["apps"], &["deployments"]), "validations": validations}),
        );
        let places: Vec<&str> = found.iter().map(|warning| warning.field_ref.as_str()).collect();
        let expected = [
            "spec.validations[1].expression",
            "spec.validations[2].expression",
            "spec.validations[2].messageExpression",
        ];
        assert_eq!(places, expected);
        let told = &found[0].warning;
        assert!(
            told.starts_with("apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'missing'"),
            "{told}"
        );
        assert!(told.ends_with("^\n"), "{told}");
    }

    #[test]
    fn nothing_is_known_of_what_is_not_named() {
        let validations = json!([{"expression": "object.spec.missing == 1"}]);
        for constraints in
            [about(&["*"], &["deployments"]), about(&["apps"], &["*"]), about(&["apps"], &["none"])]
        {
            assert_eq!(warnings(json!({"matchConstraints": constraints, "validations": validations})), []);
        }
        let both = about(&["apps"], &["deployments", "statefulsets"]);
        let found = warnings(json!({"matchConstraints": both, "validations": validations}));
        assert_eq!(found[0].warning.matches("Kind=").count(), 2);
    }
}
