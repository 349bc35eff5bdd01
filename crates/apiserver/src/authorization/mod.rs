//! Authorization: may somebody do something? Authorizers are asked in turn until one allows or denies it.

mod attributes;
mod config;
mod node;
mod rbac;
mod webhook;

pub use config::AuthorizationConfiguration;
pub use webhook::WebhookAuthorizer;

pub(crate) use attributes::{Attributes, On, ResourceAttributes};
pub(crate) use node::{MIRROR, NODE_LEASES, is_mirror, node_of, pod_names};
pub(crate) use rbac::{GROUP, Grant, PolicyRule, Rbac, RoleRef, Unresolved};

use crate::request::Identity;
use crate::request::identity::MASTERS;
use node::NodeAuthorizer;
use rbac::Source;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use windlass_schema::field::aggregate;
use windlass_store::Store;

/// An authorizer that a server asks.
#[derive(Debug, Clone)]
pub enum AuthorizationMode {
    /// Everybody may do everything.
    AlwaysAllow,
    /// Nobody may do anything.
    AlwaysDeny,
    /// Kubelets may do what they need for their own node and its pods.
    Node,
    /// The stored roles and bindings decide.
    Rbac,
    /// Another server is asked.
    Webhook(WebhookAuthorizer),
}

/// What the authorizers of a server say.
#[derive(Debug, Clone)]
pub(crate) enum Decision {
    Allow(AllowedBy),
    Refuse(Refusal),
}

/// Why something is not allowed. What there is nothing to say about is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusal {
    /// Whether somebody forbids it, so that nobody else was asked. Otherwise nobody allows it.
    pub(crate) denied: bool,
    pub(crate) reason: String,
    /// What failed on the way.
    pub(crate) error: String,
}

/// Who or what allows an action.
#[derive(Debug, Clone)]
pub(crate) enum AllowedBy {
    /// Members of `system:masters` may do everything.
    Masters,
    Always,
    Node,
    Rbac(Source),
    /// For the reason that it gives.
    Webhook(String),
}

/// What somebody may do in a namespace, as far as it can be listed.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) rules: Vec<PolicyRule>,
    /// Whether some authorizers cannot say.
    pub(crate) incomplete: bool,
    /// What went wrong.
    pub(crate) errors: Vec<String>,
}

/// The authorizers of a server.
pub(crate) struct Authorizer {
    modes: Vec<AuthorizationMode>,
    pub(crate) rbac: Rbac,
    nodes: NodeAuthorizer,
}

impl Authorizer {
    pub(crate) fn new(modes: Vec<AuthorizationMode>, store: Arc<Store>) -> Self {
        Self { modes, nodes: NodeAuthorizer::new(store.clone()), rbac: Rbac::new(store) }
    }

    pub(crate) async fn authorize(&self, asked: &Attributes<'_>) -> Decision {
        if is_privileged(asked.identity) {
            return Decision::Allow(AllowedBy::Masters);
        }
        let (mut reasons, mut errors) = (Vec::new(), Vec::new());
        for mode in &self.modes {
            match mode {
                AuthorizationMode::AlwaysAllow => return Decision::Allow(AllowedBy::Always),
                AuthorizationMode::AlwaysDeny => reasons.push("Everything is forbidden.".to_owned()),
                AuthorizationMode::Node => match self.nodes.authorize(asked) {
                    Some(Ok(())) => return Decision::Allow(AllowedBy::Node),
                    Some(Err(why)) if !why.is_empty() => reasons.push(why),
                    _ => {}
                },
                AuthorizationMode::Rbac => match self.rbac.allows(asked) {
                    Ok(source) => return Decision::Allow(AllowedBy::Rbac(source)),
                    Err(missing) if missing.is_empty() => {}
                    Err(missing) => reasons.push(format!("RBAC: {}", aggregate(&missing))),
                },
                AuthorizationMode::Webhook(webhook) => match webhook.authorize(asked).await {
                    Ok(reason) => return Decision::Allow(AllowedBy::Webhook(reason)),
                    Err(refusal) if refusal.denied => return Decision::Refuse(refusal),
                    Err(Refusal { reason, error, .. }) => {
                        reasons.extend((!reason.is_empty()).then_some(reason));
                        errors.extend((!error.is_empty()).then_some(error));
                    }
                },
            }
        }
        Decision::Refuse(Refusal { denied: false, reason: reasons.join("\n"), error: aggregate(&errors) })
    }

    /// What `identity` may do in `namespace`.
    pub(crate) fn rules_for(&self, identity: &Identity, namespace: &str) -> Rules {
        let mut found = Rules::default();
        for mode in &self.modes {
            match mode {
                AuthorizationMode::AlwaysAllow => found.rules.extend(PolicyRule::full_authority()),
                AuthorizationMode::AlwaysDeny => {}
                AuthorizationMode::Node if node_of(identity).is_some() => {
                    found.incomplete = true;
                    found.errors.push("node authorizer does not support user rule resolution".to_owned());
                }
                AuthorizationMode::Node => {}
                AuthorizationMode::Webhook(_) => {
                    found.incomplete = true;
                    found.errors.push("webhook authorizer does not support user rule resolution".to_owned());
                }
                AuthorizationMode::Rbac => {
                    let (rules, missing) = self.rbac.rules_for(identity, namespace);
                    found.rules.extend(rules);
                    found.errors.extend(missing.iter().map(ToString::to_string));
                }
            }
        }
        found
    }

    pub(crate) async fn allows(&self, asked: &Attributes<'_>) -> bool {
        matches!(self.authorize(asked).await, Decision::Allow(_))
    }
}

/// Whether `identity` may do everything, whatever the authorizers say.
pub(crate) fn is_privileged(identity: &Identity) -> bool {
    identity.groups.iter().any(|group| group == MASTERS)
}

impl fmt::Display for AllowedBy {
    /// The reason that a review gives.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Masters | Self::Always | Self::Node => Ok(()),
            Self::Rbac(source) => write!(f, "RBAC: allowed by {source}"),
            Self::Webhook(reason) => f.write_str(reason),
        }
    }
}

impl FromStr for AuthorizationMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "AlwaysAllow" => Ok(Self::AlwaysAllow),
            "AlwaysDeny" => Ok(Self::AlwaysDeny),
            "Node" => Ok(Self::Node),
            "RBAC" => Ok(Self::Rbac),
            "Webhook" => Err("the mode Webhook needs to be told where the webhook is".to_owned()),
            "ABAC" => {
                Err("the mode ABAC is not served; RBAC says the same with objects of the API".to_owned())
            }
            _ => Err(format!(
                "there is no authorization mode {text:?}; there are AlwaysAllow, AlwaysDeny, Node and RBAC"
            )),
        }
    }
}
