//! Who asks. In-process clients carry their identity; over TCP everyone is the one that the listener was given.

/// Who sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user in no group but that of all who are known.
    pub fn user(name: impl Into<String>) -> Self {
        Self { user: name.into(), groups: vec!["system:authenticated".to_owned()] }
    }

    /// The administrator, who may do everything.
    pub fn admin() -> Self {
        Self {
            user: "kubernetes-admin".to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        }
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
        }
    }
}
