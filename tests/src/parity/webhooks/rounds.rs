//! The order in which webhooks are asked, and who is asked again.

use super::server::{Reply, allowed, denied, patched};
use super::{Kind, about, configure, hook, map, serve, tell};
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// Appends its name to an annotation.
fn sign(path: &str, request: &Value) -> Reply {
    let object = &request["object"];
    let before = object["metadata"]["annotations"]["signed"].as_str().unwrap_or_default();
    let signed = format!("{before}{path} ");
    patched(&json!([{"op": "add", "path": "/metadata/annotations", "value": {"signed": signed}}]))
}

/// Appends its name where it is not yet.
fn sign_once(path: &str, request: &Value) -> Reply {
    let before = request["object"]["metadata"]["annotations"]["signed"].as_str().unwrap_or_default();
    if before.split(' ').any(|signed| signed == path) { allowed() } else { sign(path, request) }
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, first, second, once) in [
        ("none is asked again", "Never", "Never", false),
        ("the first is asked again", "IfNeeded", "Never", false),
        ("the last is not asked again", "Never", "IfNeeded", false),
        ("both want to be asked again", "IfNeeded", "IfNeeded", false),
        ("what changes once is asked again", "IfNeeded", "IfNeeded", true),
    ] {
        all.push(Behaviour::new(format!("of two mutating webhooks {name}"), move |mut script| async move {
            let answer = if once { sign_once } else { sign };
            let server = serve(answer).await?;
            let hooks = vec![
                hook(&script, &server, "one", json!({"reinvocationPolicy": first})),
                hook(&script, &server, "two", json!({"reinvocationPolicy": second})),
            ];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            signed(&mut script).await?;
            tell(&mut script, &server, false);
            Ok(script)
        }));
    }
    all.push(Behaviour::new(
        "configurations are asked in the order of their names",
        |mut script| async move {
            let server = serve(sign).await?;
            // The marker of whoever is asked first refuses, so each is configured before those that it comes after.
            for name in ["c", "b", "a"] {
                let hooks = vec![hook(&script, &server, name, json!({}))];
                configure(&mut script, &server, Kind::Mutating, name, hooks).await?;
            }
            signed(&mut script).await?;
            Ok(script)
        },
    ));
    all.push(Behaviour::new("validating webhooks see what mutating ones made", |mut script| async move {
        let server = serve(|path, request| match path {
            "check" => allowed(),
            _ => sign(path, request),
        })
        .await?;
        let hooks = vec![hook(&script, &server, "sign", json!({}))];
        configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
        let hooks = vec![hook(&script, &server, "check", json!({}))];
        configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
        signed(&mut script).await?;
        tell(&mut script, &server, false);
        Ok(script)
    }));
    all.push(Behaviour::new(
        "a refusal keeps later mutating webhooks from being asked",
        |mut script| async move {
            let server = serve(|path, request| match path {
                "two" => denied("enough"),
                _ => sign(path, request),
            })
            .await?;
            let hooks = ["one", "two", "three"].map(|path| hook(&script, &server, path, json!({})));
            configure(&mut script, &server, Kind::Mutating, "it", hooks.to_vec()).await?;
            signed(&mut script).await?;
            tell(&mut script, &server, false);
            Ok(script)
        },
    ));
    all.push(Behaviour::new(
        "what mutating webhooks break is found before validating ones are asked",
        |mut script| async move {
            let server = serve(|path, _| match path {
                "break" => patched(&json!([{"op": "add", "path": "/data", "value": {"not a key": "v"}}])),
                _ => allowed(),
            })
            .await?;
            let hooks = vec![hook(&script, &server, "break", json!({}))];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            let hooks = vec![hook(&script, &server, "check", json!({}))];
            configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
            signed(&mut script).await?;
            tell(&mut script, &server, false);
            Ok(script)
        },
    ));
    all.push(Behaviour::new("one of two validating webhooks refuses", |mut script| async move {
        let server = serve(|path, _| if path == "two" { denied("no") } else { allowed() }).await?;
        let hooks = ["one", "two"].map(|path| hook(&script, &server, path, json!({})));
        configure(&mut script, &server, Kind::Validating, "it", hooks.to_vec()).await?;
        signed(&mut script).await?;
        tell(&mut script, &server, true);
        Ok(script)
    }));
    all.push(Behaviour::new(
        "a plug-in's second look at a pod makes a webhook look again",
        |mut script| async move {
            let server = serve(|path, request| match path {
                // The plug-in that knows priorities sets what goes with the name.
                "class" => patched(&json!([
                    {"op": "add", "path": "/spec/tolerations", "value": []},
                    {"op": "add", "path": "/metadata/labels", "value": {"by": "class"}},
                ])),
                _ => sign_once(path, request),
            })
            .await?;
            let rules = about("", "v1", "pods");
            let hooks = vec![
                hook(&script, &server, "first", json!({"rules": rules, "reinvocationPolicy": "IfNeeded"})),
                hook(&script, &server, "class", json!({"rules": rules})),
            ];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            let pods = script.path("/api/v1", "pods");
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false}});
            script.post(&pods, pod).await?;
            let asked: Vec<Value> = server.take_asked().into_iter().map(|(path, _)| json!(path)).collect();
            script.note_reviews(asked);
            Ok(script)
        },
    ));
    all.push(Behaviour::new("a quota is not charged for what a webhook refuses", |mut script| async move {
        let quotas = script.path("/api/v1", "resourcequotas");
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
            "spec": {"hard": {"count/secrets": "5"}}});
        script.post(&quotas, quota).await?;
        let used = json!({"status": {"hard": {"count/secrets": "5"}, "used": {"count/secrets": "1"}}});
        script.merge(&format!("{quotas}/q/status"), used).await?;
        let server = serve(|_, _| denied("no")).await?;
        let rules = about("", "v1", "secrets");
        let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules}))];
        configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        script.post(&script.path("/api/v1", "secrets"), secret).await?;
        script.get(format!("{quotas}/q")).await?;
        Ok(script)
    }));
    all
}

/// Makes a ConfigMap, and changes it.
async fn signed(script: &mut Script) -> anyhow::Result<()> {
    let maps = script.maps();
    script.post(&maps, map("a", json!({"data": {"x": "y"}}))).await?;
    script.get(format!("{maps}/a")).await?;
    Ok(())
}
