//! What a reconcile wrote, and what was heard while it ran: so that the echo of a write, which may come before its answer,
//! is known for one.
//!
//! Exactly the versions that a reconcile wrote are ignored, and only for that reconcile. Whatever else was heard before a pass
//! looked is seen by that pass; what was heard since then is kept for another reconcile.

use crate::cache::Changed;
use crate::key::Key;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

/// The reconciles that run now, by object.
#[derive(Debug, Default)]
pub(crate) struct Ledgers(Mutex<HashMap<Key, Ledger>>);

#[derive(Debug, Default)]
struct Ledger {
    written: HashSet<Version>,
    heard: HashSet<Version>,
}

/// A state of an object: its UID and resourceVersion, or that it is gone.
type Version = (String, Option<String>);

impl Ledgers {
    /// A reconcile begins.
    pub(crate) fn begin(&self, reconciled: &Key) {
        self.0.lock().insert(reconciled.clone(), Ledger::default());
    }

    /// The reconcile is about to look: what was heard until now, it sees.
    pub(crate) fn look(&self, reconciled: &Key) {
        if let Some(ledger) = self.0.lock().get_mut(reconciled) {
            ledger.heard.clear();
        }
    }

    /// The reconcile wrote this version of an object, or made it go.
    pub(crate) fn wrote(&self, reconciled: &Key, uid: &str, version: Option<u64>) {
        if let Some(ledger) = self.0.lock().get_mut(reconciled) {
            ledger.written.insert((uid.to_owned(), version.map(|version| version.to_string())));
        }
    }

    /// Something that concerns `reconciled` changed. Whether it was noted, because that reconcile runs; otherwise it is news.
    pub(crate) fn hear(&self, reconciled: &Key, changed: &Changed) -> bool {
        let mut reconciles = self.0.lock();
        let Some(ledger) = reconciles.get_mut(reconciled) else { return false };
        let uid = |object: &std::sync::Arc<dyn crate::cache::AnyObject>| {
            object.meta().uid.clone().unwrap_or_default()
        };
        let version = match (&changed.new, &changed.old) {
            (Some(new), _) => (uid(new), new.meta().resource_version.clone()),
            (None, Some(old)) => (uid(old), None),
            (None, None) => return true,
        };
        ledger.heard.insert(version);
        true
    }

    /// The reconcile ended. Whether something was heard since it last looked that it did not write itself.
    pub(crate) fn end(&self, reconciled: &Key) -> bool {
        let ledger = self.0.lock().remove(reconciled).unwrap_or_default();
        !ledger.heard.is_subset(&ledger.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use std::sync::Arc;

    fn reconcile() -> Key {
        Key::new("c".into(), Some("ns"), "reconcile")
    }

    fn shown(uid: &str, version: &str) -> Changed {
        let mut object = ConfigMap::default();
        object.metadata.uid = Some(uid.into());
        object.metadata.resource_version = Some(version.into());
        Changed { key: reconcile(), old: None, new: Some(Arc::new(object)), origin: None, initial: false }
    }

    fn gone(uid: &str) -> Changed {
        let Changed { key, new, origin, initial, .. } = shown(uid, "1");
        Changed { key, old: new, new: None, origin, initial }
    }

    #[test]
    fn an_echo_before_its_answer_is_still_an_echo() {
        let ledgers = Ledgers::default();
        ledgers.begin(&reconcile());
        assert!(ledgers.hear(&reconcile(), &shown("u", "7")) && ledgers.hear(&reconcile(), &gone("v")));
        ledgers.wrote(&reconcile(), "u", Some(7));
        ledgers.wrote(&reconcile(), "v", None);
        assert!(!ledgers.end(&reconcile()));
    }

    #[test]
    fn what_others_did_since_the_last_look_is_for_another_reconcile() {
        let ledgers = Ledgers::default();
        ledgers.begin(&reconcile());
        ledgers.hear(&reconcile(), &shown("u", "7"));
        ledgers.look(&reconcile());
        ledgers.wrote(&reconcile(), "u", Some(8));
        ledgers.hear(&reconcile(), &shown("u", "9"));
        assert!(ledgers.end(&reconcile()), "9 is not ours");
        ledgers.begin(&reconcile());
        ledgers.hear(&reconcile(), &shown("u", "9"));
        ledgers.look(&reconcile());
        assert!(!ledgers.end(&reconcile()), "9 was there when it looked");
    }

    #[test]
    fn between_reconciles_everything_is_news() {
        assert!(!Ledgers::default().hear(&reconcile(), &shown("u", "7")));
    }
}
