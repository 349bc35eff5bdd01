//! The ConfigMap `extension-apiserver-authentication`, from which aggregated API servers learn whom to believe.

use super::TlsIdentity;
use crate::api::Api;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Map, Value, json};
use tower::Service;

const MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
const NAME: &str = "extension-apiserver-authentication";

/// How often a write is tried that somebody else's came before.
const ATTEMPTS: usize = 5;

/// What the ConfigMap says.
fn data(identity: &TlsIdentity) -> Map<String, Value> {
    let mut data = Map::new();
    if let Some(ca) = &identity.client_ca {
        data.insert("client-ca-file".to_owned(), json!(ca));
    }
    if let Some(proxy) = &identity.request_header {
        data.insert("requestheader-client-ca-file".to_owned(), json!(proxy.client_ca));
        for (name, list) in [
            ("requestheader-allowed-names", &proxy.allowed_names),
            ("requestheader-extra-headers-prefix", &proxy.extra_headers_prefixes),
            ("requestheader-group-headers", &proxy.group_headers),
            ("requestheader-uid-headers", &proxy.uid_headers),
            ("requestheader-username-headers", &proxy.username_headers),
        ] {
            data.insert(name.to_owned(), json!(json!(list).to_string()));
        }
    }
    data
}

/// Writes it, as the API server itself.
pub(super) async fn publish(api: Api, identity: TlsIdentity) {
    let data = data(&identity);
    for _ in 0..ATTEMPTS {
        match write(&api, &data).await {
            Some(StatusCode::CONFLICT) => {}
            Some(code) if code.is_success() => return,
            other => {
                tracing::warn!("the ConfigMap {NAME} is not written: {other:?}");
                return;
            }
        }
    }
}

/// One attempt, and how it was answered.
async fn write(api: &Api, data: &Map<String, Value>) -> Option<StatusCode> {
    let place = format!("{MAPS}/{NAME}");
    let (code, mut map) = send(api, Method::GET, &place, None).await?;
    if code == StatusCode::NOT_FOUND {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": "kube-system"}, "data": data});
        return Some(send(api, Method::POST, MAPS, Some(&map)).await?.0);
    }
    if !code.is_success() || map["data"].as_object() == Some(data) {
        return Some(code);
    }
    map["data"] = Value::Object(data.clone());
    Some(send(api, Method::PUT, &place, Some(&map)).await?.0)
}

async fn send(api: &Api, method: Method, path: &str, body: Option<&Value>) -> Option<(StatusCode, Value)> {
    let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let mut service = api.service(api.0.own_identity.clone());
    let response = service.call(request.body(Full::new(body)).ok()?).await.ok()?;
    let code = response.status();
    let body = response.into_body().collect().await.ok()?.to_bytes();
    Some((code, serde_json::from_slice(&body).unwrap_or_default()))
}
