//! Custom resource definitions: validation, and changes over their lifecycle.

use super::{Behaviour, Script};
use crate::compare::exchange::media;
use crate::compare::{Answer, Request};
use serde_json::{Value, json};

/// Schemas of a definition that have something wrong, or look so.
const SCHEMAS: &[(&str, &str)] = &[
    ("the root is no object", r#"{"type":"string"}"#),
    ("the root has no type", r#"{"properties":{"spec":{"type":"object"}}}"#),
    ("a property without a type", r#"{"type":"object","properties":{"spec":{"description":"no type"}}}"#),
    ("a type that there is not", r#"{"type":"object","properties":{"spec":{"type":"thing"}}}"#),
    ("a list without items", r#"{"type":"object","properties":{"spec":{"type":"array"}}}"#),
    (
        "properties and additional properties",
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}}}"#,
    ),
    (
        "no additional properties",
        r#"{"type":"object","properties":{"spec":{"type":"object","additionalProperties":false}}}"#,
    ),
    ("a reference", r##"{"type":"object","properties":{"spec":{"$ref":"#/x"}}}"##),
    (
        "unique items",
        r#"{"type":"object","properties":{"spec":{"type":"array","uniqueItems":true,"items":{"type":"string"}}}}"#,
    ),
    (
        "a type inside anyOf",
        r#"{"type":"object","properties":{"spec":{"type":"string","anyOf":[{"type":"string"}]}}}"#,
    ),
    (
        "a property that only anyOf has",
        r#"{"type":"object","properties":{"spec":{"type":"object","anyOf":[{"properties":{"a":{"minimum":1}}}]}}}"#,
    ),
    (
        "a default inside not",
        r#"{"type":"object","properties":{"spec":{"type":"string","not":{"default":"a"}}}}"#,
    ),
    (
        "a default that does not fit",
        r#"{"type":"object","properties":{"spec":{"type":"string","default":7}}}"#,
    ),
    (
        "a default that would be pruned",
        r#"{"type":"object","properties":{"spec":{"type":"object","default":{"a":1}}}}"#,
    ),
    (
        "a default below its minimum",
        r#"{"type":"object","properties":{"spec":{"type":"integer","minimum":3,"default":1}}}"#,
    ),
    ("a null default", r#"{"type":"object","properties":{"spec":{"type":"string","default":null}}}"#),
    ("a pattern that is none", r#"{"type":"object","properties":{"spec":{"type":"string","pattern":"("}}}"#),
    (
        "a pattern with an escape of Unicode",
        r#"{"type":"object","properties":{"spec":{"type":"string","pattern":"[^\\u0000]"}}}"#,
    ),
    (
        "a pattern that refers back",
        r#"{"type":"object","properties":{"spec":{"type":"string","pattern":"(a)\\1"}}}"#,
    ),
    (
        "a pattern with a boundary in a class",
        r#"{"type":"object","properties":{"spec":{"type":"string","pattern":"[\\b]"}}}"#,
    ),
    (
        "a pattern with another escape that there is not",
        r#"{"type":"object","properties":{"spec":{"type":"string","pattern":"a\\Z"}}}"#,
    ),
    (
        "a restriction of the metadata",
        r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}"#,
    ),
    (
        "a bound on the name",
        r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":5}}}}}"#,
    ),
    (
        "a map list without keys",
        r#"{"type":"object","properties":{"spec":{"type":"array","x-kubernetes-list-type":"map","items":{"type":"object"}}}}"#,
    ),
    (
        "a map list whose key is not there",
        r#"{"type":"object","properties":{"spec":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object"}}}}"#,
    ),
    (
        "a map list whose key is neither required nor has a default",
        r#"{"type":"object","properties":{"spec":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"}}}}}}"#,
    ),
    (
        "a set of objects",
        r#"{"type":"object","properties":{"spec":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}}}"#,
    ),
    (
        "a list type that there is not",
        r#"{"type":"object","properties":{"spec":{"type":"array","x-kubernetes-list-type":"bag","items":{"type":"string"}}}}"#,
    ),
    (
        "a list type of what is no list",
        r#"{"type":"object","properties":{"spec":{"type":"string","x-kubernetes-list-type":"set"}}}"#,
    ),
    (
        "a map type that there is not",
        r#"{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-map-type":"bag"}}}"#,
    ),
    (
        "int-or-string with a type",
        r#"{"type":"object","properties":{"spec":{"type":"string","x-kubernetes-int-or-string":true}}}"#,
    ),
    (
        "unknown fields kept, said with false",
        r#"{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":false}}}"#,
    ),
    (
        "an embedded resource without properties",
        r#"{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-embedded-resource":true}}}"#,
    ),
    (
        "an embedded resource that is a string",
        r#"{"type":"object","properties":{"spec":{"type":"string","x-kubernetes-embedded-resource":true}}}"#,
    ),
    ("an enum without values", r#"{"type":"object","properties":{"spec":{"type":"string","enum":[]}}}"#),
    ("everything is kept at the root", r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#),
    ("an unknown keyword", r#"{"type":"object","properties":{"spec":{"type":"string","colour":"red"}}}"#),
];

/// Changes of a good definition before it is created, at a JSON pointer.
const CHANGES: &[(&str, &str, &str)] = &[
    ("a scope that there is not", "/spec/scope", "\"Galactic\""),
    ("no scope", "/spec/scope", "null"),
    ("no group", "/spec/group", "\"\""),
    ("a group without a dot", "/spec/group", "\"example\""),
    ("another plural than the name", "/spec/names/plural", "\"gadgets\""),
    ("a plural with a capital", "/spec/names/plural", "\"Widgets\""),
    ("a kind with a hyphen", "/spec/names/kind", "\"My-Widget\""),
    ("no kind", "/spec/names/kind", "\"\""),
    ("a list kind equal to the kind", "/spec/names/listKind", "\"Widget\""),
    (
        "short names and categories",
        "/spec/names",
        r#"{"plural":"widgets","kind":"Widget","shortNames":["wg"],"categories":["all"],"singular":"widget"}"#,
    ),
    ("a short name with a capital", "/spec/names/shortNames", r#"["WG"]"#),
    ("no versions", "/spec/versions", "[]"),
    ("no version that is stored", "/spec/versions/0/storage", "false"),
    ("no version that is served", "/spec/versions/0/served", "false"),
    ("a version's name with a dot", "/spec/versions/0/name", "\"v1.0\""),
    ("no schema", "/spec/versions/0/schema", "null"),
    (
        "two versions that are stored",
        "/spec/versions",
        r#"[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]"#,
    ),
    (
        "the same version twice",
        "/spec/versions",
        r#"[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]"#,
    ),
    (
        "a deprecated version with a warning",
        "/spec/versions",
        r#"[{"name":"v1","served":true,"storage":true,"deprecated":true,"deprecationWarning":"use another","schema":{"openAPIV3Schema":{"type":"object"}}}]"#,
    ),
    ("a warning of a version that is not deprecated", "/spec/versions/0/deprecationWarning", "\"why?\""),
    (
        "printer columns",
        "/spec/versions/0/additionalPrinterColumns",
        r#"[{"name":"Size","type":"integer","jsonPath":".spec.size","priority":1}]"#,
    ),
    (
        "a printer column of a type that there is not",
        "/spec/versions/0/additionalPrinterColumns",
        r#"[{"name":"Size","type":"thing","jsonPath":".spec.size"}]"#,
    ),
    (
        "a printer column without a path",
        "/spec/versions/0/additionalPrinterColumns",
        r#"[{"name":"Size","type":"integer"}]"#,
    ),
    ("a scale without paths", "/spec/versions/0/subresources", r#"{"scale":{}}"#),
    (
        "a scale outside of spec",
        "/spec/versions/0/subresources",
        r#"{"scale":{"specReplicasPath":".replicas","statusReplicasPath":".status.replicas"}}"#,
    ),
    ("a conversion that there is not", "/spec/conversion", r#"{"strategy":"Magic"}"#),
    ("a webhook without a place", "/spec/conversion", r#"{"strategy":"Webhook"}"#),
    (
        "a webhook's place with the strategy None",
        "/spec/conversion",
        r#"{"strategy":"None","webhook":{"conversionReviewVersions":["v1"]}}"#,
    ),
    (
        "a webhook by its address",
        "/spec/conversion",
        r#"{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://example.com/convert"},"conversionReviewVersions":["v1"]}}"#,
    ),
    (
        "a webhook by its service",
        "/spec/conversion",
        r#"{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"a","namespace":"b","path":"/convert"}},"conversionReviewVersions":["v1beta1","v2"]}}"#,
    ),
    (
        "a webhook with a bad address",
        "/spec/conversion",
        r#"{"strategy":"Webhook","webhook":{"clientConfig":{"url":"http://me@/x?y=z#f"},"conversionReviewVersions":["v2","v2","V"]}}"#,
    ),
    (
        "a webhook with a bad service",
        "/spec/conversion",
        r#"{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"","namespace":"","path":"a//B","port":70000}}}}"#,
    ),
    (
        "a webhook with two places",
        "/spec/conversion",
        r#"{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a","service":{"name":"a","namespace":"b"}},"conversionReviewVersions":["v1"]}}"#,
    ),
    (
        "selectable fields of all kinds",
        "/spec/versions/0/selectableFields",
        r#"[{"jsonPath":".spec"},{"jsonPath":""},{"jsonPath":"spec"},{"jsonPath":".spec['a']"},{"jsonPath":".spec."}]"#,
    ),
    ("unknown fields kept in the old way", "/spec/preserveUnknownFields", "true"),
    (
        "a selectable field that the schema does not have",
        "/spec/versions/0/selectableFields",
        r#"[{"jsonPath":".spec.none"}]"#,
    ),
    (
        "a selectable field in the metadata",
        "/spec/versions/0/selectableFields",
        r#"[{"jsonPath":".metadata.name"}]"#,
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, schema) in SCHEMAS {
        all.push(Behaviour::new(format!("definitions: {name}"), move |mut script: Script| async move {
            let definition = script.definition(serde_json::from_str(schema)?);
            script.try_define(definition).await?;
            Ok(script)
        }));
    }
    for (name, pointer, value) in CHANGES {
        all.push(Behaviour::new(format!("definitions: {name}"), move |mut script: Script| async move {
            let mut definition = script.with_spec(json!({"type": "object"}));
            let (parent, field) = pointer.rsplit_once('/').expect("pointers have a slash");
            if let Some(parent) = definition.pointer_mut(parent) {
                parent[field] = serde_json::from_str(value)?;
            }
            script.try_define(definition).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("definitions: accepted, established, served", established));
    all.push(Behaviour::new("definitions: the group and its version in discovery", discovered));
    all.push(Behaviour::new("definitions: two versions show the same object", two_versions));
    all.push(Behaviour::new("definitions: a version that is not served", unserved));
    all.push(Behaviour::new("definitions: deleted, its objects are gone", deleted));
    all.push(Behaviour::new("definitions: deleted, an object with a finalizer holds it", held));
    all.push(Behaviour::new("definitions: another version is stored", restored));
    all.push(Behaviour::new("definitions: the scope cannot change", scope_changed));
    all.push(Behaviour::new("definitions: a changed schema is used for what comes next", schema_changed));
    all.push(Behaviour::new("definitions: an invalid field that does not change is let through", ratchet));
    all.push(Behaviour::new("definitions: the kind is taken", taken));
    all.push(Behaviour::new("custom resources: status and spec are written apart", status));
    all.push(Behaviour::new("custom resources: the generation counts changes of the spec", generation));
    all.push(Behaviour::new("custom resources: without a status subresource", no_status));
    all.push(Behaviour::new("custom resources: selected by a field", selectable));
    all.push(Behaviour::new("custom resources: scaled", scaled));
    all.push(Behaviour::new("custom resources: scaled by other paths", scaled_elsewhere));
    all.push(Behaviour::new("custom resources: updated without a version", unversioned));
    all.push(Behaviour::new("custom resources: unknown fields under strict validation", strict));
    all
}

async fn established(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(script.with_spec(json!({"type": "object"}))).await?;
    script.get(&defined.path).await?;
    script.get(format!("{}/status", defined.path)).await?;
    Ok(script)
}

async fn discovered(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(script.with_spec(json!({"type": "object"}))).await?;
    let (group, version) = (format!("/apis/{}", defined.group), format!("/apis/{}/v1", defined.group));
    script.until(&group, 200).await?;
    script.until(&version, 200).await?;
    script.get(group).await?;
    script.get(version).await?;
    Ok(script)
}

fn versions(script: &Script, second_served: bool) -> Value {
    let mut definition = script.with_spec(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    second["served"] = json!(second_served);
    if let Some(versions) = definition["spec"]["versions"].as_array_mut() {
        versions.push(second);
    }
    definition
}

async fn two_versions(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(versions(&script, true)).await?;
    script.post(&defined.objects, defined.object("w", json!({"spec": {"a": "1"}}))).await?;
    let other = defined.objects.replace("/v1/", "/v2/");
    script.until(&other, 200).await?;
    script.get(format!("{other}/w")).await?;
    script.merge(&format!("{other}/w"), json!({"spec": {"a": "2"}})).await?;
    script.get(&defined.objects).await?;
    Ok(script)
}

async fn unserved(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(versions(&script, false)).await?;
    let other = defined.objects.replace("/v1/", "/v2/");
    script.get(&other).await?;
    Ok(script)
}

async fn deleted(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(script.with_spec(json!({"type": "object"}))).await?;
    script.post(&defined.objects, defined.object("w", json!({}))).await?;
    script.delete(&defined.path, json!(null)).await?;
    script.until(&defined.path, 404).await?;
    script.until(&defined.objects, 404).await?;
    script.get(&defined.objects).await?;
    Ok(script)
}

async fn held(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(script.with_spec(json!({"type": "object"}))).await?;
    let mut object = defined.object("w", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/held"]);
    script.post(&defined.objects, object).await?;
    script.delete(&defined.path, json!(null)).await?;
    let going = |answer: &Answer| !answer.body["metadata"]["deletionTimestamp"].is_null();
    script.until_it(&defined.item("w"), going).await?;
    script.until(&defined.path, 200).await?;
    script.merge(&defined.item("w"), json!({"metadata": {"finalizers": null}})).await?;
    script.until(&defined.path, 404).await?;
    script.get(&defined.path).await?;
    Ok(script)
}

/// The version in which objects are stored changes while there are some.
async fn restored(mut script: Script) -> anyhow::Result<Script> {
    let mut definition = script.with_spec(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["b"] =
        json!({"type": "string", "default": "new"});
    definition["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .for_each(|versions| versions.push(second.clone()));
    let defined = script.define(definition).await?;
    let in_second = defined.item("w").replace("/v1/", "/v2/");
    script.post(&defined.objects, defined.object("w", json!({"spec": {"a": "x"}}))).await?;
    script.get(&in_second).await?;
    let swap = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    script.quiet(Request::new("PATCH", &defined.path).body(media::JSON_PATCH, swap)).await?;
    let answer = script.quiet(Request::new("GET", &defined.path)).await?;
    anyhow::ensure!(answer.body["status"]["storedVersions"] == json!(["v1", "v2"]), "{answer}");
    for path in [defined.item("w"), in_second.clone()] {
        script.get(path).await?;
    }
    script.merge(&in_second, json!({"spec": {"a": "y"}})).await?;
    for path in [defined.item("w"), in_second] {
        script.get(path).await?;
    }
    let forget = json!({"status": {"storedVersions": ["v2"]}});
    let answer = script
        .quiet(Request::new("PATCH", format!("{}/status", defined.path)).body(media::MERGE_PATCH, forget))
        .await?;
    anyhow::ensure!(answer.is_success(), "{answer}");
    Ok(script)
}

async fn scope_changed(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(script.with_spec(json!({"type": "object"}))).await?;
    script.merge(&defined.path, json!({"spec": {"scope": "Cluster"}})).await?;
    script.merge(&defined.path, json!({"spec": {"group": "other.example.com"}})).await?;
    Ok(script)
}

async fn schema_changed(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(script.with_spec(json!({"type": "string"}))).await?;
    script.post(&defined.objects, defined.object("w", json!({"spec": "long enough"}))).await?;
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/maxLength";
    script.edit(&defined.path, json!([{"op": "add", "path": pointer, "value": 3}])).await?;
    let rehearsal = Request::new("POST", &defined.objects)
        .with("dryRun", "All")
        .body("application/json", defined.object("x", json!({"spec": "longer"})));
    // The new schema is in use a moment after it was written.
    for _ in 0..200 {
        if !script.quiet(rehearsal.clone()).await?.is_success() {
            break;
        }
        windlass_clock::Clock::real().sleep(std::time::Duration::from_millis(20)).await;
    }
    script.post(&defined.objects, defined.object("x", json!({"spec": "longer"}))).await?;
    script.get(defined.item("w")).await?;
    Ok(script)
}

async fn ratchet(mut script: Script) -> anyhow::Result<Script> {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let defined = script.define(script.with_spec(spec)).await?;
    script.post(&defined.objects, defined.object("w", json!({"spec": {"a": "too long"}}))).await?;
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/maxLength";
    script.edit(&defined.path, json!([{"op": "add", "path": pointer, "value": 3}])).await?;
    let rehearsal = Request::new("POST", &defined.objects)
        .with("dryRun", "All")
        .body("application/json", defined.object("x", json!({"spec": {"a": "longer"}})));
    for _ in 0..200 {
        if !script.quiet(rehearsal.clone()).await?.is_success() {
            break;
        }
        windlass_clock::Clock::real().sleep(std::time::Duration::from_millis(20)).await;
    }
    script.merge(&defined.item("w"), json!({"spec": {"b": "x"}})).await?;
    script.merge(&defined.item("w"), json!({"spec": {"a": "still too long"}})).await?;
    Ok(script)
}

async fn taken(mut script: Script) -> anyhow::Result<Script> {
    script.define(script.with_spec(json!({"type": "object"}))).await?;
    let mut second = script.with_spec(json!({"type": "object"}));
    let name = format!("gadgets.{}", script.group());
    second["metadata"]["name"] = json!(name);
    second["spec"]["names"]["plural"] = json!("gadgets");
    script.try_define(second).await?;
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    script
        .until_it(&path, |answer| {
            answer.body["status"]["conditions"].as_array().is_some_and(|all| all.len() > 1)
        })
        .await?;
    script.get(path).await?;
    Ok(script)
}

async fn status(mut script: Script) -> anyhow::Result<Script> {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let defined = script.define(script.with_spec(spec)).await?;
    let item = defined.item("w");
    script
        .post(&defined.objects, defined.object("w", json!({"spec": {"a": "1"}, "status": {"s": "1"}})))
        .await?;
    script.merge(&format!("{item}/status"), json!({"spec": {"a": "2"}, "status": {"s": "2"}})).await?;
    script.merge(&item, json!({"spec": {"a": "3"}, "status": {"s": "3"}})).await?;
    let labels = json!({"metadata": {"labels": {"by": "status"}, "annotations": {"by": "status"}}});
    script.merge(&format!("{item}/status"), labels).await?;
    script.get(format!("{item}/status")).await?;
    Ok(script)
}

async fn generation(mut script: Script) -> anyhow::Result<Script> {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let defined = script.define(script.with_spec(spec)).await?;
    let item = defined.item("w");
    script.post(&defined.objects, defined.object("w", json!({"spec": {"a": "1"}}))).await?;
    script.merge(&item, json!({"metadata": {"labels": {"a": "1"}}})).await?;
    script.merge(&item, json!({"spec": {"a": "2"}})).await?;
    script.merge(&format!("{item}/status"), json!({"status": {"s": "2"}})).await?;
    Ok(script)
}

async fn no_status(mut script: Script) -> anyhow::Result<Script> {
    let mut definition = script.with_spec(json!({"type": "object"}));
    definition["spec"]["versions"][0]["subresources"] = json!(null);
    let defined = script.define(definition).await?;
    script.post(&defined.objects, defined.object("w", json!({"status": {"s": "1"}}))).await?;
    script.merge(&defined.item("w"), json!({"status": {"s": "2"}})).await?;
    script.merge(&format!("{}/status", defined.item("w")), json!({"status": {"s": "3"}})).await?;
    Ok(script)
}

async fn selectable(mut script: Script) -> anyhow::Result<Script> {
    let spec = json!({"type": "object", "properties": {"colour": {"type": "string"}}});
    let mut definition = script.with_spec(spec);
    definition["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.colour"}]);
    let defined = script.define(definition).await?;
    for (name, colour) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        script.post(&defined.objects, defined.object(name, json!({"spec": {"colour": colour}}))).await?;
    }
    for selector in ["spec.colour=red", "spec.colour!=red", "spec.size=1"] {
        script.send(Request::new("GET", &defined.objects).with("fieldSelector", selector)).await?;
    }
    Ok(script)
}

async fn scaled(mut script: Script) -> anyhow::Result<Script> {
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let mut definition = script.with_spec(spec);
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    definition["spec"]["versions"][0]["subresources"]["scale"] = scale;
    let defined = script.define(definition).await?;
    let path = format!("{}/scale", defined.item("w"));
    script.post(&defined.objects, defined.object("w", json!({"spec": {"replicas": 2}}))).await?;
    script.get(&path).await?;
    script.merge(&path, json!({"spec": {"replicas": 5}})).await?;
    script.merge(&path, json!({"spec": {"replicas": -1}})).await?;
    script.get(defined.item("w")).await?;
    Ok(script)
}

/// Paths of the author's choice, and all that may be wrong with what is there.
async fn scaled_elsewhere(mut script: Script) -> anyhow::Result<Script> {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut definition =
        script.definition(json!({"type": "object", "properties": {"spec": any, "status": any}}));
    definition["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.size.wanted", "statusReplicasPath": ".status.there", "labelSelectorPath": ".status.selector"});
    let defined = script.define(definition).await?;
    let path = format!("{}/scale", defined.item("w"));
    script.get(&path).await?;
    script.post(&defined.objects, defined.object("w", json!({"spec": {}}))).await?;
    script.get(&path).await?;
    script.merge(&path, json!({"metadata": {"labels": {"a": "b"}}})).await?;
    script.merge(&path, json!({"spec": {"replicas": 3}})).await?;
    let status = json!({"status": {"there": 2, "selector": "app=web"}});
    script.merge(&format!("{}/status", defined.item("w")), status).await?;
    script.get(&path).await?;
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale"});
    for (name, spec) in [("w", json!({"replicas": 7})), ("w", json!({})), ("other", json!({}))] {
        let mut scale = scale.clone();
        scale["metadata"] = json!({"name": name});
        scale["spec"] = spec;
        script.put(&path, scale).await?;
    }
    script.merge(&path, json!({"spec": {"replicas": -4}})).await?;
    script.get(defined.item("w")).await?;
    for (name, fields) in [
        ("text", json!({"spec": {"size": {"wanted": "many"}}})),
        ("list", json!({"spec": {"size": []}})),
        ("less", json!({"spec": {"size": {"wanted": -1}}})),
        ("more", json!({"spec": {"size": {"wanted": 2_147_483_648_i64}}})),
    ] {
        script.post(&defined.objects, defined.object(name, fields)).await?;
    }
    let status = json!({"status": {"there": -1, "selector": 5}});
    script.merge(&format!("{}/status", defined.item("w")), status).await?;
    script.get(format!("/apis/{}/v1", defined.group)).await?;
    Ok(script)
}

async fn unversioned(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(script.with_spec(json!({"type": "object"}))).await?;
    script.post(&defined.objects, defined.object("w", json!({}))).await?;
    script.put(&defined.item("w"), defined.object("w", json!({}))).await?;
    script.put(&defined.item("absent"), defined.object("absent", json!({}))).await?;
    Ok(script)
}

async fn strict(mut script: Script) -> anyhow::Result<Script> {
    let defined = script.define(script.with_spec(json!({"type": "object"}))).await?;
    for how in ["Strict", "Warn", "Ignore"] {
        let object = defined.object("w", json!({"spec": {"colour": "red"}, "top": 1}));
        let request =
            Request::new("POST", &defined.objects).with("fieldValidation", how).with("dryRun", "All");
        script.send(request.body("application/json", object)).await?;
    }
    Ok(script)
}
