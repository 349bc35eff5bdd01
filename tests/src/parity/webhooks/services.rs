//! Webhooks behind Services: a selectorless Service and an EndpointSlice that leads to the server.

use super::server::{Proof, Server, allowed, denied};
use super::{Kind, configure, hook, map, marking, serve};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use anyhow::Context;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// An address of this machine that is not on loopback. Nothing is sent to find it.
pub(in crate::parity) fn own_address() -> anyhow::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).context("this machine has no network")?;
    Ok(socket.local_addr()?.ip())
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, path, port) in [
        ("at its usual port", None, None),
        ("at a path", Some("/some/path"), Some(8443)),
        ("at a root", Some("/"), Some(8443)),
    ] {
        all.push(Behaviour::new(
            format!("a webhook behind a Service is asked {name}"),
            move |mut script| async move {
                let host = format!("hooks.{}.svc", script.namespace());
                let behind = Server::proving(
                    Proof::Own,
                    &host,
                    marking(|path, _| denied(&format!("asked at {path:?}"))),
                )
                .await?;
                service(&mut script, port.unwrap_or(443), Some(behind.address().port())).await?;
                let mut config = json!({"namespace": script.namespace(), "name": "hooks"});
                if let Some(path) = path {
                    config["path"] = json!(path);
                }
                if let Some(port) = port {
                    config["port"] = json!(port);
                }
                asked(&mut script, config, &["not found", "no endpoints"]).await?;
                Ok(script)
            },
        ));
    }
    all.push(Behaviour::new("a webhook behind a Service proves to be that", |mut script| async move {
        let behind = Server::start(marking(|_, _| allowed())).await?;
        service(&mut script, 443, Some(behind.address().port())).await?;
        let config = json!({"namespace": script.namespace(), "name": "hooks"});
        plainly(&mut script, config).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a webhook behind a Service that is not there", |mut script| async move {
        let config = json!({"namespace": script.namespace(), "name": "hooks"});
        asked(&mut script, config, &[]).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a webhook behind a Service without that port", |mut script| async move {
        service(&mut script, 443, Some(9)).await?;
        let config = json!({"namespace": script.namespace(), "name": "hooks", "port": 444});
        asked(&mut script, config, &["not found"]).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a webhook behind a Service without endpoints", |mut script| async move {
        service(&mut script, 443, None).await?;
        let config = json!({"namespace": script.namespace(), "name": "hooks"});
        asked(&mut script, config, &["not found"]).await?;
        Ok(script)
    }));
    all
}

/// A Service of one port, and where it leads.
pub(in crate::parity) async fn service(
    script: &mut Script,
    port: u16,
    to: Option<u16>,
) -> anyhow::Result<()> {
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks"},
        "spec": {"ports": [{"port": port, "name": "https"}]}});
    let services = script.path("/api/v1", "services");
    script.quiet(Request::new("POST", services).body(media::JSON, body)).await?;
    let Some(to) = to else { return Ok(()) };
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
        "endpoints": [{"addresses": [own_address()?]}], "ports": [{"name": "https", "port": to, "protocol": "TCP"}]});
    let slices = script.path("/apis/discovery.k8s.io/v1", "endpointslices");
    let answer = script.quiet(Request::new("POST", slices).body(media::JSON, slice)).await?;
    anyhow::ensure!(answer.is_success(), "the slice was refused: {answer}");
    Ok(())
}

async fn ready(script: &mut Script, config: Value) -> anyhow::Result<(Server, Value)> {
    let server = serve(|_, _| allowed()).await?;
    let mut config = config;
    config["caBundle"] = Value::Null;
    let client = json!({"service": config, "caBundle": Server::bundle()});
    let client = json!({"service": without_null(client["service"].clone()), "caBundle": client["caBundle"]});
    let hooks = vec![hook(script, &server, "hook", json!({"clientConfig": client}))];
    configure(script, &server, Kind::Validating, "it", hooks).await?;
    Ok((server, map("a", json!({}))))
}

fn without_null(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

/// A ConfigMap is made once none of these is told any more.
async fn asked(script: &mut Script, config: Value, unknown: &[&str]) -> anyhow::Result<()> {
    let (_server, body) = ready(script, config).await?;
    let maps = script.maps();
    // The reference learns of Services and their endpoints late, too.
    let trying = Request::new("POST", &maps).with("dryRun", "All").body(media::JSON, body.clone());
    script
        .until_asked(trying, |answer| {
            let told = answer.body["message"].as_str().unwrap_or_default();
            unknown.iter().all(|unknown| !told.contains(unknown))
        })
        .await?;
    script.post(&maps, body).await?;
    Ok(())
}

async fn plainly(script: &mut Script, config: Value) -> anyhow::Result<()> {
    let (_server, body) = ready(script, config).await?;
    let maps = script.maps();
    let trying = Request::new("POST", &maps).body(media::JSON, body);
    script
        .until_asked(trying, |answer| {
            answer.body["message"].as_str().is_some_and(|told| told.contains("x509: certificate is"))
        })
        .await?;
    script.get(&maps).await?;
    Ok(())
}
