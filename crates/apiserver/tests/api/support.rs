//! A client that sends requests to a fresh API.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;
use windlass_apiserver::{Api, ApiBody, Config, Identity};

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

pub(crate) struct Client {
    pub(crate) api: Api,
}

pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }

    #[track_caller]
    pub(crate) fn refused(self, code: u16, message: &str) -> Value {
        assert_eq!((self.code, self.body["message"].as_str()), (code, Some(message)), "{}", self.body);
        self.body
    }
}

impl Client {
    pub(crate) fn new() -> Self {
        Self { api: Api::new(Config::default()) }
    }

    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: impl Into<Bytes>,
    ) -> Response<ApiBody> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .header("user-agent", "tester/1.0")
            .body(Full::new(body.into()))
            .unwrap();
        self.api.service(Identity::admin()).oneshot(request).await.unwrap()
    }

    pub(crate) async fn send(&self, method: &str, path: &str, media: &str, body: impl Into<Bytes>) -> Answer {
        let response = self.raw(method, path, media, body).await;
        let code = response.status().as_u16();
        let warnings = response
            .headers()
            .get_all("warning")
            .iter()
            .map(|value| value.to_str().unwrap().to_owned())
            .collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        Answer { code, body, warnings }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, JSON, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, JSON, body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, JSON, body.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, MERGE, body.to_string()).await
    }

    pub(crate) async fn apply(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, APPLY, body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, JSON, "").await
    }
}

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A definition with a status, a default and a bound.
pub(crate) fn widgets() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 3, "maximum": 10},
            "tags": {"type": "array", "items": {"type": "string"}},
        }},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    }});
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

pub(crate) fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// A GET with these headers.
pub(crate) async fn ask(client: &Client, path: &str, headers: &[(&str, &str)]) -> Response<ApiBody> {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::<Bytes>::default()).unwrap();
    client.api.service(Identity::admin()).oneshot(request).await.unwrap()
}

/// All of an answer.
pub(crate) async fn body(response: Response<ApiBody>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}
