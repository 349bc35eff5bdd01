//! What follows from a validation that fails: it is denied, warned about, or only audited.

use super::{Kind, bound, map, only, settle, writes};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::Behaviour;
use serde_json::{Value, json};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, actions) in [
        ("denies", json!(["Deny"])),
        ("warns", json!(["Warn"])),
        ("audits", json!(["Audit"])),
        ("warns and audits", json!(["Warn", "Audit"])),
        ("denies and audits", json!(["Deny", "Audit"])),
    ] {
        all.push(Behaviour::new(format!("a binding {name}"), move |mut script| {
            let actions = actions.clone();
            async move {
                script.map("before", json!({"app": "web"})).await?;
                let validations = json!([{"expression": "request.name != 'a'", "message": "one", "reason": "Forbidden"},
                    {"expression": "object != null", "message": "two"}, {"expression": "object.missing == 1"}]);
                let spec = json!({"validations": validations});
                only(&mut script, Kind::Validating, spec, json!({"validationActions": actions})).await?;
                writes(&mut script).await?;
                Ok(script)
            }
        }));
    }
    all.push(Behaviour::new("two bindings warn and deny", |mut script| async move {
        bound(&mut script, Kind::Validating, "it", json!({}), json!({"validationActions": ["Warn"]})).await?;
        let second = super::binding(
            &script,
            Kind::Validating,
            "other",
            &json!({"policyName": super::name(&script, "it")}),
        );
        super::store(&mut script, &Kind::Validating.bindings(), second).await?;
        settle(&mut script, Kind::Validating).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("two policies warn", |mut script| async move {
        for short in ["one", "two"] {
            let spec = json!({"validations": [{"expression": "false", "message": short}]});
            bound(&mut script, Kind::Validating, short, spec, json!({"validationActions": ["Warn"]})).await?;
        }
        settle(&mut script, Kind::Validating).await?;
        let maps = script.maps();
        let answer = script.quiet(Request::new("POST", &maps).body(media::JSON, map("a", json!({})))).await?;
        let mut warnings = answer.warnings.clone();
        warnings.sort();
        let mut answer = answer;
        let namespace = script.namespace().to_owned();
        answer.body =
            json!(warnings.iter().map(|told| told.replace(&namespace, "<namespace>")).collect::<Vec<_>>());
        script.note(&answer);
        Ok(script)
    }));
    all.push(Behaviour::new("a policy without a binding does nothing", |mut script| async move {
        let policy = super::policy(&script, Kind::Validating, "it", &json!({}));
        super::store(&mut script, &Kind::Validating.policies(), policy).await?;
        settle(&mut script, Kind::Validating).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a binding without a policy does nothing", |mut script| async move {
        let binding = super::binding(&script, Kind::Validating, "it", &json!({}));
        super::store(&mut script, &Kind::Validating.bindings(), binding).await?;
        settle(&mut script, Kind::Validating).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy counts in a dry run", |mut script| async move {
        only(
            &mut script,
            Kind::Validating,
            json!({"validations": [{"expression": "!request.dryRun"}]}),
            json!({}),
        )
        .await?;
        let maps = script.maps();
        let post = Request::new("POST", &maps).with("dryRun", "All");
        script.send(post.body(media::JSON, map("a", json!({})))).await?;
        script.post(&maps, map("a", json!({}))).await?;
        script.send(Request::new("DELETE", format!("{maps}/a")).with("dryRun", "All")).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a policy is told of a generated name", |mut script| async move {
        let spec = json!({"validations": [{"expression": "object.metadata.name == '' || request.name != ''", "message": "no name"}]});
        only(&mut script, Kind::Validating, spec, json!({})).await?;
        let maps = script.maps();
        let mut answer = script
            .quiet(Request::new("POST", &maps).body(media::JSON, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "it-"}})))
            .await?;
        answer.body = json!(answer.body["reason"]);
        script.note(&answer);
        Ok(script)
    }));
    all.push(Behaviour::new("a policy counts no more when it is changed", |mut script| async move {
        only(&mut script, Kind::Validating, json!({}), json!({})).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        let item = format!("{}/{}", Kind::Validating.policies(), super::name(&script, "it"));
        let patch =
            json!({"spec": {"validations": [{"expression": "request.name == 'a'", "message": "now"}]}});
        script.quiet(Request::new("PATCH", item).body(media::MERGE_PATCH, patch)).await?;
        settle(&mut script, Kind::Validating).await?;
        script.post(&maps, map("a", json!({}))).await?;
        script.post(&maps, map("b", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new(
        "a policy counts no more when its binding is deleted",
        |mut script| async move {
            only(&mut script, Kind::Validating, json!({}), json!({})).await?;
            let item = format!("{}/{}", Kind::Validating.bindings(), super::name(&script, "it"));
            script.quiet(Request::new("DELETE", item)).await?;
            settle(&mut script, Kind::Validating).await?;
            let maps = script.maps();
            script.post(&maps, map("a", json!({}))).await?;
            Ok(script)
        },
    ));
    for (name, expression, policy) in [
        ("that are texts", "'a text'", "Fail"),
        ("that are nothing", "null", "Fail"),
        ("that are empty", "' '", "Fail"),
        ("that fail", "string(object.missing)", "Fail"),
        ("that fail and are ignored", "string(object.missing)", "Ignore"),
    ] {
        all.push(Behaviour::new(format!("audit annotations {name}"), move |mut script| async move {
            let spec = json!({"failurePolicy": policy, "validations": Value::Null,
                "auditAnnotations": [{"key": "told", "valueExpression": expression}]});
            only(&mut script, Kind::Validating, spec, json!({"validationActions": ["Audit"]})).await?;
            writes(&mut script).await?;
            Ok(script)
        }));
    }
    all
}
