//! Authorization. Authenticated users may do everything, as long as there is no RBAC; anonymous ones may read the server's
//! health and version.

use crate::request::identity::{ANONYMOUS, Identity, MASTERS};
use crate::request::path::{Route, Target, unescape};
use crate::request::query::Query;
use crate::status::{Named, Status};
use http::Method;
use http::request::Parts;

/// What everyone may see.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Refuses what `identity` may not do, before anything else is said about the request.
pub(crate) fn check(identity: &Identity, parts: &Parts, route: &Route, query: &Query) -> Result<(), Status> {
    let known = identity.user != ANONYMOUS || identity.groups.iter().any(|group| group == MASTERS);
    if known || matches!(route, Route::Malformed) {
        return Ok(());
    }
    match route {
        Route::Resource(target) => Err(resource_refused(identity, parts, target, query)),
        _ => {
            let path = unescape(parts.uri.path(), false).unwrap_or_default();
            let reads = parts.method == Method::GET || parts.method == Method::HEAD;
            if reads && PUBLIC.contains(&path.as_str()) {
                return Ok(());
            }
            let verb = parts.method.as_str().to_ascii_lowercase();
            Err(Status::path_forbidden(&format!("User {:?} cannot {verb} path {path:?}", identity.user)))
        }
    }
}

fn resource_refused(identity: &Identity, parts: &Parts, target: &Target, query: &Query) -> Status {
    let verb = match (&parts.method, &target.name) {
        (&Method::GET | &Method::HEAD, Some(_)) => "get",
        (&Method::GET | &Method::HEAD, None) if query.flag("watch") => "watch",
        (&Method::GET | &Method::HEAD, None) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, Some(_)) => "delete",
        (&Method::DELETE, None) => "deletecollection",
        _ => "",
    };
    let resource = match &target.subresource {
        Some(subresource) => format!("{}/{subresource}", target.plural),
        None => target.plural.clone(),
    };
    // A namespace is in itself.
    let namespace = target.namespace.as_deref().or(match target.plural.as_str() {
        "namespaces" => target.name.as_deref(),
        _ => None,
    });
    let place = match namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User {:?} cannot {verb} resource {resource:?} in API group {:?} {place}",
        identity.user, target.group
    );
    let named = Named { group: &target.group, kind: &target.plural };
    Status::forbidden(named, target.name.as_deref().unwrap_or_default(), &why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::path;
    use http::Request;

    fn refused(method: &str, uri: &str) -> Option<String> {
        let (parts, ()) = Request::builder().method(method).uri(uri).body(()).unwrap().into_parts();
        let route = path::route(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        assert!(check(&Identity::admin(), &parts, &route, &query).is_ok());
        assert!(check(&Identity::user("jane"), &parts, &route, &query).is_ok());
        check(&Identity::anonymous(), &parts, &route, &query).err().map(|status| status.message)
    }

    #[test]
    fn everyone_may_see_health_and_version_and_nothing_else() {
        for path in ["/healthz", "/livez", "/readyz", "/version", "/version/?x=1"] {
            assert_eq!(refused("GET", path), None);
        }
        for (method, path, why) in [
            ("GET", "/", r#"forbidden: User "system:anonymous" cannot get path "/""#),
            ("POST", "/version", r#"forbidden: User "system:anonymous" cannot post path "/version""#),
            ("GET", "/livez/ping", r#"forbidden: User "system:anonymous" cannot get path "/livez/ping""#),
            (
                "GET",
                "/apis/apps/v1/",
                r#"forbidden: User "system:anonymous" cannot get path "/apis/apps/v1/""#,
            ),
        ] {
            assert_eq!(refused(method, path).as_deref(), Some(why));
        }
    }

    #[test]
    fn a_refusal_names_the_verb_the_resource_and_the_place() {
        for (method, path, why) in [
            (
                "GET",
                "/api/v1/configmaps?watch=1",
                r#"configmaps is forbidden: User "system:anonymous" cannot watch resource "configmaps" in API group "" at the cluster scope"#,
            ),
            (
                "GET",
                "/apis/apps/v1/namespaces/n/deployments/d/scale",
                r#"deployments.apps "d" is forbidden: User "system:anonymous" cannot get resource "deployments/scale" in API group "apps" in the namespace "n""#,
            ),
            (
                "DELETE",
                "/api/v1/namespaces/default",
                r#"namespaces "default" is forbidden: User "system:anonymous" cannot delete resource "namespaces" in API group "" in the namespace "default""#,
            ),
        ] {
            assert_eq!(refused(method, path).as_deref(), Some(why));
        }
    }
}
