//! The least rules that allow what was done: a pure function of what an audit log says.

use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One thing that somebody did.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Done {
    pub(super) verbs: BTreeSet<String>,
    pub(super) on: On,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum On {
    /// With its subresource, as rules have it; the namespace is empty for the whole cluster, the name if none was given.
    Resource {
        group: String,
        resource: String,
        namespace: String,
        name: String,
    },
    Path(String),
}

/// A rule of a role.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    #[serde(skip_serializing_if = "Option::is_none")]
    api_groups: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    verbs: Vec<String>,
}

impl Done {
    /// Who did what, by an event; none for one that tells nothing of a request that is over, or that was refused.
    pub(super) fn of(event: &Value, with_refused: bool) -> Option<(String, Self)> {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if text("/kind") != "Event" || text("/stage") != "ResponseComplete" {
            return None;
        }
        let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
        let forbidden = text("/annotations/authorization.k8s.io~1decision") == "forbid" || code == 403;
        if code == 401 || (forbidden && !with_refused) {
            return None;
        }
        let user = match text("/impersonatedUser/username") {
            "" => text("/user/username"),
            other => other,
        };
        let verb = text("/verb");
        if user.is_empty() || verb.is_empty() {
            return None;
        }
        let mut verbs = BTreeSet::from([verb.to_owned()]);
        // An update that creates is asked about twice.
        if matches!(verb, "update" | "patch") && code == 201 {
            verbs.insert("create".to_owned());
        }
        let on = match event.get("objectRef") {
            Some(_) => {
                let resource = match text("/objectRef/subresource") {
                    "" => text("/objectRef/resource").to_owned(),
                    subresource => format!("{}/{subresource}", text("/objectRef/resource")),
                };
                // Names are no part of the rules for what makes, or looks for, objects.
                let unnamed = matches!(verb, "create" | "list" | "watch" | "deletecollection") || code == 201;
                let name = if unnamed { "" } else { text("/objectRef/name") };
                // A namespace is in itself, and yet of the whole cluster.
                let namespace = match text("/objectRef/resource") {
                    "namespaces" => "",
                    _ => text("/objectRef/namespace"),
                };
                On::Resource {
                    group: text("/objectRef/apiGroup").to_owned(),
                    resource,
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                }
            }
            None => On::Path(text("/requestURI").split('?').next().unwrap_or_default().to_owned()),
        };
        Some((user.to_owned(), Self { verbs, on }))
    }
}

/// What rules are merged by: group, resource and name; no name is any.
type Target = (String, String, Option<String>);

/// The least rules, for each namespace, and for the whole cluster. What is allowed everywhere is not allowed again in one place.
pub(super) fn of(done: &BTreeSet<Done>, resource_names: bool) -> BTreeMap<Option<String>, Vec<Rule>> {
    let mut places: BTreeMap<Option<String>, BTreeMap<Target, BTreeSet<String>>> = BTreeMap::new();
    let mut paths: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Done { verbs, on } in done {
        match on {
            On::Path(path) => paths.entry(path.clone()).or_default().extend(verbs.iter().cloned()),
            On::Resource { group, resource, namespace, name } => {
                let place = Some(namespace.clone()).filter(|namespace| !namespace.is_empty());
                let name = Some(name.clone()).filter(|name| resource_names && !name.is_empty());
                let target = (group.clone(), resource.clone(), name);
                places.entry(place).or_default().entry(target).or_default().extend(verbs.iter().cloned());
            }
        }
    }
    let everywhere = places.get(&None).cloned().unwrap_or_default();
    let mut rules: BTreeMap<Option<String>, Vec<Rule>> = BTreeMap::new();
    for (place, mut targets) in places {
        let within = targets.clone();
        for ((group, resource, name), verbs) in &mut targets {
            let any = (group.clone(), resource.clone(), None);
            let covered = |wider: &BTreeMap<Target, BTreeSet<String>>, same: &Target| {
                wider.get(same).cloned().unwrap_or_default()
            };
            let mut already = BTreeSet::new();
            if name.is_some() {
                already.extend(covered(&within, &any));
            }
            if place.is_some() {
                already.extend(covered(&everywhere, &any));
                already.extend(covered(&everywhere, &(group.clone(), resource.clone(), name.clone())));
            }
            verbs.retain(|verb| !already.contains(verb));
        }
        targets.retain(|_, verbs| !verbs.is_empty());
        if !targets.is_empty() {
            rules.insert(place, merged(targets));
        }
    }
    let mut by_verbs: BTreeMap<BTreeSet<String>, Vec<String>> = BTreeMap::new();
    for (path, verbs) in paths {
        by_verbs.entry(verbs).or_default().push(path);
    }
    for (verbs, paths) in by_verbs {
        let rule = Rule {
            api_groups: None,
            resources: Vec::new(),
            resource_names: Vec::new(),
            paths,
            verbs: verbs.into_iter().collect(),
        };
        rules.entry(None).or_default().push(rule);
    }
    rules
}

/// One rule for the names of a resource that have the same verbs, and for the resources of a group that have the same rule.
fn merged(targets: BTreeMap<Target, BTreeSet<String>>) -> Vec<Rule> {
    let mut names: BTreeMap<(String, String, BTreeSet<String>), BTreeSet<String>> = BTreeMap::new();
    for ((group, resource, name), verbs) in targets {
        names.entry((group, resource, verbs)).or_default().extend(name);
    }
    let mut resources: BTreeMap<(String, BTreeSet<String>, BTreeSet<String>), Vec<String>> = BTreeMap::new();
    for ((group, resource, verbs), names) in names {
        resources.entry((group, names, verbs)).or_default().push(resource);
    }
    resources
        .into_iter()
        .map(|((group, names, verbs), resources)| Rule {
            api_groups: Some(vec![group]),
            resources,
            resource_names: names.into_iter().collect(),
            paths: Vec::new(),
            verbs: verbs.into_iter().collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(verb: &str, code: u16, object: Value) -> Value {
        json!({"kind": "Event", "stage": "ResponseComplete", "verb": verb, "user": {"username": "jane"},
            "objectRef": object, "responseStatus": {"code": code}})
    }

    fn rules(events: &[Value], resource_names: bool) -> Value {
        let done = events.iter().filter_map(|event| Done::of(event, false)).map(|(_, done)| done).collect();
        let rules = of(&done, resource_names);
        let shown = |(place, rules): (Option<String>, Vec<Rule>)| (place.unwrap_or_default(), json!(rules));
        json!(rules.into_iter().map(shown).collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn verbs_and_resources_share_rules_and_refusals_give_none() {
        let on = |resource: &str, name: &str| json!({"resource": resource, "namespace": "n", "name": name});
        let events = [
            event("get", 200, on("pods", "a")),
            event("list", 200, on("pods", "")),
            event("get", 404, on("secrets", "b")),
            event("list", 200, on("secrets", "")),
            event("delete", 403, on("secrets", "b")),
            event("patch", 201, on("configmaps", "c")),
            event("get", 200, json!({"resource": "namespaces", "namespace": "n", "name": "n"})),
        ];
        let expected = json!({
            "": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}],
            "n": [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]},
                {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]},
            ],
        });
        assert_eq!(rules(&events, false), expected);
    }

    #[test]
    fn what_is_allowed_everywhere_is_not_allowed_again_and_names_narrow() {
        let on = |namespace: &str, name: &str| json!({"apiGroup": "apps", "resource": "deployments", "namespace": namespace, "name": name});
        let events = [
            event("list", 200, on("", "")),
            event("list", 200, on("n", "")),
            event("get", 200, on("n", "a")),
            event("get", 200, on("n", "b")),
            event("update", 200, on("n", "a")),
        ];
        let expected = json!({
            "": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}],
            "n": [
                {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["a"], "verbs": ["get", "update"]},
                {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["b"], "verbs": ["get"]},
            ],
        });
        assert_eq!(rules(&events, true), expected);
    }

    #[test]
    fn impersonated_users_and_paths_and_subresources_count() {
        let mut scaled = event(
            "patch",
            200,
            json!({"resource": "x", "subresource": "scale", "namespace": "n", "name": "a"}),
        );
        scaled["impersonatedUser"] = json!({"username": "joe"});
        assert_eq!(Done::of(&scaled, false).unwrap().0, "joe");
        let mut path = event("get", 200, Value::Null);
        path.as_object_mut().unwrap().remove("objectRef");
        path["requestURI"] = json!("/metrics?x=1");
        let expected = json!({
            "": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
            "n": [{"apiGroups": [""], "resources": ["x/scale"], "verbs": ["patch"]}],
        });
        assert_eq!(rules(&[scaled, path], false), expected);
    }
}
