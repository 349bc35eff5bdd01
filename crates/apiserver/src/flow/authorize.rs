//! Authorization: what a request wants to do, and whether its sender may.

use crate::audit::AuditedRequest;
use crate::authorization::{Attributes, Authorizer, Decision, On, Refusal, ResourceAttributes};
use crate::request::identity::Identity;
use crate::request::path::{Route, Target, unescape};
use crate::request::query::Query;
use crate::status::{Named, Status};
use http::Method;
use http::request::Parts;
use std::borrow::Cow;
use windlass_schema::names;

/// What a request wants to do, whoever sends it.
pub(crate) struct Action<'a> {
    verb: Cow<'static, str>,
    on: ActionOn<'a>,
}

enum ActionOn<'a> {
    /// And the one name that it selects.
    Resource {
        target: &'a Target,
        selected: Option<String>,
        fields: &'a str,
        labels: &'a str,
    },
    Path(String),
}

impl<'a> Action<'a> {
    /// None if its path cannot be read.
    pub(crate) fn of(parts: &Parts, route: &'a Route, query: &'a Query) -> Option<Self> {
        match route {
            Route::Malformed => None,
            Route::Resource(target) => {
                let verb = verb(&parts.method, target, query);
                // Watches by their own path take selectors in some places only, and deletions select no name.
                let selects = ["list", "watch", "deletecollection"].contains(&verb) && !target.watch;
                let selector = |name: &str| match selects {
                    true => query.get(name).unwrap_or_default(),
                    false => "",
                };
                let (fields, labels) = (selector("fieldSelector"), selector("labelSelector"));
                let selected = selected_name(fields).filter(|_| verb != "deletecollection");
                Some(Self { verb: verb.into(), on: ActionOn::Resource { target, selected, fields, labels } })
            }
            Route::Other(_) => {
                let path = unescape(parts.uri.path(), false).unwrap_or_default();
                Some(Self {
                    verb: parts.method.as_str().to_ascii_lowercase().into(),
                    on: ActionOn::Path(path),
                })
            }
        }
    }

    pub(crate) fn verb(&self) -> &str {
        &self.verb
    }

    /// As `identity` wants to do it.
    pub(crate) fn by<'b>(&'b self, identity: &'b Identity) -> Attributes<'b> {
        let on = match &self.on {
            ActionOn::Path(path) => On::Path(path),
            ActionOn::Resource { target, selected, fields, labels } => On::Resource(ResourceAttributes {
                group: &target.group,
                version: &target.version,
                resource: &target.plural,
                subresource: target.subresource.as_deref().unwrap_or_default(),
                namespace: namespace(target),
                name: target.name.as_deref().or(selected.as_deref()).unwrap_or_default(),
                field_selector: fields,
                label_selector: labels,
            }),
        };
        Attributes { identity, verb: &self.verb, on }
    }
}

/// Why a request goes no further.
pub(crate) enum NotPermitted {
    Forbidden(Status),
    /// An authorizer failed, and no other allows it.
    Failed(String),
}

/// Refuses an action that the authorizers do not allow.
pub(crate) async fn permitted(authorizer: &Authorizer, asked: &Attributes<'_>) -> Result<(), Status> {
    match authorizer.authorize(asked).await {
        Decision::Allow(_) => Ok(()),
        Decision::Refuse(refusal) => Err(forbidden(asked, &refusal.reason)),
    }
}

/// The same for a request as a whole, and tells the audit what was decided.
pub(crate) async fn permitted_and_audited(
    authorizer: &Authorizer,
    asked: &Attributes<'_>,
    audited: Option<&AuditedRequest>,
) -> Result<(), NotPermitted> {
    match authorizer.authorize(asked).await {
        Decision::Allow(by) => {
            if let Some(audited) = audited {
                audited.decided(true, &by.to_string());
            }
            Ok(())
        }
        Decision::Refuse(Refusal { error, .. }) if !error.is_empty() => {
            if let Some(audited) = audited {
                audited.failed_to_decide();
            }
            Err(NotPermitted::Failed(error))
        }
        Decision::Refuse(Refusal { reason, .. }) => {
            if let Some(audited) = audited {
                audited.decided(false, &reason);
            }
            Err(NotPermitted::Forbidden(forbidden(asked, &reason)))
        }
    }
}

/// 403 for an action, with more of a reason if there is one.
pub(crate) fn forbidden(asked: &Attributes<'_>, reason: &str) -> Status {
    let Attributes { identity, verb, on } = asked;
    let user = &identity.user;
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let on = match on {
        On::Path(path) => {
            return Status::path_forbidden(&format!("User {user:?} cannot {verb} path {path:?}{because}"));
        }
        On::Resource(on) => on,
    };
    let resource = match on.subresource {
        "" => on.resource.to_owned(),
        subresource => format!("{}/{subresource}", on.resource),
    };
    let place = match on.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let group = on.group;
    let why =
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}{because}");
    Status::forbidden(Named { group, kind: on.resource }, on.name, &why)
}

/// What a method means to an authorizer, whether or not the resource has that verb.
fn verb(method: &Method, target: &Target, query: &Query) -> &'static str {
    match (method, &target.name) {
        (&Method::GET | &Method::HEAD, _) if target.watch => "watch",
        (&Method::GET | &Method::HEAD, Some(_)) => "get",
        (&Method::GET | &Method::HEAD, None) if query.flag("watch") => "watch",
        (&Method::GET | &Method::HEAD, None) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, Some(_)) => "delete",
        (&Method::DELETE, None) => "deletecollection",
        _ => "",
    }
}

/// A namespace is in itself.
fn namespace(target: &Target) -> &str {
    let own = || target.name.as_deref().filter(|_| target.plural == "namespaces");
    target.namespace.as_deref().or_else(own).unwrap_or_default()
}

/// The one name that a field selector allows, so that rights to single objects count for lists and watches of them.
fn selected_name(selector: &str) -> Option<String> {
    let exact = selector.split(',').find_map(|term| {
        let name = term.strip_prefix("metadata.name")?;
        name.strip_prefix("==").or_else(|| name.strip_prefix('='))
    })?;
    names::path_segment(exact, false).is_empty().then(|| exact.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Api, Config};
    use crate::request::path;
    use http::Request;

    async fn refused(identity: &Identity, method: &str, uri: &str) -> Option<String> {
        let api = Api::new(Config::default());
        let (parts, ()) = Request::builder().method(method).uri(uri).body(()).unwrap().into_parts();
        let route = path::route(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let action = Action::of(&parts, &route, &query).unwrap();
        permitted(&api.0.authorizer, &action.by(identity)).await.err().map(|status| status.message)
    }

    #[tokio::test]
    async fn members_of_system_masters_may_do_everything_and_others_what_the_first_roles_allow() {
        let (admin, jane, nobody) = (Identity::admin(), Identity::user("jane"), Identity::anonymous());
        for path in ["/healthz", "/livez", "/readyz", "/version", "/version/?x=1"] {
            for identity in [&admin, &jane, &nobody] {
                assert_eq!(refused(identity, "GET", path).await, None, "{path}");
            }
        }
        for path in ["/", "/metrics", "/apis/apps/v1/", "/api/v1/secrets"] {
            assert_eq!(refused(&admin, "GET", path).await, None);
            assert!(refused(&nobody, "GET", path).await.is_some());
        }
        assert_eq!(refused(&jane, "GET", "/apis/apps/v1").await, None, "everybody who is known may discover");
        assert_eq!(
            refused(&jane, "POST", "/version").await.as_deref(),
            Some(r#"forbidden: User "jane" cannot post path "/version""#)
        );
    }

    #[tokio::test]
    async fn a_refusal_names_the_verb_the_resource_and_the_place() {
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
            (
                "GET",
                "/api/v1/namespaces/n/secrets?fieldSelector=metadata.name%3Da",
                r#"secrets "a" is forbidden: User "system:anonymous" cannot list resource "secrets" in API group "" in the namespace "n""#,
            ),
        ] {
            assert_eq!(refused(&Identity::anonymous(), method, path).await.as_deref(), Some(why));
        }
    }
}
