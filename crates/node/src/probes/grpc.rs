//! The question of gRPC's health protocol (`grpc.health.v1.Health/Check`), asked over any stream.
//!
//! The two messages have one field each, so they are written and read here rather than by a library.

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

/// What is read of an answer: it is a few bytes.
const LONGEST: usize = 4096;
/// The names of `ServingStatus`, by number.
const NAMES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
/// gRPC's code for a method that is not there.
const UNIMPLEMENTED: &str = "12";

/// Asks whether a service serves; the empty name asks about the server as a whole. An error says what was found, as a kubelet
/// says it.
pub(super) async fn check(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    authority: &str,
    service: &str,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("error: health rpc probe failed: {error}");
    let request = http::Request::post(format!("http://{authority}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.36")
        .body(Full::new(framed(&asked(service))))
        .map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .map_err(|error| failed(&error))?;
    let asking = async {
        let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
        let (head, mut body) = answer.into_parts();
        let (mut message, mut trailers) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| failed(&error))?;
            match frame.into_data() {
                Ok(data) if message.len() + data.len() <= LONGEST => message.extend_from_slice(&data),
                Ok(_) => return Err(failed(&"the answer is too long")),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        // An answer without a message has its status among the headers.
        let said = |name: &str| {
            let found =
                trailers.as_ref().and_then(|trailers| trailers.get(name)).or_else(|| head.headers.get(name));
            found.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let why = said("grpc-message").unwrap_or_default();
        match said("grpc-status").as_deref() {
            Some("0") => judge(&message),
            Some(UNIMPLEMENTED) => Err(format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {why}"
            )),
            Some(code) => Err(failed(&format!("rpc error: code = {code} desc = {why}"))),
            None => Err(failed(&format!("no gRPC answers: HTTP status {}", head.status.as_u16()))),
        }
    };
    tokio::pin!(asking);
    tokio::select! {
        found = &mut asking => found,
        _ = connection => asking.await,
    }
}

/// `HealthCheckRequest { service }`: field 1, a text.
fn asked(service: &str) -> Vec<u8> {
    if service.is_empty() {
        return Vec::new();
    }
    let mut message = vec![0x0a];
    let mut length = service.len();
    while length >= 0x80 {
        message.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
        length >>= 7;
    }
    message.push(u8::try_from(length).unwrap_or_default());
    message.extend_from_slice(service.as_bytes());
    message
}

/// A message as it is sent: not compressed, and how long it is.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), message].concat().into()
}

/// `HealthCheckResponse { status }`: field 1, a number; what is not written is 0.
fn judge(mut answer: &[u8]) -> Result<(), String> {
    const WRONG: &str = "error: health rpc probe failed: the answer is not understood";
    if answer.len() < 5 || answer.get_u8() != 0 {
        return Err(WRONG.to_owned());
    }
    let length = answer.get_u32() as usize;
    let status = match (length, answer.get(..length).unwrap_or_default()) {
        (0, _) => 0,
        (_, [0x08, status, ..]) if *status < 0x80 => *status,
        _ => return Err(WRONG.to_owned()),
    };
    match NAMES.get(usize::from(status)) {
        Some(&"SERVING") => Ok(()),
        Some(name) => Err(format!("service unhealthy (responded with {name:?})")),
        None => Err(format!("service unhealthy (responded with \"{status}\")")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::StreamBody;
    use hyper::body::{Frame, Incoming};
    use std::convert::Infallible;

    /// Answers as a server does whose service `up` serves and whose service `down` does not.
    async fn served(
        request: http::Request<Incoming>,
    ) -> Result<http::Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let (status, message) = match (path.as_str(), &body[..]) {
            ("/grpc.health.v1.Health/Check", [0, 0, 0, 0, 4, 0x0a, 2, b'u', b'p']) => ("0", vec![0x08, 1]),
            ("/grpc.health.v1.Health/Check", [0, 0, 0, 0, 6, 0x0a, 4, ..]) => ("0", vec![0x08, 2]),
            ("/grpc.health.v1.Health/Check", [0, 0, 0, 0, 0]) => ("0", vec![]),
            _ => ("12", vec![]),
        };
        let trailers =
            http::HeaderMap::from_iter([("grpc-status".parse().unwrap(), status.parse().unwrap())]);
        let frames = [Ok(Frame::data(framed(&message))), Ok(Frame::trailers(trailers))];
        let answer = http::Response::builder().header("content-type", "application/grpc");
        Ok(answer.body(StreamBody::new(futures::stream::iter(frames))).unwrap())
    }

    async fn ask(service: &str) -> Result<(), String> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let serving = server.serve_connection(TokioIo::new(theirs), hyper::service::service_fn(served));
        let serving = tokio::spawn(async move { drop(serving.await) });
        let found = check(ours, "10.244.0.5:50051", service).await;
        serving.abort();
        found
    }

    #[tokio::test]
    async fn a_service_says_whether_it_serves() {
        assert_eq!(ask("up").await, Ok(()));
        assert_eq!(ask("down").await, Err("service unhealthy (responded with \"NOT_SERVING\")".to_owned()));
        assert_eq!(ask("").await, Err("service unhealthy (responded with \"UNKNOWN\")".to_owned()));
        let none = ask(&"long".repeat(100)).await.unwrap_err();
        assert!(none.contains("does not implement the grpc health protocol"), "{none}");
    }

    #[tokio::test]
    async fn what_is_no_grpc_is_said_to_be_none() {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        drop(theirs);
        assert!(check(ours, "a:1", "").await.unwrap_err().contains("health rpc probe failed"));
        for wrong in [&b""[..], &[1, 0, 0, 0, 0], &[0, 0, 0, 0, 9, 8], &[0, 255, 255, 255, 255, 8]] {
            assert!(judge(wrong).is_err(), "{wrong:?}");
        }
    }
}
