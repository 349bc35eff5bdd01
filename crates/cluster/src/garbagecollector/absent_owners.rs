//! Owners that are known to be gone, so that the API is asked once for many dependents of one owner.

use crate::discovery::group_of;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::collections::{HashSet, VecDeque};
use windlass::{Key, Kind};

/// The most entries.
const MAX_ENTRIES: usize = 4096;

/// Owners that are gone. A UID is never reused, so an entry stays true; a dropped one is looked up again.
#[derive(Debug, Default)]
pub(super) struct Absent {
    known: HashSet<String>,
    /// The same, longest remembered first.
    order: VecDeque<String>,
}

impl Absent {
    /// Adds the owner that a reference names.
    pub(super) fn add(&mut self, reference: &OwnerReference, namespace: Option<&str>) {
        self.insert(word(
            group_of(&reference.api_version),
            &reference.kind,
            namespace,
            &reference.name,
            &reference.uid,
        ));
    }

    /// Adds a deleted object.
    pub(super) fn add_object(&mut self, kind: &Kind, key: &Key, uid: &str) {
        self.insert(word(&kind.group, &kind.kind, key.namespace(), key.name(), uid));
    }

    fn insert(&mut self, word: String) {
        if !self.known.insert(word.clone()) {
            return;
        }
        self.order.push_back(word);
        if self.order.len() > MAX_ENTRIES
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether the owner that an object in this namespace refers to is gone; it may be cluster-scoped.
    pub(super) fn has(&self, reference: &OwnerReference, namespace: Option<&str>) -> bool {
        let group = group_of(&reference.api_version);
        [namespace, None].into_iter().any(|namespace| {
            self.known.contains(&word(group, &reference.kind, namespace, &reference.name, &reference.uid))
        })
    }
}

/// Whose name, kind or namespace is another than the UID's is no owner either: they all count.
fn word(group: &str, kind: &str, namespace: Option<&str>, name: &str, uid: &str) -> String {
    format!("{group}\0{kind}\0{}\0{name}\0{uid}", namespace.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(api_version: &str, uid: &str) -> OwnerReference {
        OwnerReference {
            api_version: api_version.into(),
            kind: "Job".into(),
            name: "one".into(),
            uid: uid.into(),
            ..OwnerReference::default()
        }
    }

    #[test]
    fn an_owner_is_gone_in_every_version_and_in_its_namespace_only() {
        let mut absent = Absent::default();
        absent.add(&reference("batch/v1", "u"), Some("shop"));
        assert!(absent.has(&reference("batch/v2", "u"), Some("shop")));
        assert!(!absent.has(&reference("batch/v1", "u"), Some("bank")));
        assert!(!absent.has(&reference("batch/v1", "w"), Some("shop")));
        absent.add(&reference("batch/v1", "cluster"), None);
        assert!(absent.has(&reference("batch/v1", "cluster"), Some("bank")), "owners may be in no namespace");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut absent = Absent::default();
        for number in 0..=MAX_ENTRIES {
            absent.add(&reference("batch/v1", &number.to_string()), None);
        }
        assert!(!absent.has(&reference("batch/v1", "0"), None));
        assert!(absent.has(&reference("batch/v1", "1"), None) && absent.known.len() == MAX_ENTRIES);
    }
}
