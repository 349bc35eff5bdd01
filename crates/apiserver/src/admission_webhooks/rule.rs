//! Which requests a webhook is asked about, as its rules say.

use serde::Deserialize;

/// Operations on resources of some groups and versions.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
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
    /// Empty for what is in none; a namespace is in itself.
    pub(crate) namespace: &'a str,
}

impl Rule {
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
