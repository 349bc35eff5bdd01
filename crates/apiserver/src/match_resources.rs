//! Which requests an admission webhook or policy is about: rules and selectors.

use serde::Deserialize;
use serde_json::Value;
use windlass_schema::selector::Labels;

/// What a request must fit.
#[derive(Debug, Default)]
pub(crate) struct MatchResources {
    pub(crate) rules: Vec<Rule>,
    /// What fits one of these is left out.
    pub(crate) excluded: Vec<Rule>,
    /// Whether a rule about one version of a resource is about all of them.
    pub(crate) equivalent: bool,
    pub(crate) namespaces: Labels,
    pub(crate) objects: Labels,
}

impl MatchResources {
    /// Those of a policy or a binding, as they are written. Without rules everything fits.
    pub(crate) fn of_policy(written: &Value) -> Self {
        let rules = |field: &str| -> Vec<Rule> {
            let items = written.get(field).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|rule| Rule::deserialize(rule).ok()).collect()
        };
        let mut included = rules("resourceRules");
        if included.is_empty() {
            included.push(Rule::anything());
        }
        let selector = |field: &str| written.get(field).and_then(Labels::from_json).unwrap_or_default();
        Self {
            rules: included,
            excluded: rules("excludeResourceRules"),
            equivalent: written.get("matchPolicy").and_then(Value::as_str) == Some("Equivalent"),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }
}

/// Operations on resources of some groups and versions.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
    /// Of policies alone; if there are none, all.
    resource_names: Vec<String>,
}

/// What a request is about, as rules see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleSubject<'a> {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub(crate) operation: &'a str,
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) name: &'a str,
    /// Empty for what is in none; a namespace is in itself.
    pub(crate) namespace: &'a str,
}

impl Rule {
    fn anything() -> Self {
        let any = || vec!["*".to_owned()];
        Self {
            operations: any(),
            api_groups: any(),
            api_versions: any(),
            resources: vec!["*/*".to_owned()],
            ..Self::default()
        }
    }

    /// The plural names of the resources that it is about; none if that can be any.
    pub(crate) fn plurals(&self) -> Option<Vec<&str>> {
        let plural = |written: &'_ String| -> Option<usize> {
            let name = written.split('/').next().unwrap_or_default();
            (name != "*").then_some(name.len())
        };
        self.resources.iter().map(|written| Some(&written[..plural(written)?])).collect()
    }

    pub(crate) fn matches(&self, on: &RuleSubject<'_>) -> bool {
        let one_of = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
        let of_resource = |written: &String| {
            let (name, part) = written.split_once('/').unwrap_or((written, ""));
            (name == "*" || name == on.resource) && (part == "*" || part == on.subresource)
        };
        self.in_scope(on)
            && one_of(&self.operations, on.operation)
            && one_of(&self.api_groups, on.group)
            && one_of(&self.api_versions, on.version)
            && self.resources.iter().any(of_resource)
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == on.name))
    }

    fn in_scope(&self, on: &RuleSubject<'_>) -> bool {
        let is_namespace = (on.group, on.resource) == ("", "namespaces");
        let namespaced = !is_namespace && !on.namespace.is_empty();
        match self.scope.as_str() {
            "Namespaced" => namespaced,
            "Cluster" => !namespaced,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn matches(change: serde_json::Value, on: RuleSubject<'_>) -> bool {
        let mut rule = json!({"operations": ["CREATE", "UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
            "resources": ["deployments"], "scope": "*"});
        for (name, value) in change.as_object().unwrap() {
            rule[name] = value.clone();
        }
        serde_json::from_value::<Rule>(rule).unwrap().matches(&on)
    }

    const ON: RuleSubject<'static> = RuleSubject {
        operation: "CREATE",
        group: "apps",
        version: "v1",
        resource: "deployments",
        subresource: "",
        name: "a",
        namespace: "n",
    };

    #[test]
    fn everything_that_a_rule_names_must_fit() {
        assert!(matches(json!({}), ON));
        assert!(!matches(json!({"operations": ["DELETE"]}), ON));
        assert!(matches(json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"]}), ON));
        assert!(!matches(json!({"apiGroups": [""]}), ON));
        assert!(!matches(json!({"apiVersions": ["v2"]}), ON));
    }

    #[test]
    fn a_policy_may_name_objects() {
        assert!(matches(json!({"resourceNames": ["a", "b"]}), ON));
        assert!(!matches(json!({"resourceNames": ["b"]}), ON));
        let rule = |resources: serde_json::Value| -> Rule {
            serde_json::from_value(json!({"resources": resources})).unwrap()
        };
        assert_eq!(rule(json!(["pods", "pods/status"])).plurals(), Some(vec!["pods", "pods"]));
        assert_eq!(rule(json!(["pods", "*/scale"])).plurals(), None);
        assert!(MatchResources::of_policy(&json!({})).rules[0].matches(&ON));
    }

    #[test]
    fn subresources_are_named_apart() {
        let status = RuleSubject { subresource: "status", ..ON };
        assert!(!matches(json!({"resources": ["deployments"]}), status));
        assert!(!matches(json!({"resources": ["*"]}), status));
        for resources in [["deployments/status"], ["deployments/*"], ["*/status"], ["*/*"]] {
            assert!(matches(json!({"resources": resources}), status), "{resources:?}");
        }
        assert!(!matches(json!({"resources": ["*/status"]}), ON));
        assert!(matches(json!({"resources": ["*/*"]}), ON));
    }

    #[test]
    fn namespaces_themselves_are_in_the_scope_of_the_cluster() {
        let any = json!({"apiGroups": ["*"], "resources": ["*"], "scope": "Cluster"});
        assert!(!matches(any.clone(), ON));
        assert!(matches(any.clone(), RuleSubject { namespace: "", ..ON }));
        let namespace = RuleSubject { group: "", resource: "namespaces", ..ON };
        assert!(matches(any, namespace));
        assert!(!matches(json!({"apiGroups": ["*"], "resources": ["*"], "scope": "Namespaced"}), namespace));
    }
}
