//! What is led to an extension API server: as who, and how.

use super::server::Reply;
use super::{Asked, available, gadget, gadgets};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::json;

/// The headers that are compared.
const HEADERS: [&str; 11] = [
    "x-remote-user",
    "x-remote-group",
    "x-remote-uid",
    "x-remote-extra-scopes",
    "x-remote-extra-example.com%2fteam",
    "content-type",
    "accept",
    "user-agent",
    "x-own",
    "authorization",
    "impersonate-user",
];

/// What the server says to everything.
fn echo(asked: &Asked) -> Reply {
    Reply::Json(200, json!({"kind": "Gadget", "apiVersion": "v1", "told": asked.body.len()}))
}

/// Asks as Alice, and notes down what was asked of the server.
async fn led(script: &mut Script, make: impl FnOnce(&Script) -> Request) -> anyhow::Result<()> {
    let extension = available(script, echo).await?;
    grant(script).await?;
    let request = make(script);
    let path = request.path.split('?').next().unwrap_or_default().to_owned();
    script.send(request).await?;
    let asked = extension.take_asked().into_iter().filter(|asked| asked.path == path.replace("%3A", ":"));
    let shown = asked.map(|asked| asked.shown(&HEADERS)).collect();
    script.note_reviews(shown);
    Ok(())
}

/// Lets Alice do everything with Gadgets.
async fn grant(script: &mut Script) -> anyhow::Result<()> {
    let name = format!("gadgets-{}", script.namespace());
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [script.group()], "resources": ["*"], "verbs": ["*"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    for (plural, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        script.leave(format!("{path}/{name}"));
        script.quiet(Request::new("POST", path).body(media::JSON, body)).await?;
    }
    let ready = Request::new("GET", gadgets(script)).impersonating("alice");
    script.until_asked(ready, |answer| answer.status != 403).await
}

type Led = (&'static str, fn(&Script) -> Request);

const LED: &[Led] = &[
    ("a list", |script| Request::new("GET", gadgets(script))),
    ("a list with a query", |script| {
        Request::new("GET", gadgets(script))
            .with("limit", "5")
            .with("labelSelector", "a=b,c in (d,e)")
            .with("fieldSelector", "metadata.name=x y")
    }),
    ("a creation", |script| Request::new("POST", gadgets(script)).body(media::JSON, gadget(script, "one"))),
    ("a creation in YAML", |script| {
        Request::new("POST", gadgets(script)).raw("application/yaml", "kind: Gadget\n")
    }),
    ("a creation of garbage", |script| Request::new("POST", gadgets(script)).raw(media::JSON, "{garbage")),
    ("a creation of more than objects may have", |script| {
        Request::new("POST", gadgets(script)).raw(media::JSON, vec![b' '; 8 * 1024 * 1024])
    }),
    ("an update", |script| {
        Request::new("PUT", format!("{}/one", gadgets(script))).body(media::JSON, gadget(script, "one"))
    }),
    ("a merge patch", |script| {
        Request::new("PATCH", format!("{}/one", gadgets(script)))
            .body(media::MERGE_PATCH, json!({"spec": {"size": 2}}))
    }),
    ("an apply", |script| {
        Request::new("PATCH", format!("{}/one", gadgets(script)))
            .with("fieldManager", "me")
            .with("force", "true")
            .body(media::APPLY_PATCH, gadget(script, "one"))
    }),
    ("a deletion with options", |script| {
        Request::new("DELETE", format!("{}/one", gadgets(script))).body(
            media::JSON,
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}),
        )
    }),
    ("a subresource", |script| Request::new("GET", format!("{}/one/status", gadgets(script)))),
    ("a subresource that nobody told of", |script| {
        Request::new("POST", format!("{}/one/what/ever", gadgets(script))).body(media::JSON, json!({}))
    }),
    ("a resource that nobody told of", |script| {
        Request::new("GET", script.path(&format!("/apis/{}/v1", script.group()), "whatsits"))
    }),
    ("what a client takes", |script| {
        Request::new("GET", gadgets(script))
            .accepting("application/vnd.kubernetes.protobuf, application/json;q=0.5")
            .by("kubectl/v1")
    }),
    ("other headers", |script| Request::new("GET", gadgets(script)).header("x-own", "mine")),
    ("headers that claim to be somebody", |script| {
        Request::new("GET", gadgets(script))
            .header("x-remote-user", "root")
            .header("x-remote-group", "system:masters")
            .header("x-remote-uid", "0")
            .header("x-remote-extra-scopes", "all")
    }),
    ("a user with all that is known of one", |script| {
        Request::new("GET", gadgets(script))
            .header("impersonate-uid", "77")
            .header("impersonate-group", "devs")
            .header("impersonate-extra-scopes", "view")
            .header("impersonate-extra-scopes", "edit")
            .header("impersonate-extra-example.com%2fteam", "a b")
    }),
    ("a path with escapes", |script| Request::new("GET", format!("{}/a%3Ab", gadgets(script)))),
    ("a name that is none", |script| Request::new("GET", format!("{}/Not_A_Name", gadgets(script)))),
];

/// How a server answers, which is how the client is answered.
type Told = (&'static str, fn() -> Reply);

const TOLD: &[Told] = &[
    ("201", || Reply::Json(201, json!({"kind": "Gadget"}))),
    ("202 with a text", || Reply::Raw(202, "text/plain", b"later".to_vec())),
    ("404 as a Status", || {
        Reply::Json(
            404,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": "gadgets \"one\" not found"}),
        )
    }),
    ("409 with a text", || Reply::Raw(409, "text/plain", b"no".to_vec())),
    ("418", || Reply::Raw(418, "text/plain", Vec::new())),
    ("500", || Reply::Raw(500, "text/plain", b"it broke".to_vec())),
    ("503", || Reply::Raw(503, "text/plain", b"busy".to_vec())),
    ("garbage", || Reply::Raw(200, media::JSON, b"{garbage".to_vec())),
    ("at great length", || Reply::Raw(200, "text/plain", vec![b'x'; 20 * 1024 * 1024])),
    ("with a redirection", || Reply::Redirect(302, "https://127.0.0.1:1/elsewhere".to_owned())),
    ("with a redirection for ever", || Reply::Redirect(308, "/apis".to_owned())),
    ("with 304", || Reply::Raw(304, "text/plain", Vec::new())),
    ("by closing the connection", || Reply::Close),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, make) in LED {
        all.push(Behaviour::new(format!("{name} is led to the server"), move |mut script| async move {
            led(&mut script, |script| make(script).impersonating("alice")).await?;
            Ok(script)
        }));
    }
    for (name, reply) in TOLD {
        all.push(Behaviour::new(format!("a server answers {name}"), move |mut script| async move {
            let _extension = available(&mut script, |_| reply()).await?;
            let mut answer = script.quiet(Request::new("GET", gadgets(&script))).await?;
            if let Some(long) = answer.body.as_str().filter(|text| text.len() > 10_000) {
                answer.body = json!(long.len());
            }
            script.note(&answer);
            Ok(script)
        }));
    }
    all.push(Behaviour::new("who may not is not led to the server", |mut script| async move {
        let extension = available(&mut script, echo).await?;
        script.send(Request::new("GET", gadgets(&script)).impersonating("mallory")).await?;
        script
            .send(Request::new("GET", format!("/apis/{}/v1", script.group())).impersonating("mallory"))
            .await?;
        let path = gadgets(&script);
        let asked = extension.take_asked().into_iter().filter(|asked| asked.path == path);
        let asked = asked.map(|asked| asked.shown(&HEADERS)).collect();
        script.note_reviews(asked);
        Ok(script)
    }));
    all.push(Behaviour::new(
        "a watch is told what the server tells, when it does",
        |mut script| async move {
            let _extension = available(&mut script, |asked| match asked.query.contains("watch") {
                true => Reply::Lines(
                    (1..4).map(|number| json!({"type": "ADDED", "object": {"number": number}})).collect(),
                ),
                false => echo(asked),
            })
            .await?;
            // It goes on: events that were kept back would not be seen.
            script.watch(Request::new("GET", gadgets(&script)).with("watch", "true"), 3).await?;
            Ok(script)
        },
    ));
    all.push(Behaviour::new(
        "a server is not waited for longer than the client has",
        |mut script| async move {
            let _extension = available(&mut script, |asked| match asked.path.contains("gadgets") {
                true => Reply::Hang,
                false => echo(asked),
            })
            .await?;
            script.send(Request::new("GET", gadgets(&script)).with("timeout", "1s")).await?;
            Ok(script)
        },
    ));
    all.push(Behaviour::new("no time at all", |mut script| async move {
        let _extension = available(&mut script, echo).await?;
        script.send(Request::new("GET", gadgets(&script)).with("timeout", "soon")).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a server that stopped cannot be reached", |mut script| async move {
        let mut extension = available(&mut script, echo).await?;
        extension.stop().await;
        let answer = script.quiet(Request::new("GET", gadgets(&script))).await?;
        script.note(&answer);
        Ok(script)
    }));
    all.push(Behaviour::new("what a server lists can be deleted as a whole", |mut script| async move {
        led(&mut script, |script| {
            Request::new("DELETE", gadgets(script)).impersonating("alice").with("dryRun", "All")
        })
        .await?;
        Ok(script)
    }));
    all
}
