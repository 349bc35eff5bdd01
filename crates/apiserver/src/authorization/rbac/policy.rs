//! The roles and bindings of a cluster, indexed by those whom they are about.

use super::rule::PolicyRule;
use crate::authorization::Attributes;
use crate::request::Identity;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What binds whom to what; kept in sync with the stored objects by `super::Rbac`.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// By namespace, empty for ClusterRoles, and name.
    roles: HashMap<Box<str>, HashMap<Box<str>, Rules>>,
    /// By namespace, empty for ClusterRoleBindings, and name.
    bindings: HashMap<(Box<str>, Box<str>), Arc<Binding>>,
    users: HashMap<Box<str>, Bound>,
    groups: HashMap<Box<str>, Bound>,
}

/// The rules of one role.
type Rules = Arc<[PolicyRule]>;

/// The bindings of one user or group: by namespace, empty for ClusterRoleBindings, and name.
type Bound = HashMap<Box<str>, BTreeMap<Box<str>, Arc<Binding>>>;

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// Empty for a ClusterRoleBinding.
    namespace: Box<str>,
    name: Box<str>,
    role: RoleRef,
    subjects: Vec<Subject>,
}

/// The role that a binding is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct RoleRef {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// Whom a binding is about.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

/// Who or what a subject is among identities.
#[derive(Debug, PartialEq, Eq)]
enum Means<'a> {
    User(std::borrow::Cow<'a, str>),
    Group(&'a str),
    Nobody,
}

/// A role that a binding names and that is not there, or cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("{resource}.rbac.authorization.k8s.io {name:?} not found")]
    Missing { resource: &'static str, name: String },
    #[error("unsupported role reference kind: {0:?}")]
    Unsupported(String),
}

/// Which binding allows an action, and through which of its subjects.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    binding: Arc<Binding>,
    subject: usize,
}

impl Policy {
    pub(super) fn put_role(&mut self, namespace: &str, name: &str, rules: Vec<PolicyRule>) {
        self.roles.entry(namespace.into()).or_default().insert(name.into(), rules.into());
    }

    pub(super) fn remove_role(&mut self, namespace: &str, name: &str) {
        if let Some(roles) = self.roles.get_mut(namespace) {
            roles.remove(name);
            if roles.is_empty() {
                self.roles.remove(namespace);
            }
        }
    }

    pub(super) fn put_binding(&mut self, binding: Binding) {
        self.remove_binding(&binding.namespace, &binding.name);
        let binding = Arc::new(binding);
        for subject in &binding.subjects {
            let (index, name) = match subject.means(&binding.namespace) {
                Means::User(name) => (&mut self.users, name),
                Means::Group(name) => (&mut self.groups, name.into()),
                Means::Nobody => continue,
            };
            let bound = index.entry(name.into()).or_default();
            bound.entry(binding.namespace.clone()).or_default().insert(binding.name.clone(), binding.clone());
        }
        self.bindings.insert((binding.namespace.clone(), binding.name.clone()), binding);
    }

    pub(super) fn remove_binding(&mut self, namespace: &str, name: &str) {
        let Some(binding) = self.bindings.remove(&(namespace.into(), name.into())) else { return };
        for subject in &binding.subjects {
            let (index, subject) = match subject.means(namespace) {
                Means::User(name) => (&mut self.users, name),
                Means::Group(name) => (&mut self.groups, name.into()),
                Means::Nobody => continue,
            };
            let Some(bound) = index.get_mut(&*subject) else { continue };
            if let Some(named) = bound.get_mut(namespace) {
                named.remove(name);
                if named.is_empty() {
                    bound.remove(namespace);
                }
            }
            if bound.is_empty() {
                index.remove(&*subject);
            }
        }
    }

    /// The rules of the role that a binding in `namespace` names.
    pub(super) fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<&[PolicyRule], Unresolved> {
        let (resource, namespace) = match role.kind.as_str() {
            "Role" => ("role", namespace),
            "ClusterRole" => ("clusterrole", ""),
            _ => return Err(Unresolved::Unsupported(role.kind.clone())),
        };
        let rules = self.roles.get(namespace).and_then(|roles| roles.get(&*role.name));
        rules.map(|rules| &**rules).ok_or_else(|| Unresolved::Missing { resource, name: role.name.clone() })
    }

    /// Shows the bindings of `identity` that count in `namespace`, some perhaps twice, until told to stop: those of the
    /// whole cluster, and those of the namespace, if it is not empty.
    fn visit<B>(
        &self,
        identity: &Identity,
        namespace: &str,
        mut show: impl FnMut(&Arc<Binding>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let user = self.users.get(identity.user.as_str());
        let groups = identity.groups.iter().filter_map(|group| self.groups.get(group.as_str()));
        let all = || user.into_iter().chain(groups.clone());
        for place in std::iter::once("").chain((!namespace.is_empty()).then_some(namespace)) {
            all().filter_map(|bound| bound.get(place)).flat_map(BTreeMap::values).try_for_each(&mut show)?;
        }
        ControlFlow::Continue(())
    }

    /// Which binding allows an action; if none does, which roles that could are missing.
    pub(super) fn allows(&self, asked: &Attributes<'_>) -> Result<Source, Vec<Unresolved>> {
        let mut missing = Vec::new();
        let found = self.visit(asked.identity, asked.namespace(), |binding| {
            match self.rules_of(&binding.role, &binding.namespace) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(asked)) => {
                    ControlFlow::Break(binding.clone())
                }
                Ok(_) => ControlFlow::Continue(()),
                Err(error) => {
                    if !missing.contains(&error) {
                        missing.push(error);
                    }
                    ControlFlow::Continue(())
                }
            }
        });
        match found {
            ControlFlow::Break(binding) => Ok(Source::of(binding, asked.identity)),
            ControlFlow::Continue(()) => Err(missing),
        }
    }

    /// All rules that count for `identity` in `namespace`, each once, and what could not be found.
    pub(super) fn rules_for(
        &self,
        identity: &Identity,
        namespace: &str,
    ) -> (Vec<PolicyRule>, Vec<Unresolved>) {
        let mut bindings: BTreeMap<(&str, &str), Arc<Binding>> = BTreeMap::new();
        let mut all = Vec::new();
        let _: ControlFlow<()> = self.visit(identity, namespace, |binding| {
            all.push(binding.clone());
            ControlFlow::Continue(())
        });
        for binding in &all {
            bindings.insert((&binding.namespace, &binding.name), binding.clone());
        }
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        for binding in bindings.values() {
            match self.rules_of(&binding.role, &binding.namespace) {
                Ok(more) => rules.extend(more.iter().cloned()),
                Err(error) => missing.push(error),
            }
        }
        (rules, missing)
    }
}

impl Binding {
    /// As it is stored; none if it has not the form of one.
    pub(super) fn read(namespace: &str, name: &str, json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stored {
            role_ref: RoleRef,
            #[serde(default)]
            subjects: Option<Vec<Subject>>,
        }
        let stored: Stored = serde_json::from_slice(json).ok()?;
        Some(Self {
            namespace: namespace.into(),
            name: name.into(),
            role: stored.role_ref,
            subjects: stored.subjects.unwrap_or_default(),
        })
    }
}

impl Subject {
    /// In a binding of `namespace`, which is where a service account is that has none of its own.
    fn means(&self, namespace: &str) -> Means<'_> {
        match self.kind.as_str() {
            "User" => Means::User(self.name.as_str().into()),
            "Group" => Means::Group(&self.name),
            "ServiceAccount" => match self.place(namespace) {
                "" => Means::Nobody,
                place => Means::User(format!("system:serviceaccount:{place}:{}", self.name).into()),
            },
            _ => Means::Nobody,
        }
    }

    fn place<'a>(&'a self, namespace: &'a str) -> &'a str {
        if self.namespace.is_empty() { namespace } else { &self.namespace }
    }
}

impl Source {
    fn of(binding: Arc<Binding>, identity: &Identity) -> Self {
        let is_meant = |subject: &Subject| match subject.means(&binding.namespace) {
            Means::User(name) => name == identity.user,
            Means::Group(name) => identity.groups.iter().any(|group| group == name),
            Means::Nobody => false,
        };
        let subject = binding.subjects.iter().position(is_meant).unwrap_or_default();
        Self { binding, subject }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role, subjects } = &*self.binding;
        match namespace.is_empty() {
            true => write!(f, "ClusterRoleBinding {name:?}")?,
            false => write!(f, "RoleBinding \"{name}/{namespace}\"")?,
        }
        write!(f, " of {} {:?} to ", role.kind, role.name)?;
        let Some(subject) = subjects.get(self.subject) else { return Ok(()) };
        match subject.kind.as_str() {
            "ServiceAccount" => {
                write!(f, "ServiceAccount \"{}/{}\"", subject.name, subject.place(namespace))
            }
            kind => write!(f, "{kind} {:?}", subject.name),
        }
    }
}
