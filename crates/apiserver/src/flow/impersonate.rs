//! Impersonation: who may act as somebody else does so from here on.
//!
//! A requestor needs the right for everything that is named: user, groups, UID, extras. There are several modes, tried in turn.
//! The constrained ones want two rights: to be that identity (`impersonate:MODE`), and to do this while being it
//! (`impersonate-on:MODE:VERB`). The legacy mode wants one, `impersonate`, and gives all that the other may do.

use super::authorize::{Action, forbidden, permitted};
use crate::authorization::{Attributes, Authorizer, On, ResourceAttributes};
use crate::request::Identity;
use crate::request::identity::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, service_account_groups};
use crate::request::path::unescape;
use crate::status::Status;
use http::{HeaderMap, HeaderName};
use std::borrow::Cow;
use windlass_schema::field::{Path, aggregate};
use windlass_schema::names;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// The group of the kinds of identity that are no objects.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Where a service account's extra says on which node its pod runs.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// From how many on it is asked first whether all may be impersonated.
const MANY: usize = 4;

/// A way to act as somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A service account as the node that its pod runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

const MODES: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

/// Somebody whom a requestor acts as.
pub(crate) struct Impersonated {
    pub(crate) identity: Identity,
    /// The right that allows it, unless it is the one that gives all that the other may do.
    pub(crate) constraint: Option<String>,
}

/// Whom a request with these headers is from, if that is not `requestor` but somebody whom `requestor` may act as. Takes the
/// headers out.
pub(crate) async fn impersonate(
    authorizer: &Authorizer,
    requestor: &Identity,
    headers: &mut HeaderMap,
    action: &Action<'_>,
) -> Result<Option<Impersonated>, Status> {
    let Some(wanted) = take(headers)? else { return Ok(None) };
    let mut first = None;
    for mode in MODES.into_iter().filter(|mode| mode.is_for(&wanted, requestor)) {
        let attempt = Attempt { authorizer, requestor, mode };
        match attempt.check(&wanted, action).await {
            Ok(identity) => {
                let constraint = (mode != Mode::Legacy).then(|| format!("impersonate:{}", mode.name()));
                return Ok(Some(Impersonated { identity, constraint }));
            }
            Err(status) => first = first.or(Some(status)),
        }
    }
    Err(first.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

/// Who is named by the headers, which are taken out; none without any.
fn take(headers: &mut HeaderMap) -> Result<Option<Identity>, Status> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(None);
    }
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut wanted = Identity { user: one(USER), uid: one(UID), ..Identity::default() };
    wanted.groups = headers.get_all(GROUP).iter().map(text).collect();
    let mut named_extra = false;
    for (name, value) in headers.iter() {
        let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
        named_extra = true;
        let key = unescape(key, false).unwrap_or_else(|| key.to_owned());
        wanted.extra.entry(key).or_default().push(text(value));
    }
    if wanted.user.is_empty() {
        if wanted.uid.is_empty() && wanted.groups.is_empty() && !named_extra {
            return Ok(None);
        }
        return Err(Status::bad_request(format!(
            "requested {} without impersonating a user name",
            go(&wanted)
        )));
    }
    let ours: Vec<HeaderName> = headers
        .keys()
        .filter(|name| [USER, UID, GROUP].contains(&name.as_str()) || name.as_str().starts_with(EXTRA))
        .cloned()
        .collect();
    ours.iter().for_each(|name| drop(headers.remove(name)));
    Ok(Some(wanted))
}

/// As Go prints a value of its type for users.
fn go(wanted: &Identity) -> String {
    let list = |list: &[String]| list.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
    let strings = |all: &[String]| match all {
        [] => "[]string(nil)".to_owned(),
        all => format!("[]string{{{}}}", list(all)),
    };
    let extra = match wanted.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let pairs = wanted.extra.iter().map(|(key, values)| format!("{key:?}:{}", strings(values)));
            format!("map[string][]string{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{}, Extra:{extra}}}",
        wanted.user,
        wanted.uid,
        strings(&wanted.groups)
    )
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn verb(self) -> String {
        match self {
            Self::Legacy => "impersonate".to_owned(),
            mode => format!("impersonate:{}", mode.name()),
        }
    }

    fn is_for(self, wanted: &Identity, requestor: &Identity) -> bool {
        let only_a_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (node, account) = (node_name(&wanted.user), service_account(&wanted.user));
        match self {
            Self::AssociatedNode => {
                let runs_on = match requestor.extra.get(NODE_NAME).map(Vec::as_slice) {
                    Some([name]) if service_account(&requestor.user).is_some() => Some(name.as_str()),
                    _ => None,
                };
                only_a_name && node.is_some() && node == runs_on
            }
            Self::ArbitraryNode => only_a_name && node.is_some(),
            Self::ServiceAccount => only_a_name && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }
}

/// One requestor who tries one mode.
struct Attempt<'a> {
    authorizer: &'a Authorizer,
    requestor: &'a Identity,
    mode: Mode,
}

impl Attempt<'_> {
    async fn check(&self, wanted: &Identity, action: &Action<'_>) -> Result<Identity, Status> {
        let is_constrained = self.mode != Mode::Legacy;
        if is_constrained {
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), action.verb());
            let requestor = self.shown();
            permitted(self.authorizer, &Attributes { verb: &verb, ..action.by(&requestor) }).await?;
        }
        let mut actual = wanted.clone();
        let core = if is_constrained { AUTHENTICATION } else { "" };
        match (node_name(&wanted.user).filter(|_| is_constrained), service_account(&wanted.user)) {
            (Some(node), _) => {
                actual.groups = vec!["system:nodes".to_owned()];
                // Whichever node it is: the right is that of all service accounts on their own nodes.
                let name = if self.mode == Mode::AssociatedNode { "*" } else { node };
                self.may_be(core, "nodes", "", "", name).await?;
            }
            (None, Some((namespace, name))) => {
                if wanted.groups.is_empty() {
                    actual.groups = service_account_groups(namespace).into();
                }
                self.may_be(core, "serviceaccounts", "", namespace, name).await?;
            }
            (None, None) => self.may_be(core, "users", "", "", &wanted.user).await?,
        }
        if !wanted.uid.is_empty() {
            self.may_be(AUTHENTICATION, "uids", "", "", &wanted.uid).await?;
        }
        self.may_be_in(core, &wanted.groups, is_constrained).await?;
        self.may_have(wanted, is_constrained).await?;
        let has = |group: &str| actual.groups.iter().any(|known| known == group);
        let everybody = match actual.user.as_str() {
            ANONYMOUS => Some(UNAUTHENTICATED),
            _ if has(UNAUTHENTICATED) => None,
            _ => Some(AUTHENTICATED),
        };
        if let Some(group) = everybody.filter(|group| !has(group)) {
            actual.groups.push(group.to_owned());
        }
        Ok(actual)
    }

    async fn may_be_in(&self, core: &str, groups: &[String], is_constrained: bool) -> Result<(), Status> {
        if is_constrained {
            if groups.iter().any(String::is_empty) {
                return Err(self.refused(
                    core,
                    "groups",
                    "",
                    "impersonating the empty string group is not allowed",
                ));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.refused(core, "groups", MASTERS, why));
            }
            if groups.len() >= MANY && self.may_be(core, "groups", "", "", "*").await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.may_be(core, "groups", "", "", group).await?;
        }
        Ok(())
    }

    async fn may_have(&self, wanted: &Identity, is_constrained: bool) -> Result<(), Status> {
        let extra = &wanted.extra;
        if is_constrained {
            for (key, values) in extra {
                if let Some(why) = wrong_extra(key, values) {
                    return Err(self.refused(AUTHENTICATION, "userextras", "", &why));
                }
            }
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.may_be(AUTHENTICATION, "userextras", "*", "", "*").await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.may_be(AUTHENTICATION, "userextras", key, "", value).await?;
            }
        }
        Ok(())
    }

    async fn may_be(
        &self,
        group: &str,
        resource: &str,
        subresource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Status> {
        let on = ResourceAttributes {
            group,
            version: "v1",
            resource,
            subresource,
            namespace,
            name,
            ..ResourceAttributes::default()
        };
        let (verb, requestor) = (self.mode.verb(), self.shown());
        let asked = Attributes { identity: &requestor, verb: &verb, on: On::Resource(on) };
        permitted(self.authorizer, &asked).await
    }

    fn refused(&self, group: &str, resource: &str, name: &str, why: &str) -> Status {
        let on = ResourceAttributes { group, version: "v1", resource, name, ..ResourceAttributes::default() };
        let verb = self.mode.verb();
        forbidden(&Attributes { identity: self.requestor, verb: &verb, on: On::Resource(on) }, why)
    }

    /// The requestor as authorizers see it: of a service account on its own node, only which extras it has.
    fn shown(&self) -> Cow<'_, Identity> {
        if self.mode != Mode::AssociatedNode {
            return Cow::Borrowed(self.requestor);
        }
        let keys = self.requestor.extra.keys().cloned().collect();
        let extra = [("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)].into();
        Cow::Owned(Identity { extra, ..self.requestor.clone() })
    }
}

/// Why a constrained mode takes no such extra.
fn wrong_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let wrong = names::domain_prefixed_path(&Path::new("extra").child("key"), key);
    if !wrong.is_empty() {
        return Some(format!("impersonating an invalid key in extra is not allowed: {}", aggregate(&wrong)));
    }
    let empty = values.iter().any(String::is_empty);
    empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| names::subdomain(name).is_empty())
}

/// The namespace and the name of a service account.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let valid = names::label(namespace).is_empty() && names::subdomain(name).is_empty();
    valid.then_some((namespace, name))
}
