//! Whose child is it: the marks that children carry, and the pure questions about them.
//!
//! A child that cannot have an owner reference to its parent (it is in another namespace, or in none), or must not (it outlives
//! the parent), carries the parent's UID as a label and its address as an annotation. The owner index of the cache finds both
//! sorts. The garbage collector does not know the label, so a finalizer holds the parent until children elsewhere are gone
//! (`prepare.rs`).

use crate::cache::{AnyObject, owner_uids};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels::{CONTROLLER_LABEL, OWNER_UID_LABEL};
use crate::plan::{Effect, Plan};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// On children that cannot have an owner reference: which object their owner is, as `Kind.group/namespace/name`.
const OWNER_ANNOTATION: &str = "windlass.dev/owner";
/// Before the controller's name, on the parent: the kinds of children that may be pruned, even by a later version of
/// the controller that no longer knows them.
const KINDS_ANNOTATION: &str = "kinds.windlass.dev/";

/// What happens to an object that is there already, under a name that a plan wants.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use windlass::{Adoption, Controller, Plan};
/// let controller = Controller::deciding(|_: &ConfigMap, _| Ok(Plan::new()))
///     .owns::<Secret>()
///     .adopts::<Secret>(Adoption::IfUnowned); // from before there was an operator
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Adoption {
    /// It is left alone, and the object's conditions say so.
    #[default]
    Never,
    /// It is taken over if it belongs to nobody.
    IfUnowned,
}

/// The parent, as its children name it.
#[derive(Debug, Clone)]
pub(crate) struct Parent {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) controller: Arc<str>,
    /// The kinds of children that do not name it as their owner: those that outlive it, or that go after its cleanup.
    pub(crate) retains: Arc<BTreeSet<Kind>>,
}

impl Parent {
    /// The key that a step of this parent's plan means.
    pub(crate) fn key_of(&self, effect: &Effect) -> Key {
        let namespaced = effect.kind().is_some_and(|kind| kind.namespaced);
        let namespace = effect.namespace().or(self.key.namespace()).filter(|_| namespaced);
        self.key.beside(namespace, effect.name())
    }

    /// Whether a child there could name this parent: owners are in the same namespace, or in none.
    pub(crate) fn is_beside(&self, key: &Key) -> bool {
        self.key.namespace().is_none() || self.key.namespace() == key.namespace()
    }

    /// Whether a child names this parent as its owner, and goes with it.
    pub(crate) fn is_named_by(&self, kind: &Kind, key: &Key) -> bool {
        self.is_beside(key) && !self.retains.contains(kind)
    }

    /// As [`Parent::mark`], for an object that is written whole: what others marked stays.
    pub(crate) fn mark_whole(&self, kind: &Kind, key: &Key, object: &Value) -> Value {
        let mut marked = self.mark(kind, key, object);
        let others = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let others: Vec<Value> =
            others.into_iter().flatten().filter(|owner| owner["uid"] != *self.uid).cloned().collect();
        let Some(meta) = marked["metadata"].as_object_mut() else { return marked };
        match meta.get_mut("ownerReferences").and_then(Value::as_array_mut) {
            Some(owners) if self.is_named_by(kind, key) => owners.extend(others),
            // One that is retained from now on may have named its parent before.
            _ if others.is_empty() => drop(meta.remove("ownerReferences")),
            _ => drop(meta.insert("ownerReferences".to_owned(), others.into())),
        }
        marked
    }

    /// The object with the marks of this parent.
    pub(crate) fn mark(&self, kind: &Kind, key: &Key, object: &Value) -> Value {
        let mut object = object.clone();
        if !object.get("metadata").is_some_and(Value::is_object) {
            object["metadata"] = json!({});
        }
        let meta = &mut object["metadata"];
        if let Some(namespace) = key.namespace() {
            meta["namespace"] = namespace.into();
        }
        if !meta.get("labels").is_some_and(Value::is_object) {
            meta["labels"] = json!({});
        }
        meta["labels"][CONTROLLER_LABEL] = (*self.controller).into();
        if !self.is_named_by(kind, key) {
            if !meta.get("annotations").is_some_and(Value::is_object) {
                meta["annotations"] = json!({});
            }
            meta["annotations"][OWNER_ANNOTATION] = self.address().into();
            meta["labels"][OWNER_UID_LABEL] = self.uid.as_str().into();
            return object;
        }
        meta["ownerReferences"] = json!([{
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.kind,
            "name": self.key.name(),
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
        object
    }

    /// Where it is found, as its children elsewhere write it down.
    fn address(&self) -> String {
        let Kind { kind, group, .. } = &self.kind;
        format!("{kind}.{group}/{}/{}", self.key.namespace().unwrap_or_default(), self.key.name())
    }

    /// Whether the object names this parent among its owners.
    pub(crate) fn owns(&self, meta: &ObjectMeta) -> bool {
        owner_uids(meta).any(|uid| uid == self.uid)
    }

    /// Whether a plan of this parent may write to an object that is there already.
    pub(crate) fn may_write(&self, meta: &ObjectMeta, adoption: Adoption) -> bool {
        self.owns(meta) || (adoption == Adoption::IfUnowned && owner_uids(meta).next().is_none())
    }

    /// Whether the object was made for this parent by this controller, and so may be pruned by it.
    pub(crate) fn made(&self, meta: &ObjectMeta) -> bool {
        let label = meta.labels.as_ref().and_then(|labels| labels.get(CONTROLLER_LABEL));
        self.owns(meta) && label.is_some_and(|label| **label == *self.controller)
    }

    /// Whether it is a child that the API server does not collect when the parent goes.
    pub(crate) fn made_elsewhere(&self, meta: &ObjectMeta) -> bool {
        let label = meta.labels.as_ref().and_then(|labels| labels.get(OWNER_UID_LABEL));
        self.made(meta) && label.is_some_and(|label| *label == self.uid)
    }

    /// Of the children of a kind, those that a complete plan does not want.
    pub(crate) fn unwanted(
        &self,
        kind: &Kind,
        children: Vec<Arc<dyn AnyObject>>,
        plan: &Plan,
    ) -> Vec<Arc<dyn AnyObject>> {
        if !plan.is_complete() {
            return Vec::new();
        }
        let wanted: BTreeSet<Key> = plan
            .steps()
            .iter()
            .filter(|step| step.effect.kind() == Some(kind) && step.effect.makes())
            .map(|step| self.key_of(&step.effect))
            .collect();
        let unwanted = children.into_iter().filter(|child| {
            let meta = child.meta();
            self.made(meta)
                && meta.deletion_timestamp.is_none()
                && !wanted.contains(&Key::of(self.key.cluster().clone(), meta))
        });
        unwanted.collect()
    }

    fn kinds_annotation(&self) -> String {
        format!("{KINDS_ANNOTATION}{}", self.controller)
    }

    /// The kinds that the parent remembers.
    pub(crate) fn remembered(&self, meta: &ObjectMeta) -> BTreeSet<Kind> {
        let annotation = meta.annotations.as_ref().and_then(|all| all.get(&self.kinds_annotation()));
        annotation.into_iter().flat_map(|words| words.split(',')).filter_map(Kind::from_word).collect()
    }

    /// What the controller wants of the parent itself: its finalizer, and the kinds to remember.
    pub(crate) fn intent(&self, finalizer: Option<&str>, kinds: &BTreeSet<Kind>) -> Value {
        let mut meta = json!({ "name": self.key.name() });
        if let Some(namespace) = self.key.namespace() {
            meta["namespace"] = namespace.into();
        }
        if let Some(finalizer) = finalizer {
            meta["finalizers"] = json!([finalizer]);
        }
        if !kinds.is_empty() {
            let words: Vec<String> = kinds.iter().map(Kind::to_word).collect();
            let mut annotations = serde_json::Map::new();
            annotations.insert(self.kinds_annotation(), words.join(",").into());
            meta["annotations"] = annotations.into();
        }
        json!({ "apiVersion": self.kind.api_version(), "kind": self.kind.kind, "metadata": meta })
    }
}

/// The object of a kind that a child elsewhere says it belongs to.
pub(crate) fn owner_elsewhere(meta: &ObjectMeta, kind: &Kind, cluster: &Arc<str>) -> Option<Key> {
    let address = meta.annotations.as_ref()?.get(OWNER_ANNOTATION)?;
    let mut parts = address.splitn(3, '/');
    let (of, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let same = of.split_once('.') == Some((&*kind.kind, &*kind.group));
    same.then(|| Key::new(cluster.clone(), Some(namespace), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

    fn parent() -> Parent {
        Parent {
            kind: Kind::of::<Secret>(),
            key: Key::new("c".into(), Some("ns"), "boss"),
            uid: "boss-uid".into(),
            controller: "ours".into(),
            retains: Arc::new([Kind::of::<Pod>()].into()),
        }
    }

    fn child(name: &str) -> ConfigMap {
        let plain = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let key = Key::new("c".into(), Some("ns"), name);
        serde_json::from_value(parent().mark(&Kind::of::<ConfigMap>(), &key, &plain)).unwrap()
    }

    fn unwanted(children: Vec<ConfigMap>, plan: &Plan) -> Vec<String> {
        let children = children.into_iter().map(|child| Arc::new(child) as Arc<dyn AnyObject>).collect();
        let unwanted = parent().unwanted(&Kind::of::<ConfigMap>(), children, plan);
        unwanted.iter().filter_map(|child| child.meta().name.clone()).collect()
    }

    fn wanting(name: &str) -> Plan {
        let metadata = ObjectMeta { name: Some(name.into()), ..Default::default() };
        Plan::new().apply(ConfigMap { metadata, ..Default::default() }, Reason::new("Why", "why"))
    }

    #[test]
    fn a_complete_plan_leaves_over_what_it_does_not_mention() {
        assert_eq!(unwanted(vec![child("a"), child("b")], &wanting("a")), ["b"]);
    }

    #[test]
    fn a_plan_that_waits_leaves_nothing_over() {
        let waits = wanting("a").wait(Reason::new("Slow", "slow"), crate::Until::Change);
        assert!(unwanted(vec![child("b")], &waits).is_empty());
    }

    #[test]
    fn what_another_controller_made_for_the_same_parent_is_never_left_over() {
        let mut theirs = child("b");
        theirs.metadata.labels.as_mut().unwrap().insert(CONTROLLER_LABEL.into(), "theirs".into());
        let mut elsewhere = child("c");
        elsewhere.metadata.owner_references.as_mut().unwrap()[0].uid = "other".into();
        let mut going = child("d");
        going.metadata.deletion_timestamp = serde_json::from_value("2026-01-01T00:00:00Z".into()).unwrap();
        assert!(unwanted(vec![theirs, elsewhere, going], &wanting("a")).is_empty());
    }

    #[test]
    fn an_object_that_is_there_is_written_to_only_if_it_is_ours_or_nobodys() {
        let ours = child("a").metadata;
        let nobodys = ObjectMeta::default();
        assert!(parent().may_write(&ours, Adoption::Never));
        assert!(!parent().may_write(&nobodys, Adoption::Never));
        assert!(parent().may_write(&nobodys, Adoption::IfUnowned));
        let mut theirs = child("a").metadata;
        theirs.owner_references.as_mut().unwrap()[0].uid = "other".into();
        assert!(!parent().may_write(&theirs, Adoption::IfUnowned));
    }

    #[test]
    fn the_parent_remembers_kinds_across_versions_of_the_controller() {
        let kinds = BTreeSet::from([Kind::of::<ConfigMap>(), Kind::of::<Secret>()]);
        let intent = parent().intent(Some("windlass.dev/ours"), &kinds);
        let meta: ObjectMeta = serde_json::from_value(intent["metadata"].clone()).unwrap();
        assert_eq!(parent().remembered(&meta), kinds);
        assert_eq!(meta.finalizers.unwrap(), ["windlass.dev/ours"]);
        assert!(parent().remembered(&ObjectMeta::default()).is_empty());
    }

    #[test]
    fn a_child_that_is_retained_is_known_by_a_label_and_names_no_owner() {
        let plain = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kept", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Secret", "name": "boss", "uid": "boss-uid"}]}});
        let key = Key::new("c".into(), Some("ns"), "kept");
        let whole = parent().mark_whole(&Kind::of::<Pod>(), &key, &plain);
        let kept: Pod = serde_json::from_value(whole).unwrap();
        assert_eq!(kept.metadata.owner_references.unwrap_or_default().len(), 0);
        let labels = kept.metadata.labels.clone().unwrap();
        assert_eq!(labels[OWNER_UID_LABEL], "boss-uid");
        let meta = ObjectMeta { owner_references: None, ..kept.metadata };
        assert!(parent().made(&meta) && parent().may_write(&meta, Adoption::Never));
        assert_eq!(owner_elsewhere(&meta, &Kind::of::<Secret>(), &"c".into()), Some(parent().key));
    }

    #[test]
    fn a_child_elsewhere_finds_its_parent_without_naming_it_as_owner() {
        let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "far"}});
        let key = Key::new("c".into(), Some("other"), "far");
        let far = parent().mark(&Kind::of::<ConfigMap>(), &key, &plain);
        let far: ConfigMap = serde_json::from_value(far).unwrap();
        assert_eq!(far.metadata.owner_references, None);
        assert!(parent().owns(&far.metadata) && parent().made_elsewhere(&far.metadata));
        assert!(!parent().made_elsewhere(&child("near").metadata));
        let found = owner_elsewhere(&far.metadata, &Kind::of::<Secret>(), &"c".into());
        assert_eq!(found, Some(parent().key));
        assert_eq!(owner_elsewhere(&far.metadata, &Kind::of::<ConfigMap>(), &"c".into()), None);
        for nonsense in ["", "x", "Secret.", "Secret./ns"] {
            let annotations = Some([(OWNER_ANNOTATION.to_owned(), nonsense.to_owned())].into());
            let meta = ObjectMeta { annotations, ..Default::default() };
            assert_eq!(owner_elsewhere(&meta, &Kind::of::<Secret>(), &"c".into()), None);
        }
    }
}
