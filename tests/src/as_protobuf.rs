//! Objects that are sent and asked for as protobuf.

use crate::compare::exchange::media;
use crate::compare::{Answer, Request, Server};
use anyhow::{Context, ensure};
use serde_json::Value;
use windlass_apiserver::protobuf;

/// How often an object is written again that a controller changed meanwhile.
const TRIES: usize = 20;

/// Writes an object that is there back as protobuf, without a change, and asks for it as protobuf: both answers, as the JSON
/// that they are.
///
/// # Errors
/// When there is no answer, or one that is not protobuf.
pub async fn written_and_read(server: &Server, path: &str) -> anyhow::Result<[(Request, Answer); 2]> {
    let mut written = write(server, path).await?;
    for _ in 0..TRIES {
        if written.1.status != 409 {
            break;
        }
        written = write(server, path).await?;
    }
    let read = Request::new("GET", path).accepting(media::PROTOBUF);
    let answer = sent(server, &read).await?;
    Ok([written, (read, answer)])
}

/// Sends a request with its body as protobuf, and reads the answer as protobuf: the JSON that it is.
///
/// # Errors
/// When there is no answer, or one that is not protobuf, or the body is of a kind that has no such form.
pub async fn exchanged(server: &Server, request: &Request) -> anyhow::Result<Answer> {
    let mut request = request.clone().accepting(media::PROTOBUF);
    if !request.body.is_null() {
        let body = protobuf::encode(&serde_json::to_vec(&request.body)?).context("writing protobuf")?;
        request = request.raw(media::PROTOBUF, body);
    }
    sent(server, &request).await
}

async fn write(server: &Server, path: &str) -> anyhow::Result<(Request, Answer)> {
    let found = server.send(&Request::new("GET", path)).await?;
    ensure!(found.is_success(), "{path} on {}: {found}", server.name);
    let body = protobuf::encode(&serde_json::to_vec(&found.body)?).context("writing protobuf")?;
    let request = Request::new("PUT", path).raw(media::PROTOBUF, body).accepting(media::PROTOBUF);
    let answer = sent(server, &request).await?;
    Ok((request, answer))
}

async fn sent(server: &Server, request: &Request) -> anyhow::Result<Answer> {
    let mut answer = server.send(request).await?;
    let inside = answer.body.get_mut("protobuf").map(Value::take);
    answer.body = inside.with_context(|| format!("{} answers no protobuf: {answer}", server.name))?;
    Ok(answer)
}
