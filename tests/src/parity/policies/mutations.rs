//! What mutations make of an object: configurations that are applied, and JSON patches.

use super::{Kind, about, map, only, writes};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

fn applies(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patches(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// Configurations laid over ConfigMaps.
const CONFIGURATIONS: &[(&str, &str)] = &[
    ("nothing", "Object{}"),
    ("a label", "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}"),
    ("a label of what it is", "Object{metadata: Object.metadata{labels: {'added': request.operation}}}"),
    ("data", "Object{data: {'more': string(size(object.metadata.name))}}"),
    ("data by a field of an object", "Object{data: Object.data{more: 'x'}}"),
    ("a condition", "has(object.data) ? Object{data: {'had': 'yes'}} : Object{}"),
    (
        "an annotation and a finalizer",
        "Object{metadata: Object.metadata{annotations: {'a': 'b'}, finalizers: ['example.com/x']}}",
    ),
    ("a type of another name", "Object{metadata: Object.other{labels: {'a': 'b'}}}"),
    ("an unknown field", "Object{spec: Object.spec{a: 1}}"),
    ("an unknown field of the metadata", "Object{metadata: Object.metadata{unknown: 'x'}}"),
    ("a value of another type", "Object{data: {'x': 1}}"),
    ("an optional field", "Object{?data: optional.of({'x': 'optional'})}"),
    ("no optional field", "Object{?data: object.?nothing}"),
    ("what fails", "Object{data: {'x': object.missing}}"),
    ("a number", "Object{immutable: true}"),
    ("another name", "Object{metadata: Object.metadata{name: 'other'}}"),
    ("another kind", "Object{kind: 'Secret', apiVersion: 'v2'}"),
    ("what was", "oldObject == null ? Object{} : Object{data: {'was': 'there'}}"),
    ("the namespace", "Object{data: {'phase': namespaceObject.status.phase}}"),
    ("the authorizer", "Object{data: {'may': string(authorizer.requestResource.check('delete').allowed())}}"),
    ("too much", "[1,2,3].all(i, authorizer.path('/a').check('get').allowed()) ? Object{} : Object{}"),
];

/// Patches of ConfigMaps.
const PATCHES: &[(&str, &str)] = &[
    ("nothing", "[]"),
    (
        "a label",
        "has(object.metadata.labels) ? [JSONPatch{op: 'add', path: '/metadata/labels/added', value: 'yes'}] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {'added': 'new'}}]",
    ),
    (
        "an escaped key",
        "[JSONPatch{op: 'add', path: '/data', value: {}}, JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a~b/c'), value: 'x'}]",
    ),
    (
        "a test that fails",
        "[JSONPatch{op: 'test', path: '/data/x', value: 'other'}, JSONPatch{op: 'remove', path: '/data'}]",
    ),
    (
        "a test that holds",
        "[JSONPatch{op: 'test', path: '/kind', value: 'ConfigMap'}, JSONPatch{op: 'add', path: '/immutable', value: false}]",
    ),
    ("what is removed and not there", "[JSONPatch{op: 'remove', path: '/data/missing'}]"),
    ("what is replaced and not there", "[JSONPatch{op: 'replace', path: '/data/missing', value: 'x'}]"),
    ("a move", "has(object.data) ? [JSONPatch{op: 'move', from: '/data/x', path: '/data/y'}] : []"),
    ("a copy", "has(object.data) ? [JSONPatch{op: 'copy', from: '/data/x', path: '/data/y'}] : []"),
    ("an unknown operation", "[JSONPatch{op: 'improve', path: '/data'}]"),
    ("no operation", "[JSONPatch{path: '/data'}]"),
    ("an unknown field", "[JSONPatch{op: 'add', path: '/unknown', value: 1}]"),
    ("a value of another type", "[JSONPatch{op: 'add', path: '/data', value: 'text'}]"),
    ("an object", "[JSONPatch{op: 'add', path: '/metadata/labels', value: Object.metadata.labels{a: 'b'}}]"),
    (
        "an object of another name",
        "[JSONPatch{op: 'add', path: '/metadata', value: Object.metadata{labels: Object.labels{a: 'b'}}}]",
    ),
    ("what fails", "[JSONPatch{op: 'add', path: '/data', value: object.missing}]"),
    (
        "a list in a macro",
        "['a', 'b'].map(k, JSONPatch{op: 'add', path: '/metadata/annotations', value: {k: 'x'}})",
    ),
    ("a whole", "[JSONPatch{op: 'replace', path: '', value: {}}]"),
];

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "one", "image": "i"}], "automountServiceAccountToken": false}})
}

/// Mutations of Pods: what has keys is merged, and what is added gets its defaults.
const PODS: &[(&str, bool, &str)] = &[
    (
        "a container is added",
        true,
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'two', image: 'j'}]}}",
    ),
    (
        "a container is changed",
        true,
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'one', env: [Object.spec.containers.env{name: 'A', value: 'B'}]}]}}",
    ),
    (
        "an initial container is added",
        true,
        "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'mesh', image: 'm', args: ['proxy'], restartPolicy: 'Always'}]}}",
    ),
    (
        "a list that is replaced as a whole",
        true,
        "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a', operator: 'Exists'}]}}",
    ),
    (
        "arguments",
        true,
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'one', args: ['x']}]}}",
    ),
    ("a selector of nodes", true, "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}"),
    (
        "a container without a name",
        true,
        "Object{spec: Object.spec{containers: [Object.spec.containers{image: 'j'}]}}",
    ),
    ("a number", true, "Object{spec: Object.spec{priority: 0, terminationGracePeriodSeconds: 5}}"),
    (
        "a volume",
        true,
        "Object{spec: Object.spec{volumes: [Object.spec.volumes{name: 'v', emptyDir: Object.spec.volumes.emptyDir{}}]}}",
    ),
    (
        "a container is added by a patch",
        false,
        "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'two', image: 'j'}}]",
    ),
    (
        "a volume is added by a patch",
        false,
        "[JSONPatch{op: 'add', path: '/spec/volumes', value: [{'name': 'v', 'emptyDir': {}}]}]",
    ),
    ("an unknown field by a patch", false, "[JSONPatch{op: 'add', path: '/spec/nothing', value: 1}]"),
    (
        "a tolerance by a patch",
        false,
        "[JSONPatch{op: 'add', path: '/spec/tolerations/-', value: {'key': 'a', 'operator': 'Exists'}}]",
    ),
];

fn pods(script: &Script) -> Value {
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": script.namespace()}});
    json!({"resourceRules": [about("", "v1", "pods")], "namespaceSelector": selector})
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, expression) in CONFIGURATIONS {
        all.push(Behaviour::new(format!("a policy applies {name}"), move |mut script| async move {
            script.map("before", json!({"app": "web"})).await?;
            only(&mut script, Kind::Mutating, json!({"mutations": [applies(expression)]}), json!({})).await?;
            writes(&mut script).await?;
            Ok(script)
        }));
    }
    for (name, expression) in PATCHES {
        all.push(Behaviour::new(format!("a policy patches {name}"), move |mut script| async move {
            script.map("before", json!({"app": "web"})).await?;
            only(&mut script, Kind::Mutating, json!({"mutations": [patches(expression)]}), json!({})).await?;
            writes(&mut script).await?;
            Ok(script)
        }));
    }
    for (name, applied, expression) in PODS {
        all.push(Behaviour::new(format!("a policy mutates pods: {name}"), move |mut script| async move {
            let mutation = if *applied { applies(expression) } else { patches(expression) };
            let spec = json!({"matchConstraints": pods(&script), "mutations": [mutation]});
            only(&mut script, Kind::Mutating, spec, json!({})).await?;
            let path = script.path("/api/v1", "pods");
            script.post(&path, pod("a")).await?;
            Ok(script)
        }));
    }
    for (name, spec) in [
        (
            "that fail and are ignored",
            json!({"failurePolicy": "Ignore", "mutations": [applies("Object{data: {'x': object.missing}}"), applies("Object{data: {'y': 'z'}}")]}),
        ),
        (
            "of which one fails",
            json!({"mutations": [applies("Object{data: {'y': 'z'}}"), applies("Object{data: {'x': object.missing}}")]}),
        ),
        (
            "that fail twice",
            json!({"mutations": [applies("Object{data: {'x': object.missing}}"), patches("[JSONPatch{op: 'remove', path: '/missing'}]")]}),
        ),
        (
            "under a condition that holds",
            json!({"matchConditions": [{"name": "a", "expression": "request.name == 'a'"}], "mutations": [applies("Object{data: {'y': 'z'}}")]}),
        ),
        (
            "under a condition that fails",
            json!({"matchConditions": [{"name": "a", "expression": "object.missing == 1"}], "mutations": [applies("Object{data: {'y': 'z'}}")]}),
        ),
        (
            "under a condition that fails and is ignored",
            json!({"failurePolicy": "Ignore", "matchConditions": [{"name": "a", "expression": "object.missing == 1"}], "mutations": [applies("Object{data: {'y': 'z'}}")]}),
        ),
        (
            "with variables",
            json!({"variables": [{"name": "n", "expression": "request.name"}, {"name": "o", "expression": "variables.n + '!'"}], "mutations": [applies("Object{data: {'y': variables.o}}")]}),
        ),
        (
            "with a variable that fails",
            json!({"variables": [{"name": "n", "expression": "object.missing"}], "mutations": [applies("Object{data: {'y': variables.n}}")]}),
        ),
        (
            "with a kind of parameters that is not there",
            json!({"paramKind": {"apiVersion": "example.com/v1", "kind": "Nothing"}, "mutations": [applies("Object{}")]}),
        ),
    ] {
        all.push(Behaviour::new(format!("a policy with mutations {name}"), move |mut script| {
            let spec = spec.clone();
            async move {
                script.map("before", json!({"app": "web"})).await?;
                only(&mut script, Kind::Mutating, spec, json!({})).await?;
                writes(&mut script).await?;
                Ok(script)
            }
        }));
    }
    for (name, action) in [("denied", "Deny"), ("allowed", "Allow")] {
        all.push(Behaviour::new(format!("a policy that mutates has no parameter and is {name}"), move |mut script| async move {
            let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "mutations": [applies("Object{data: {'y': params.data.x}}")]});
            let how = json!({"paramRef": {"name": "none", "parameterNotFoundAction": action}});
            only(&mut script, Kind::Mutating, spec, how).await?;
            let maps = script.maps();
            script.post(&maps, map("a", json!({}))).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("a policy that mutates knows its parameter", |mut script| async move {
        super::follow_maps(&mut script).await?;
        let maps = script.maps();
        super::store(&mut script, &maps, map("limit", json!({"data": {"x": "of a parameter"}}))).await?;
        let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "mutations": [applies("Object{data: {'y': params.data.x}}")]});
        let how = json!({"paramRef": {"name": "limit", "parameterNotFoundAction": "Deny"}});
        only(&mut script, Kind::Mutating, spec, how).await?;
        script.post(&maps, map("a", json!({}))).await?;
        script.get(format!("{maps}/a")).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy that mutates counts in a dry run", |mut script| async move {
        only(
            &mut script,
            Kind::Mutating,
            json!({"mutations": [applies("Object{data: {'dry': string(request.dryRun)}}")]}),
            json!({}),
        )
        .await?;
        let maps = script.maps();
        let post = Request::new("POST", &maps).with("dryRun", "All");
        script.send(post.body(media::JSON, map("a", json!({})))).await?;
        script.get(format!("{maps}/a")).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy mutates what is applied", |mut script| async move {
        only(
            &mut script,
            Kind::Mutating,
            json!({"mutations": [applies("Object{data: {'added': 'yes'}}")]}),
            json!({}),
        )
        .await?;
        let item = format!("{}/a", script.maps());
        script.apply(&item, "me", map("a", json!({"data": {"x": "1"}}))).await?;
        script.apply(&item, "me", map("a", json!({"data": {"x": "2"}}))).await?;
        script.edit(&item, json!([{"op": "remove", "path": "/data/added"}])).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy mutates a scale", |mut script| async move {
        let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": script.namespace()}});
        let constraints = json!({"resourceRules": [about("apps", "v1", "deployments/scale")], "namespaceSelector": selector});
        let spec = json!({"matchConstraints": constraints, "mutations": [patches("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 2}]")]});
        only(&mut script, Kind::Mutating, spec, json!({})).await?;
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}});
        let path = script.path("/apis/apps/v1", "deployments");
        script.post(&path, deployment).await?;
        script.merge(&format!("{path}/a/scale"), json!({"spec": {"replicas": 6}})).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy mutates a deployment", |mut script| async move {
        let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": script.namespace()}});
        let constraints = json!({"resourceRules": [about("apps", "v1", "deployments")], "namespaceSelector": selector});
        let expression = "Object{spec: Object.spec{replicas: object.spec.replicas + 1, template: Object.spec.template{spec: Object.spec.template.spec{containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, imagePullPolicy: 'Never'})}}}}";
        let spec = json!({"matchConstraints": constraints, "mutations": [applies(expression)]});
        only(&mut script, Kind::Mutating, spec, json!({})).await?;
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}});
        let path = script.path("/apis/apps/v1", "deployments");
        script.post(&path, deployment).await?;
        script.merge(&format!("{path}/a"), json!({"spec": {"replicas": 4}})).await?;
        Ok(script)
    }));
    all
}
