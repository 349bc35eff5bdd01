//! Who sends a request.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The group of all who are known.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// The group of all who are not.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The group of those who may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// How the names of kubelets begin, before that of their node.
pub(crate) const NODE_PREFIX: &str = "system:node:";

/// The group of kubelets.
pub(crate) const NODES: &str = "system:nodes";

/// Where a user's extra says which token or certificate was shown.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The user that nobody has to prove to be.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// Who sends a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// What tells this user from a later one of the same name; often empty.
    pub uid: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
    /// What else is known, such as the pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A user in no group but that of all who are known.
    pub fn user(name: impl Into<String>) -> Self {
        Self { user: name.into(), groups: vec![AUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// A user who may do everything, being in `system:masters`.
    pub fn privileged(name: impl Into<String>) -> Self {
        Self::user(name).in_groups([MASTERS.to_owned()])
    }

    /// The administrator, who may do everything.
    pub fn admin() -> Self {
        Self::privileged("kubernetes-admin")
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::user(format!("system:serviceaccount:{namespace}:{name}"))
            .in_groups(service_account_groups(namespace))
    }

    /// A node's kubelet.
    pub fn node(name: &str) -> Self {
        Self::user(format!("{NODE_PREFIX}{name}")).in_groups([NODES.to_owned()])
    }

    /// The API server itself, for what it writes unasked.
    pub(crate) fn api_server() -> Self {
        Self { user: "system:apiserver".to_owned(), groups: vec![MASTERS.to_owned()], ..Self::default() }
    }

    /// Someone who has not said who they are.
    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { user: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// The same user, in these groups too; they come first.
    pub(crate) fn in_groups(mut self, groups: impl IntoIterator<Item = String>) -> Self {
        self.groups.splice(0..0, groups);
        self
    }
}

/// The groups that the service accounts of a namespace are in.
pub(crate) fn service_account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

impl Identity {
    /// As reviews show it.
    pub(crate) fn to_value(&self) -> Value {
        let mut user = json!({"username": self.user, "groups": self.groups});
        if !self.uid.is_empty() {
            user["uid"] = json!(self.uid);
        }
        if !self.extra.is_empty() {
            user["extra"] = json!(self.extra);
        }
        user
    }
}
