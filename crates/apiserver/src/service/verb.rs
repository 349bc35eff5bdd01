//! The verb of a request: what its method means on its path.

use crate::request::path::Target;
use crate::request::query::Query;
use crate::resource::Resource;
use crate::status::Status;
use http::Method;

/// What a method means on a path; refuses what the resource does not have.
pub(super) fn verb(
    resource: &Resource,
    target: &Target,
    method: &Method,
    query: &Query,
) -> Result<&'static str, Status> {
    let named = target.name.is_some();
    let verb = match (method, named) {
        (method, _) if target.watch && method != Method::GET => return Err(Status::method_not_allowed()),
        (&Method::GET, true) => "get",
        (&Method::GET, false) if query.flag("watch") => "watch",
        (&Method::GET, false) => "list",
        (&Method::POST, false) => "create",
        (&Method::POST, true) if target.subresource.is_some() => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => return Err(Status::method_not_allowed()),
    };
    let verbs = match &target.subresource {
        None => &resource.verbs,
        Some(name) => match resource.subresources.iter().find(|subresource| subresource.name == *name) {
            Some(subresource) => &subresource.verbs,
            None if resource.custom => {
                return Err(Status::not_found(resource.named(), target.name.as_deref().unwrap_or_default()));
            }
            None => return Err(Status::no_such_resource()),
        },
    };
    if !is_answered(resource, target.subresource.as_deref()) {
        return Err(Status::method_not_allowed());
    }
    let everywhere = resource.namespaced && target.namespace.is_none();
    let known = verbs.iter().any(|known| known == verb);
    if !known || (everywhere && !matches!(verb, "list" | "watch")) {
        return Err(Status::method_not_allowed());
    }
    Ok(verb)
}

/// Is there an answer to it here? Those that lead to a node were found before.
fn is_answered(resource: &Resource, subresource: Option<&str>) -> bool {
    Virtual::of(resource, subresource).is_some() || is_object(resource, subresource)
}

fn is_object(resource: &Resource, subresource: Option<&str>) -> bool {
    match subresource {
        None => resource.is_stored(),
        Some(name) => {
            resource.custom
                || matches!(
                    name,
                    "scale" | "status" | "finalize" | "approval" | "ephemeralcontainers" | "resize"
                )
        }
    }
}

/// A kind that is posted to be answered, and not stored.
pub(super) enum Virtual {
    Eviction,
    Binding,
    TokenRequest,
    SelfSubjectReview,
    TokenReview,
    AccessReview,
}

impl Virtual {
    pub(super) fn of(resource: &Resource, subresource: Option<&str>) -> Option<Self> {
        match (resource.group.as_str(), resource.plural.as_str(), subresource) {
            ("", "pods", Some("eviction")) => Some(Self::Eviction),
            ("", "pods", Some("binding")) | ("", "bindings", None) => Some(Self::Binding),
            ("", "serviceaccounts", Some("token")) => Some(Self::TokenRequest),
            ("authentication.k8s.io", "selfsubjectreviews", None) => Some(Self::SelfSubjectReview),
            ("authentication.k8s.io", "tokenreviews", None) => Some(Self::TokenReview),
            ("authorization.k8s.io", _, None) => Some(Self::AccessReview),
            _ => None,
        }
    }
}

/// What is below the old path of watches, as the parameters of a watch: a name is a selector.
pub(super) fn named_by_path(mut target: Target, mut query: Query) -> Result<(Target, Query), Status> {
    if target.watch {
        if let Some(name) = target.name.take() {
            let wanted = format!("metadata.name={name}");
            match query.get("fieldSelector").unwrap_or_default() {
                "" => query.push("fieldSelector", &wanted),
                given if given == wanted => {}
                _ => {
                    let why = "fieldSelector metadata.name doesn't match requested name";
                    return Err(Status::bad_request(why));
                }
            }
        }
        if !query.flag("watch") {
            query.push("watch", "true");
        }
    }
    Ok((target, query))
}
