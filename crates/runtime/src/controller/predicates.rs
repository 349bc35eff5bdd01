//! Which changes start a reconcile: that an object comes or goes always does, a change of it may not matter.

use super::Controller;
use crate::cache::{AnyObject, Changed};
use crate::kind::{Cached, Kind, Object};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Whether a change from one state to the next matters.
pub(super) type Predicate = Arc<dyn Fn(&dyn AnyObject, &dyn AnyObject) -> bool + Send + Sync>;

impl<K: Cached> Controller<K> {
    /// Of the changes of objects of this kind, whether its own or one that it owns or watches, only those start a reconcile for
    /// which this holds: it is given the object before and after. That an object comes, begins to be deleted or goes always
    /// starts one. Decisions see the newest state of it in any case, when something else starts a reconcile.
    ///
    /// ```
    /// # use k8s_openapi::api::coordination::v1::Lease;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass::{Controller, Plan, Relation};
    /// // Who holds the lease matters, and not that it is renewed every few seconds.
    /// let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    /// let controller = Controller::deciding(|_: &Pod, _| Ok(Plan::new()))
    ///     .watches::<Lease>(|pod| Relation::named(pod.metadata.name.clone().unwrap_or_default()))
    ///     .predicate::<Lease>(move |old, new| holder(old) != holder(new));
    /// ```
    pub fn predicate<C: Object>(mut self, matters: impl Fn(&C, &C) -> bool + Send + Sync + 'static) -> Self {
        let predicate: Predicate = Arc::new(move |old, new| {
            match (old.as_any().downcast_ref::<C>(), new.as_any().downcast_ref::<C>()) {
                (Some(old), Some(new)) => matters(old, new),
                // Watched as something else, of which this says nothing.
                _ => true,
            }
        });
        self.parts.predicates.insert(Kind::of::<C>(), predicate);
        self
    }
}

/// Whether a change starts a reconcile.
pub(super) fn matters(predicate: Option<&Predicate>, changed: &Changed) -> bool {
    let (Some(predicate), Some(old), Some(new)) = (predicate, &changed.old, &changed.new) else {
        return true;
    };
    let (before, after) = (old.meta(), new.meta());
    if before.uid != after.uid || before.deletion_timestamp != after.deletion_timestamp {
        return true;
    }
    // The operator's code must not end the watch's task: what it cannot judge matters.
    catch_unwind(AssertUnwindSafe(|| predicate(&**old, &**new))).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::plan::Plan;
    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

    fn map(uid: &str, value: &str) -> Arc<dyn AnyObject> {
        let mut map = ConfigMap::default();
        map.metadata.uid = Some(uid.to_owned());
        map.data = Some([("key".to_owned(), value.to_owned())].into());
        Arc::new(map)
    }

    fn change(old: Option<Arc<dyn AnyObject>>, new: Option<Arc<dyn AnyObject>>) -> Changed {
        Changed { key: Key::new("c".into(), Some("ns"), "n"), old, new, origin: None, initial: false }
    }

    #[test]
    fn a_change_that_does_not_matter_starts_nothing() {
        let controller = Controller::deciding(|_: &Pod, _| Ok(Plan::new()))
            .predicate::<ConfigMap>(|old, new| old.data != new.data)
            .predicate::<Secret>(|_, _| panic!("cannot judge"));
        let predicates = &controller.parts.predicates;
        let predicate = predicates.get(&Kind::of::<ConfigMap>());
        assert!(!matters(predicate, &change(Some(map("u", "a")), Some(map("u", "a")))));
        assert!(matters(predicate, &change(Some(map("u", "a")), Some(map("u", "b")))));
        assert!(matters(predicate, &change(Some(map("u", "a")), Some(map("v", "a")))), "it is another one");
        assert!(matters(predicate, &change(None, Some(map("u", "a")))));
        assert!(matters(predicate, &change(Some(map("u", "a")), None)));
        assert!(matters(None, &change(Some(map("u", "a")), Some(map("u", "a")))));
        let mut going = ConfigMap::default();
        going.metadata.uid = Some("u".to_owned());
        going.metadata.deletion_timestamp = serde_json::from_value("2026-01-01T00:00:00Z".into()).unwrap();
        assert!(matters(predicate, &change(Some(map("u", "a")), Some(Arc::new(going)))));
        let secret = || Arc::new(Secret::default()) as Arc<dyn AnyObject>;
        let of_secrets = predicates.get(&Kind::of::<Secret>());
        assert!(matters(of_secrets, &change(Some(secret()), Some(secret()))), "a panic is no judgement");
        assert!(matters(predicate, &change(Some(secret()), Some(secret()))), "nor is another type");
    }
}
