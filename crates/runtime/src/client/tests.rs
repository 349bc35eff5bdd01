//! The client on real connections: an API behind TCP, and servers that close, cut off or stay silent.

use super::*;
use anyhow::{Result, ensure};
use futures::AsyncBufReadExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn config(address: std::net::SocketAddr, path: &str) -> Config {
    let mut config = Config::new(format!("http://{address}{path}").parse().unwrap());
    config.default_retry = false;
    config
}

fn client(config: &Config) -> Client {
    assert!(can_connect_directly(config));
    Client::new(direct_service(config, &Clock::real()).unwrap(), "default")
}

fn map(name: &str, text: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"text": text}})).unwrap()
}

/// Answers every connection by a script: so many requests on each, then it closes.
async fn scripted(answers: &'static [&'static str], each: usize) -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, opened) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = opened.clone();
    tokio::spawn(async move {
        let mut said = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            for _ in 0..each {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let answer = answers[said % answers.len()];
                said += 1;
                let head = String::from_utf8(head).unwrap();
                let answer = answer.replace("HEAD", &head.len().to_string());
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    break;
                }
            }
        }
    });
    (address, opened)
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn requests_lists_and_watches_go_through_and_share_connections() -> Result<()> {
    let api = windlass_apiserver::Api::new(windlass_apiserver::Config::default());
    let serving = api.serve_tcp(TcpListener::bind("127.0.0.1:0").await?)?;
    let client = client(&config(serving.address(), ""));
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    // Longer than any buffer on the way.
    let long = "x".repeat(300_000);
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &map(name, &long)).await?;
    }
    let listed = maps.list(&ListParams::default()).await?;
    ensure!(listed.items.iter().all(|map| map.data.as_ref().is_some_and(|data| data["text"] == long)));
    ensure!(maps.get_opt("c").await?.is_none(), "and errors are the server's");
    let watch = Request::get("/api/v1/namespaces/default/configmaps?watch=true").body(Vec::new())?;
    let mut lines = Box::pin(client.request_stream(watch).await?).lines();
    maps.create(&PostParams::default(), &map("d", "short")).await?;
    let mut observed = Vec::new();
    while observed.len() < 3 {
        let line = futures::StreamExt::next(&mut lines).await.expect("the watch goes on")?;
        let event: serde_json::Value = serde_json::from_str(&line)?;
        observed.push(event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    }
    ensure!(observed == ["a", "b", "d"], "{observed:?}");
    let all = futures::future::join_all((0..20).map(|_| maps.get("d"))).await;
    ensure!(all.into_iter().all(|one| one.is_ok()), "many at once");
    serving.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_connection_is_used_again_and_one_that_the_server_closed_is_not() -> Result<()> {
    const OK: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"];
    let (address, opened) = scripted(OK, 3).await;
    let client = client(&config(address, ""));
    for _ in 0..3 {
        client.send(get("/a")).await?.into_body().collect().await?;
    }
    ensure!(opened.load(Ordering::SeqCst) == 1);
    // Whether its end has been heard of by now or not.
    for _ in 0..6 {
        let answer = client.send(get("/a")).await?;
        ensure!(answer.into_body().collect().await?.to_bytes() == "{}");
    }
    ensure!(opened.load(Ordering::SeqCst) == 3);
    Ok(())
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_an_error_and_the_next_request_is_not() -> Result<()> {
    const CUT: &[&str] = &[
        "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        "HTTP/1.1 200 ",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
    ];
    let (address, _) = scripted(CUT, 1).await;
    let client = client(&config(address, ""));
    for _ in 0..2 {
        ensure!(client.send(get("/a")).await?.into_body().collect().await.is_err());
    }
    ensure!(client.send(get("/a")).await.is_err());
    ensure!(client.send(get("/a")).await?.into_body().collect().await?.to_bytes() == "{}");
    Ok(())
}

#[tokio::test]
async fn a_server_below_a_path_is_asked_there_and_headers_go_along() -> Result<()> {
    const LENGTH: &[&str] = &["HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nHEAD"];
    let (address, _) = scripted(LENGTH, 1).await;
    let length = async |config: &Config| -> Result<usize> {
        let answer = client(config).send(get("/api/v1")).await?;
        Ok(std::str::from_utf8(&answer.into_body().collect().await?.to_bytes())?.parse()?)
    };
    let plain = length(&config(address, "")).await?;
    ensure!(plain == format!("GET /api/v1 HTTP/1.1\r\nhost: {address}\r\n\r\n").len());
    ensure!(length(&config(address, "/k8s/")).await? == plain + 4);
    let mut told = config(address, "");
    told.headers.push((http::header::USER_AGENT, HeaderValue::from_static("us")));
    told.auth_info.token = Some("t".to_owned().into());
    ensure!(length(&told).await? == plain + "user-agent: us\r\nauthorization: Bearer t\r\n".len());
    Ok(())
}

#[tokio::test]
async fn nobody_there_is_an_error_and_so_is_one_who_never_answers_the_call() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    drop(listener);
    ensure!(client(&config(address, "")).send(get("/a")).await.is_err());
    // It takes the call and says nothing: the greeting of TLS is waited for.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let mut config = Config::new(format!("https://{}", silent.local_addr()?).parse()?);
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_millis(50));
    let error = client(&config).send(get("/a")).await.unwrap_err();
    ensure!(error.to_string().contains("not done after 50ms"), "{error}");
    Ok(())
}
