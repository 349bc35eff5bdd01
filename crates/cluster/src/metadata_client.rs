//! Requests about objects of any kind of which only the metadata matters, as client-go's metadata client.

use http::header::{ACCEPT, CONTENT_TYPE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use windlass::{Key, Kind};

const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const PARTIAL_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// The page size of lists.
const PAGE: usize = 500;

#[derive(Deserialize)]
struct Partial {
    #[serde(default)]
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct PartialList {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default)]
    items: Vec<Partial>,
}

/// The HTTP status of an error that the server answered with.
pub(crate) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether the API says that the object does not exist; not if the kind does not exist.
pub(crate) fn is_absent(error: &kube::Error, name: &str) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

fn path(kind: &Kind, key: &Key) -> String {
    format!("{}/{}", kind.collection_path(key.namespace()), key.name())
}

/// The live metadata of an object.
pub(crate) async fn read(client: &Client, kind: &Kind, key: &Key) -> kube::Result<ObjectMeta> {
    let request = http::Request::get(path(kind, key)).header(ACCEPT, PARTIAL).body(Vec::new());
    let found: Partial = client.request(request.map_err(kube::Error::HttpError)?).await?;
    Ok(found.metadata)
}

/// The metadata of every object of a kind, in a namespace or everywhere.
pub(crate) async fn list(
    client: &Client,
    kind: &Kind,
    namespace: Option<&str>,
) -> kube::Result<Vec<ObjectMeta>> {
    let base = kind.collection_path(namespace);
    let mut all = Vec::new();
    let mut at = String::new();
    loop {
        let more = if at.is_empty() { String::new() } else { format!("&continue={at}") };
        let request = http::Request::get(format!("{base}?limit={PAGE}{more}")).header(ACCEPT, PARTIAL_LIST);
        let request = request.body(Vec::new()).map_err(kube::Error::HttpError)?;
        let page: PartialList = client.request(request).await?;
        all.extend(page.items.into_iter().map(|item| item.metadata));
        match page.metadata.continue_ {
            Some(next) if !next.is_empty() => at = escape(&next),
            _ => return Ok(all),
        }
    }
}

/// Whether a namespace has no objects of a kind.
pub(crate) async fn is_empty(client: &Client, kind: &Kind, namespace: &str) -> kube::Result<bool> {
    let request = http::Request::get(format!("{}?limit=1", kind.collection_path(Some(namespace))));
    let request = request.header(ACCEPT, PARTIAL_LIST).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let page: PartialList = client.request(request).await?;
    Ok(page.items.is_empty())
}

/// Replaces a subresource of an object.
pub(crate) async fn put(
    client: &Client,
    kind: &Kind,
    key: &Key,
    subresource: &str,
    object: &Value,
) -> kube::Result<()> {
    let request = http::Request::put(format!("{}/{subresource}", path(kind, key)))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(object.to_string().into_bytes());
    client.request_text(request.map_err(kube::Error::HttpError)?).await.map(drop)
}

/// A continue token is base64, some characters of which have a meaning in a query.
pub(crate) fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// Merge-patches an object as a field manager.
pub(crate) async fn merge(
    client: &Client,
    kind: &Kind,
    key: &Key,
    manager: &str,
    patch: &Value,
) -> kube::Result<()> {
    let request = http::Request::patch(format!("{}?fieldManager={manager}", path(kind, key)))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .header(ACCEPT, PARTIAL)
        .body(patch.to_string().into_bytes());
    let _: Partial = client.request(request.map_err(kube::Error::HttpError)?).await?;
    Ok(())
}

/// Deletes an object with these DeleteOptions.
pub(crate) async fn delete(client: &Client, kind: &Kind, key: &Key, options: &Value) -> kube::Result<()> {
    remove(client, path(kind, key), "application/json", options).await
}

/// Deletes the collection of a kind in a namespace with these DeleteOptions.
pub(crate) async fn delete_all(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    options: &Value,
) -> kube::Result<()> {
    // The deleted objects are of no interest, and may be many.
    remove(client, kind.collection_path(Some(namespace)), PARTIAL_LIST, options).await
}

async fn remove(client: &Client, path: String, accepted: &str, options: &Value) -> kube::Result<()> {
    let request = http::Request::delete(path)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, accepted)
        .body(options.to_string().into_bytes());
    client.request_text(request.map_err(kube::Error::HttpError)?).await.map(drop)
}
