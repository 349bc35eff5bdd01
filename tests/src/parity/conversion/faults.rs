//! Webhooks that fail, and what that does to each verb.

use super::{Widgets, about, objects, success, until_unreadable};
use crate::compare::exchange::media;
use crate::compare::{Answer, Request};
use crate::parity::webhooks::server::{Proof, Reply, Server};
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// A webhook that does not want to convert.
pub(super) fn refusing(message: &str) -> Reply {
    Reply::Response(json!({"result": {"status": "Failure", "message": message}}))
}

/// A conversion's answer with what is wrong about it.
type Fault = (&'static str, fn(&Value) -> Reply);

const FAULTS: &[Fault] = &[
    ("fails", |_| refusing("not today")),
    ("fails and does not say why", |_| Reply::Response(json!({"result": {"status": "Failure"}}))),
    ("gives no result", |request| Reply::Response(json!({"convertedObjects": objects(request)}))),
    ("gives no response", |_| {
        json_reply(json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}))
    }),
    ("gives no objects", |_| success(Vec::new())),
    ("drops the objects", |_| Reply::Response(json!({"result": {"status": "Success"}}))),
    ("gives an object too many", |request| {
        let mut objects = objects(request);
        objects.extend(objects.clone());
        success(objects)
    }),
    ("gives null for an object", |_| success(vec![Value::Null])),
    ("gives a text for an object", |_| success(vec![json!("widget")])),
    ("gives an empty object", |_| success(vec![json!({})])),
    ("answers about another UID", |request| {
        Reply::Response(
            json!({"uid": "other", "result": {"status": "Success"}, "convertedObjects": objects(request)}),
        )
    }),
    ("answers in the older version", |request| {
        json_reply(json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1beta1",
            "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects(request)}}))
    }),
    ("answers without a kind", |request| {
        json_reply(
            json!({"response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects(request)}}),
        )
    }),
    ("answers with another kind", |_| json_reply(json!({"kind": "Pod", "apiVersion": "v1"}))),
    ("answers with garbage", |_| Reply::Raw(200, "application/json", b"{garbage".to_vec())),
    ("answers with a text", |_| Reply::Raw(200, "text/plain", b"hello".to_vec())),
    ("answers with nothing", |_| Reply::Raw(200, "application/json", Vec::new())),
    ("answers with 404", |_| Reply::Raw(404, "text/plain", b"not here".to_vec())),
    ("answers with 500", |_| Reply::Raw(500, "text/plain", b"it broke".to_vec())),
    ("answers with 503", |_| Reply::Raw(503, "text/plain", b"busy".to_vec())),
    ("closes the connection", |_| Reply::Close),
    ("answers at great length", |_| Reply::Blanks(20 * 1024 * 1024)),
];

fn json_reply(answer: Value) -> Reply {
    Reply::Raw(200, "application/json", answer.to_string().into_bytes())
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all: Vec<Behaviour> = FAULTS
        .iter()
        .map(|(name, fault)| {
            about(&format!("a webhook {name}"), move |mut script, widgets| async move {
                widgets.answer(fault);
                widgets.make(&mut script, &["a"]).await?;
                send_plainly(&mut script, Request::new("GET", widgets.two("a"))).await?;
                script.get(widgets.one("a")).await?;
                let body = widgets.second("b", json!({"spec": {"amount": 1}}));
                send_plainly(&mut script, Request::new("POST", &widgets.v2).body(media::JSON, body)).await?;
                script.get(widgets.one("b")).await?;
                Ok(script)
            })
        })
        .collect();
    for (name, path, method, kind, body) in verbs() {
        all.push(about(&format!("a webhook that fails does to {name}"), move |mut script, widgets| {
            let body = body.clone();
            async move {
                widgets.answer(|_| refusing("not today"));
                widgets.make(&mut script, &["a", "b"]).await?;
                until_unreadable(&mut script, &widgets).await?;
                let request = Request::new(method, format!("{}{path}", widgets.v2));
                let body: Value = serde_json::from_str(&body.to_string().replace("<group>", &widgets.group))?;
                let request = if kind.is_empty() { request } else { request.body(kind, body) };
                let request =
                    if kind == media::APPLY_PATCH { request.with("fieldManager", "one") } else { request };
                script.send(request).await?;
                script.get(&widgets.v1).await?;
                Ok(script)
            }
        }));
    }
    all.push(about("a webhook that fails does to a watch", |mut script, widgets| async move {
        widgets.answer(|_| refusing("not today"));
        widgets.make(&mut script, &["a"]).await?;
        until_unreadable(&mut script, &widgets).await?;
        let mut answer = script.quiet(Request::new("GET", &widgets.v2).with("watch", "1")).await?;
        // Which version its cache has come to is nobody's business.
        answer.body["object"]["message"] = Value::Null;
        script.note(&answer);
        Ok(script)
    }));
    all.push(about("a watch waits for objects that are not converted", |mut script, widgets| async move {
        widgets.make(&mut script, &["a"]).await?;
        let mut events = script.open_watch(Request::new("GET", &widgets.v2).with("watch", "1")).await?;
        script.events(&mut events, 1).await?;
        widgets.answer(|_| refusing("not today"));
        script.merge(&widgets.one("a"), json!({"spec": {"size": 9}})).await?;
        until_unreadable(&mut script, &widgets).await?;
        widgets.answer(super::converted);
        script.events(&mut events, 1).await?;
        Ok(script)
    }));
    all.push(about("a webhook that failed is asked again", |mut script, widgets| async move {
        widgets.answer(|_| refusing("not today"));
        widgets.make(&mut script, &["a"]).await?;
        until_unreadable(&mut script, &widgets).await?;
        script.get(widgets.two("a")).await?;
        widgets.answer(super::converted);
        script.get(widgets.two("a")).await?;
        script.until(&widgets.v2, 200).await?;
        script.get(&widgets.v2).await?;
        Ok(script)
    }));
    all.push(about("objects that one webhook answer mixes up", |mut script, widgets| async move {
        widgets.spoil(|objects| {
            for object in objects {
                if object["metadata"]["name"] == "b" {
                    object["metadata"]["name"] = json!("a");
                }
            }
        });
        widgets.make(&mut script, &["a", "b"]).await?;
        until_unreadable(&mut script, &widgets).await?;
        script.get(&widgets.v2).await?;
        script.get(widgets.two("a")).await?;
        script.get(widgets.two("b")).await?;
        Ok(script)
    }));
    all.push(about("a webhook fails for one of many", |mut script, widgets| async move {
        widgets.answer(|request| match request["objects"].to_string().contains("\"b\"") {
            true => refusing("not this one"),
            false => super::converted(request),
        });
        widgets.make(&mut script, &["a", "b", "c"]).await?;
        until_unreadable(&mut script, &widgets).await?;
        script.get(&widgets.v2).await?;
        script.get(widgets.two("a")).await?;
        script.get(widgets.two("b")).await?;
        Ok(script)
    }));
    for (what, proof) in [
        ("has a certificate of a stranger", Proof::Stranger),
        ("has a certificate of another", Proof::Other),
        ("speaks no TLS", Proof::None),
    ] {
        all.push(Behaviour::new(
            format!("conversion: a webhook {what}"),
            move |mut script: Script| async move {
                let server = Server::proving(proof, "", |_, request| super::converted(request)).await?;
                script.name(&server.address().to_string(), "other server");
                let url = server.url("convert");
                let widgets = Widgets::define(&mut script, |definition| {
                    definition["spec"]["conversion"]["webhook"]["clientConfig"]["url"] = json!(url);
                })
                .await?;
                widgets.make(&mut script, &["a"]).await?;
                send_plainly(&mut script, Request::new("GET", widgets.two("a"))).await?;
                Ok(script)
            },
        ));
    }
    all.push(about("a webhook that is gone", |mut script, mut widgets| async move {
        widgets.server.stop();
        widgets.make(&mut script, &["a"]).await?;
        send_plainly(&mut script, Request::new("GET", widgets.two("a"))).await?;
        script.get(widgets.one("a")).await?;
        script.delete(&widgets.one("a"), Value::Null).await?;
        Ok(script)
    }));
    all
}

/// Every verb: the path after that of the collection, the method, the media type and the body.
fn verbs() -> Vec<(&'static str, &'static str, &'static str, &'static str, Value)> {
    let widget = json!({"apiVersion": "<group>/v2", "kind": "Widget", "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": {"amount": 1}});
    let new = json!({"apiVersion": "<group>/v2", "kind": "Widget", "metadata": {"name": "n"}, "spec": {"amount": 1}});
    let intent = json!({"apiVersion": "<group>/v2", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"amount": 1}});
    vec![
        ("a get", "/a", "GET", "", Value::Null),
        ("a list", "", "GET", "", Value::Null),
        ("a create", "", "POST", media::JSON, new.clone()),
        ("an update", "/a", "PUT", media::JSON, widget.clone()),
        ("a merge patch", "/a", "PATCH", media::MERGE_PATCH, json!({"spec": {"amount": 2}})),
        (
            "a JSON patch",
            "/a",
            "PATCH",
            media::JSON_PATCH,
            json!([{"op": "add", "path": "/spec/amount", "value": 2}]),
        ),
        ("an apply", "/a", "PATCH", media::APPLY_PATCH, intent),
        ("an apply that creates", "/n", "PATCH", media::APPLY_PATCH, new),
        ("a read of the status", "/a/status", "GET", "", Value::Null),
        ("an update of the status", "/a/status", "PUT", media::JSON, widget),
        ("a read of the scale", "/a/scale", "GET", "", Value::Null),
        ("a patch of the scale", "/a/scale", "PATCH", media::MERGE_PATCH, json!({"spec": {"replicas": 2}})),
        ("a deletion", "/a", "DELETE", "", Value::Null),
        ("a deletion of a collection", "", "DELETE", "", Value::Null),
        ("a get of what is not there", "/z", "GET", "", Value::Null),
    ]
}

/// Sends a request; of the message only what is ours to say is compared.
async fn send_plainly(script: &mut Script, request: Request) -> anyhow::Result<()> {
    let mut answer = script.quiet(request).await?;
    if let Some(text) = answer.body.pointer_mut("/message")
        && let Some(told) = text.as_str()
    {
        *text = json!(plain(told));
    }
    script.note(&Answer { ..answer });
    Ok(())
}

/// What is told of a failure beyond that there was one differs with the library.
fn plain(told: &str) -> String {
    let cut = [
        "x509: ",
        "tls: ",
        "EOF",
        "dial tcp",
        "http: server gave",
        "read tcp",
        "connection reset",
        "expected response.uid",
    ];
    // How much an answer may say is ours to choose.
    if told.contains("length limit")
        || told.contains("couldn't get version/kind")
        || told.contains("expected webhook response")
    {
        return told.split(" failed:").next().unwrap_or_default().to_owned();
    }
    let at = cut.iter().filter_map(|word| told.find(word)).min();
    at.map_or_else(|| told.to_owned(), |at| told[..at].to_owned())
}
