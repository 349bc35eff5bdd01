//! POST to `serviceaccounts/NAME/token`: a token for a service account, perhaps bound to a pod, a node or a secret.

use crate::accounts::{Bound, Grant};
use crate::flow::{decode, managed, mutating_admission, prepare, validating_admission};
use crate::http::Answer;
use crate::kinds;
use crate::object::{child, text};
use crate::operation::Call;
use crate::operation::Operation;
use crate::request::media::content_type;
use crate::request::write_options::{Write, WriteOptions};
use crate::resource::Resource;
use crate::status::causes;
use crate::status::{Named, Status};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use windlass_clock::Timestamp;
use windlass_schema::{FieldError, Path};
use windlass_store::{Entry, Key};

const GROUP: &str = "authentication.k8s.io";

/// How long a token holds that was asked for without a time.
const USUAL_SECONDS: i64 = 3600;

/// What kubelets ask for: longer than an hour by seven seconds, which nobody else does.
const KUBELET_SECONDS: i64 = 3607;

/// How long a kubelet's token really holds, for clients that do not read it again.
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

/// The kind of the request: it has no resource of its own.
static REQUEST: LazyLock<Arc<Resource>> = LazyLock::new(|| {
    Arc::new(Resource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        kind: "TokenRequest".to_owned(),
        plural: "tokenrequests".to_owned(),
        namespaced: true,
        definition: "io.k8s.api.authentication.v1.TokenRequest".to_owned(),
        stored_as: format!("{GROUP}/v1"),
        pristine: true,
        rules: Some(kinds::rules(GROUP, "tokenrequests")),
        ..Resource::default()
    })
});

pub(crate) async fn create(call: &Call<'_>) -> Result<Answer, Status> {
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let media = content_type::body(&call.content_type)?;
    let on_account = call.operation(options.clone());
    let operation = Operation { resource: REQUEST.clone(), ..call.operation(options) };
    let decoded = decode::body(&REQUEST, &call.body, media)?;
    let mut request = decode::judge(&operation, decoded, &call.warnings)?;
    let spec = child(&mut request, "spec");
    if spec.get("expirationSeconds").is_none_or(Value::is_null) {
        spec.insert("expirationSeconds".to_owned(), json!(USUAL_SECONDS));
    }
    prepare::namespace(&operation, &mut request)?;
    managed::update(&operation, None, &mut request);
    mutating_admission::mutate(&on_account, &mut request, None).await?;
    grant(call, &on_account, &mut request).await?;
    Ok(Answer::json(201, &request))
}

/// Fills in the token, if it may be had.
async fn grant(call: &Call<'_>, on_account: &Operation<'_>, request: &mut Value) -> Result<(), Status> {
    let named = Named { group: GROUP, kind: "TokenRequest" };
    let (namespace, name) = (
        call.target.namespace.as_deref().unwrap_or_default(),
        call.target.name.as_deref().unwrap_or_default(),
    );
    let given = text(request, &["metadata", "name"]);
    if !given.is_empty() && given != name {
        let why = "must match the service account name if specified";
        let error = FieldError::invalid(&Path::new("metadata").child("name"), given, why);
        return Err(Status::invalid(named, name, causes(&[error])));
    }
    let account = stored(call, "serviceaccounts", namespace, name)?;
    let given = text(request, &["metadata", "uid"]);
    if !given.is_empty() && given != account.uid() {
        let why = format!(
            "the UID in the token request ({given}) does not match the UID of the service account ({})",
            account.uid()
        );
        return Err(Status::conflict(named, name, &why));
    }
    let now = call.api.clock.now();
    let metadata = child(request, "metadata");
    metadata.insert("name".to_owned(), json!(name));
    metadata.insert("uid".to_owned(), json!(account.uid()));
    metadata.insert("creationTimestamp".to_owned(), json!(crate::object::timestamp(now)));
    let spec = child(request, "spec");
    let accounts = call.api.accounts().map_err(Status::internal)?;
    let own = accounts.audiences();
    let audiences = match spec.get("audiences").and_then(Value::as_array) {
        Some(audiences) if !audiences.is_empty() => audiences.clone(),
        _ => own.iter().map(|audience| json!(audience)).collect(),
    };
    spec.insert("audiences".to_owned(), json!(audiences));
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(USUAL_SECONDS);
    let errors = validate(seconds);
    if !errors.is_empty() {
        return Err(Status::invalid(named, "", causes(&errors)));
    }
    validating_admission::validate_unstored(on_account, request).await?;
    let bound = match request["spec"].get("boundObjectRef") {
        None | Some(Value::Null) => Vec::new(),
        Some(reference) => bind(call, reference, namespace, name)?,
    };
    let for_us = audiences.iter().all(|audience| own.iter().any(|own| audience == own.as_str()));
    let extended = seconds == KUBELET_SECONDS && for_us && bound.iter().any(|bound| bound.kind == "pod");
    let grant = Grant {
        namespace,
        account: name,
        account_uid: account.uid(),
        audiences: &audiences,
        bound: &bound,
        seconds: if extended { EXTENDED_SECONDS } else { seconds },
        warn_after: extended.then_some(seconds),
    };
    let token = accounts.issue(&grant, now);
    let token = token.ok_or_else(|| Status::internal("failed to generate token"))?;
    let until = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    request["status"] = json!({"token": token, "expirationTimestamp": crate::object::timestamp(until)});
    Ok(())
}

fn validate(seconds: i64) -> Vec<FieldError> {
    let path = Path::new("spec").child("expirationSeconds");
    if seconds < 600 {
        return vec![FieldError::invalid(&path, seconds, "may not specify a duration less than 10 minutes")];
    }
    if seconds > 1 << 32 {
        return vec![FieldError::invalid(
            &path,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        )];
    }
    Vec::new()
}

/// What the token is to be bound to, which must be there.
fn bind(call: &Call<'_>, reference: &Value, namespace: &str, account: &str) -> Result<Vec<Bound>, Status> {
    let (version, kind) = (text(reference, &["apiVersion"]), text(reference, &["kind"]));
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let name = text(reference, &["name"]);
    let bound = |kind, entry: &Entry| Bound { kind, name: name.to_owned(), uid: entry.uid().to_owned() };
    let bound = match (group, kind) {
        ("", "Pod") => {
            let pod = stored(call, "pods", namespace, name)?;
            let value = pod.value();
            if text(&value, &["spec", "serviceAccountName"]) != account {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                )));
            }
            let mut all = vec![bound("pod", &pod)];
            let node = text(&value, &["spec", "nodeName"]);
            if !node.is_empty() {
                let found = call.api.store.get(&Key::new("nodes", "", node));
                let uid = found.map(|node| node.uid().to_owned()).unwrap_or_default();
                all.push(Bound { kind: "node", name: node.to_owned(), uid });
            }
            all
        }
        ("", "Node") => vec![bound("node", &*stored(call, "nodes", "", name)?)],
        ("", "Secret") => vec![bound("secret", &*stored(call, "secrets", namespace, name)?)],
        _ => {
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{short}, Kind={kind}"
            )));
        }
    };
    let given = text(reference, &["uid"]);
    if !given.is_empty() && bound.first().is_some_and(|bound| bound.uid != given) {
        let why = format!(
            "the UID in the bound object reference ({given}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        );
        return Err(Status::conflict(Named { group: "", kind }, name, &why));
    }
    Ok(bound)
}

fn stored(call: &Call<'_>, plural: &str, namespace: &str, name: &str) -> Result<Arc<Entry>, Status> {
    let found = call.api.store.get(&Key::new(plural, namespace, name));
    found.ok_or_else(|| Status::not_found(Named { group: "", kind: plural }, name))
}
