//! Webhooks that do not answer, or that are not who they should be.

use super::server::{Proof, Reply, Server, allowed, denied};
use super::{Kind, configure, hook, map, marking, serve, tell};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for kind in [Kind::Mutating, Kind::Validating] {
        for policy in ["Fail", "Ignore"] {
            let word = if kind == Kind::Mutating { "mutating" } else { "validating" };
            let named = |what: &str| format!("a {word} webhook {what}, with failure policy {policy}");
            all.push(failing(named("hangs"), kind, policy, Reply::Hang));
            all.push(failing(named("closes the connection"), kind, policy, Reply::Close));
            all.push(failing(
                named("answers at great length"),
                kind,
                policy,
                Reply::Blanks(20 * 1024 * 1024),
            ));
            for (what, proof) in [
                ("has a certificate of a stranger", Proof::Stranger),
                ("has a certificate of another", Proof::Other),
                ("speaks no TLS", Proof::None),
            ] {
                all.push(unproven(named(what), kind, policy, proof));
            }
            all.push(gone(named("is gone"), kind, policy));
        }
    }
    for (name, status, to) in [
        ("a webhook that redirects by 302 is read elsewhere", 302, "/elsewhere"),
        ("a webhook that redirects by 307 is asked elsewhere", 307, "/elsewhere"),
        ("a webhook that redirects by 308 is asked beside it", 308, "elsewhere"),
        ("a webhook that redirects in circles is left", 307, "/circle"),
        ("a webhook that redirects nowhere has answered", 307, ""),
    ] {
        all.push(redirected(name, status, to));
    }
    for (name, proof) in [
        ("a webhook whose certificate is trusted by itself is asked", Proof::Stranger),
        ("a webhook whose certificate is trusted by itself, and for another, is not", Proof::Other),
    ] {
        all.push(trusted_by_itself(name, proof));
    }
    all.push(circular());
    all
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
        "length limit",
        "couldn't get",
    ];
    // How much an answer may say is ours to choose.
    if told.contains("length limit") || told.contains("response was absent") {
        let at =
            ["failed to call webhook", "received invalid"].iter().filter_map(|word| told.find(word)).min();
        return at.map_or_else(String::new, |at| told[..at].to_owned());
    }
    let at = cut.iter().filter_map(|word| told.find(word)).min();
    at.map_or_else(|| told.to_owned(), |at| told[..at].to_owned())
}

/// Sends a create; of the message only what is ours to say is compared.
async fn post_plainly(script: &mut Script, path: &str, body: Value) -> anyhow::Result<()> {
    let mut answer = script.quiet(Request::new("POST", path).body(media::JSON, body)).await?;
    for pointer in ["/message", "/details/causes/0/message"] {
        if let Some(text) = answer.body.pointer_mut(pointer)
            && let Some(told) = text.as_str()
        {
            *text = json!(plain(told));
        }
    }
    script.note(&answer);
    Ok(())
}

fn failing(name: String, kind: Kind, policy: &'static str, reply: Reply) -> Behaviour {
    Behaviour::new(name, move |mut script| {
        let reply = reply.clone();
        async move {
            let maps = script.maps();
            let server = serve(move |_, _| reply.clone()).await?;
            let fields = json!({"failurePolicy": policy, "timeoutSeconds": 1});
            let hooks = vec![hook(&script, &server, "hook", fields)];
            configure(&mut script, &server, kind, "it", hooks).await?;
            post_plainly(&mut script, &maps, map("a", json!({}))).await?;
            script.get(&maps).await?;
            Ok(script)
        }
    })
}

fn unproven(name: String, kind: Kind, policy: &'static str, proof: Proof) -> Behaviour {
    Behaviour::new(name, move |mut script| async move {
        let maps = script.maps();
        // The marker is refused by one that proves to be who it is.
        let server = serve(|_, _| allowed()).await?;
        let other = Server::proving(proof, "", marking(|_, _| allowed())).await?;
        script.name(&other.address().to_string(), "other server");
        let hooks = vec![hook(&script, &other, "hook", json!({"failurePolicy": policy}))];
        configure(&mut script, &server, kind, "it", hooks).await?;
        post_plainly(&mut script, &maps, map("a", json!({}))).await?;
        script.get(&maps).await?;
        Ok(script)
    })
}

fn gone(name: String, kind: Kind, policy: &'static str) -> Behaviour {
    Behaviour::new(name, move |mut script| async move {
        let maps = script.maps();
        let server = serve(|_, _| allowed()).await?;
        let mut other = Server::start(marking(|_, _| allowed())).await?;
        script.name(&other.address().to_string(), "other server");
        let hooks = vec![hook(&script, &other, "hook", json!({"failurePolicy": policy}))];
        other.stop();
        configure(&mut script, &server, kind, "it", hooks).await?;
        post_plainly(&mut script, &maps, map("a", json!({}))).await?;
        script.get(&maps).await?;
        Ok(script)
    })
}

fn redirected(name: &'static str, status: u16, to: &'static str) -> Behaviour {
    Behaviour::new(name, move |mut script| async move {
        let maps = script.maps();
        let server = serve(move |path, _| match path {
            "hook" => Reply::Redirect(status, to.to_owned()),
            "circle" => Reply::Redirect(status, "circle".to_owned()),
            _ => allowed(),
        })
        .await?;
        let hooks = vec![hook(&script, &server, "hook", json!({}))];
        configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
        script.post(&maps, map("a", json!({}))).await?;
        let asked: Vec<Value> = server.take_asked().into_iter().map(|(path, _)| json!(path)).collect();
        script.note_reviews(asked);
        Ok(script)
    })
}

fn trusted_by_itself(name: &'static str, proof: Proof) -> Behaviour {
    Behaviour::new(name, move |mut script| async move {
        let maps = script.maps();
        let server = serve(|_, _| allowed()).await?;
        let other = Server::proving(proof, "", marking(|_, _| denied("asked"))).await?;
        script.name(&other.address().to_string(), "other server");
        let client = json!({"url": other.url("hook"), "caBundle": other.own_bundle()});
        let hooks = vec![hook(&script, &other, "hook", json!({"clientConfig": client}))];
        configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
        post_plainly(&mut script, &maps, map("a", json!({}))).await?;
        Ok(script)
    })
}

fn circular() -> Behaviour {
    Behaviour::new("webhooks that wait for each other end in their time", |mut script| async move {
        let maps = script.maps();
        let server = serve(|path, _| if path == "slow" { Reply::Hang } else { allowed() }).await?;
        let hooks = vec![
            hook(&script, &server, "slow", json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"})),
            hook(&script, &server, "fast", json!({})),
        ];
        configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
        script.post(&maps, map("a", json!({}))).await?;
        tell(&mut script, &server, false);
        Ok(script)
    })
}
