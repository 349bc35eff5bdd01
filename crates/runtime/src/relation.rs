//! How an object relates to others that it does not own: from an object to those it sees, and back again.

use crate::cache::{AnyIndex, Filed, Index, Select, Selectable, Selection};
use crate::key::Key;
use crate::kind::Cached;
use crate::selector::Selector;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Which objects of another kind matter to one object. Watch, index and observation follow from it.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Service};
/// # use windlass::{Controller, Plan, Relation};
/// let controller = Controller::deciding(|_: &Service, _| Ok(Plan::new()))
///     .watches::<Pod>(|service| {
///         let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone());
///         Relation::labelled(selector.unwrap_or_default())
///     })
///     .watches::<ConfigMap>(|_| Relation::named("defaults").in_namespace("system"))
///     .watches::<Namespace>(|service| Relation::names(service.metadata.namespace.clone()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    within: Within,
    select: Select,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Within {
    /// The namespace of the object that the relation starts from.
    Same,
    Namespace(String),
    Anywhere,
}

impl Relation {
    fn new(select: Select) -> Self {
        Self { within: Within::Same, select }
    }

    /// None at all.
    pub fn nothing() -> Self {
        Self::new(Select::Names(BTreeSet::new()))
    }

    /// The one called so.
    pub fn named(name: impl Into<String>) -> Self {
        Self::names([name])
    }

    /// Those called so.
    pub fn names(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::new(Select::Names(names.into_iter().map(Into::into).collect()))
    }

    /// Those that carry all these labels; without any label, none, as an empty selector is more often a mistake than a wish.
    pub fn labelled(labels: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        let labels: BTreeMap<_, _> =
            labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        if labels.is_empty() { Self::nothing() } else { Self::new(Select::Labels(labels)) }
    }

    /// Those that a selector selects: with an empty one, all of them.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::ReplicaSet;
    /// # use windlass::{Relation, Selector};
    /// fn pods(set: &ReplicaSet) -> Relation {
    ///     let selector = set.spec.as_ref().and_then(|spec| Selector::of(&spec.selector).ok());
    ///     selector.map_or_else(Relation::nothing, Relation::selected)
    /// }
    /// ```
    pub fn selected(selector: Selector) -> Self {
        if selector.is_empty() { Self::all() } else { Self::new(Select::Selector(selector)) }
    }

    /// Those with this term in an index.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use windlass::Relation;
    /// use windlass::cache::Index;
    ///
    /// const BY_NODE: Index<Pod> =
    ///     Index::new("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
    ///
    /// // For a controller of nodes: `.watches::<Pod>(|node| Relation::indexed(BY_NODE, node.name_any()).anywhere())`
    /// let relation = Relation::indexed(BY_NODE, "n1").anywhere();
    /// ```
    pub fn indexed<C: Cached>(index: Index<C>, term: impl Into<String>) -> Self {
        Self::new(Select::Term(index.erase(), term.into()))
    }

    /// Every one of them.
    pub fn all() -> Self {
        Self::new(Select::All)
    }

    /// In this namespace, instead of the object's own.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.within = Within::Namespace(namespace.into());
        self
    }

    /// In any namespace, instead of the object's own.
    #[must_use]
    pub fn anywhere(mut self) -> Self {
        self.within = Within::Anywhere;
        self
    }

    /// The relation as seen from an object in `from`, to a kind that has namespaces or not.
    pub(crate) fn resolve(self, from: Option<&str>, namespaced: bool) -> Selection {
        let namespace = match self.within {
            _ if !namespaced => None,
            Within::Same => from.map(str::to_owned),
            Within::Namespace(namespace) => Some(namespace),
            Within::Anywhere => None,
        };
        Selection { namespace, select: self.select }
    }
}

impl From<BTreeMap<String, String>> for Relation {
    fn from(labels: BTreeMap<String, String>) -> Self {
        Self::labelled(labels)
    }
}

impl Selection {
    /// Where the reverse index files this relation: one place per name, the first label, or the namespace.
    fn index_keys(&self) -> Vec<IndexKey> {
        let namespace = || self.namespace.clone();
        match &self.select {
            Select::Names(names) => {
                names.iter().map(|name| IndexKey::Name(namespace(), name.clone())).collect()
            }
            Select::Labels(labels) => labels
                .iter()
                .take(1)
                .map(|(key, value)| IndexKey::Label(namespace(), key.clone(), value.clone()))
                .collect(),
            Select::Selector(selector) => match selector.one_of() {
                Some(labels) => labels
                    .map(|(key, value)| IndexKey::Label(namespace(), key.to_owned(), value.to_owned()))
                    .collect(),
                None => vec![IndexKey::All(namespace())],
            },
            Select::Term(index, term) => vec![IndexKey::Term(namespace(), index.name(), term.clone())],
            Select::All => vec![IndexKey::All(namespace())],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum IndexKey {
    Name(Option<String>, String),
    Label(Option<String>, String, String),
    Term(Option<String>, &'static str, String),
    All(Option<String>),
}

/// The way back: which objects' relations hold for an object that changed. Its cost is that of the object's labels,
/// however many relations there are.
#[derive(Debug, Default)]
pub(crate) struct ReverseIndex {
    relations: HashMap<Key, Selection>,
    index_keys: Filed<IndexKey>,
    /// The indexes that relations ask for: a handful, written in the program.
    indexes: Vec<AnyIndex>,
}

impl ReverseIndex {
    /// Sets, changes or (with `None`) removes the relation of one object.
    pub(crate) fn set(&mut self, key: &Key, relation: Option<Selection>) {
        if self.relations.get(key) == relation.as_ref() {
            return;
        }
        if let Some(old) = self.relations.remove(key) {
            for index_key in old.index_keys() {
                self.index_keys.remove(&index_key, key);
            }
        }
        if let Some(new) = relation {
            if let Select::Term(index, _) = &new.select
                && !self.indexes.contains(index)
            {
                self.indexes.push(index.clone());
            }
            for index_key in new.index_keys() {
                self.index_keys.insert(index_key, key);
            }
            self.relations.insert(key.clone(), new);
        }
    }

    /// Whose relations hold for this object.
    pub(crate) fn related_to(&self, object: Selectable<'_>) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        if self.index_keys.is_empty() {
            return found;
        }
        let mut look = |index_key: IndexKey| {
            let keys = self.index_keys.get(&index_key);
            found.extend(
                keys.filter(|key| self.relations.get(*key).is_some_and(|relation| relation.matches(object)))
                    .cloned(),
            );
        };
        let terms: Vec<(&'static str, String)> = self
            .indexes
            .iter()
            .flat_map(|index| index.terms(object.object).into_iter().map(|term| (index.name(), term)))
            .collect();
        let namespaces = [object.namespace.map(str::to_owned), None];
        // An object outside namespaces has only the second of the two.
        for namespace in &namespaces[usize::from(object.namespace.is_none())..] {
            look(IndexKey::Name(namespace.clone(), object.name.to_owned()));
            look(IndexKey::All(namespace.clone()));
            for (key, value) in object.labels.into_iter().flatten() {
                look(IndexKey::Label(namespace.clone(), key.clone(), value.clone()));
            }
            for (index, term) in &terms {
                look(IndexKey::Term(namespace.clone(), index, term.clone()));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::AnyObject;
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

    const BY_DATA: Index<ConfigMap> =
        Index::new("data", |map| map.data.iter().flat_map(BTreeMap::keys).cloned().collect());

    fn key(name: &str) -> Key {
        Key::new("c".into(), Some("here"), name)
    }

    fn index(relations: &[(&str, Relation)]) -> ReverseIndex {
        let mut index = ReverseIndex::default();
        for (name, relation) in relations {
            index.set(&key(name), Some(relation.clone().resolve(Some("here"), true)));
        }
        index
    }

    fn related_to(index: &ReverseIndex, namespace: &str, name: &str, labels: &[(&str, &str)]) -> Vec<String> {
        let labels = labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object.metadata.namespace = Some(namespace.to_owned());
        object.metadata.labels = Some(labels);
        object.data = Some([(name.to_owned(), String::new())].into());
        let object: &dyn AnyObject = &object;
        index.related_to(object.into()).into_iter().map(|key| key.name().to_owned()).collect()
    }

    #[test]
    fn an_object_finds_its_way_back_by_name_label_and_namespace() {
        let index = index(&[
            ("by-name", Relation::named("x")),
            ("by-label", Relation::labelled([("app", "x"), ("tier", "db")])),
            ("all-here", Relation::all()),
            ("all", Relation::all().anywhere()),
            ("there", Relation::named("x").in_namespace("there")),
            ("by-term", Relation::indexed(BY_DATA, "z")),
        ]);
        assert_eq!(related_to(&index, "here", "z", &[]), ["all", "all-here", "by-term"]);
        assert_eq!(related_to(&index, "there", "z", &[]), ["all"]);
        assert_eq!(related_to(&index, "here", "x", &[]), ["all", "all-here", "by-name"]);
        assert_eq!(related_to(&index, "there", "x", &[]), ["all", "there"]);
        assert_eq!(
            related_to(&index, "here", "y", &[("app", "x"), ("tier", "db")]),
            ["all", "all-here", "by-label"]
        );
        assert_eq!(
            related_to(&index, "here", "y", &[("app", "x")]),
            ["all", "all-here"],
            "every label must be there"
        );
    }

    #[test]
    fn an_object_finds_its_way_back_by_a_selector() {
        let selected = |operator: &str, values: &[&str]| {
            let term = LabelSelectorRequirement {
                key: "app".into(),
                operator: operator.into(),
                values: Some(values.iter().map(ToString::to_string).collect()),
            };
            let selector = LabelSelector { match_labels: None, match_expressions: Some(vec![term]) };
            Relation::selected(Selector::of(&selector).unwrap())
        };
        let index = index(&[
            ("either", selected("In", &["x", "y"])),
            ("neither", selected("NotIn", &["x", "y"])),
            ("any", Relation::selected(Selector::of(&LabelSelector::default()).unwrap())),
        ]);
        assert_eq!(related_to(&index, "here", "o", &[("app", "y")]), ["any", "either"]);
        assert_eq!(related_to(&index, "here", "o", &[("app", "z")]), ["any", "neither"]);
        assert_eq!(related_to(&index, "here", "o", &[]), ["any", "neither"]);
        assert!(related_to(&index, "there", "o", &[("app", "y")]).is_empty());
    }

    #[test]
    fn a_relation_that_changes_leaves_nothing_behind() {
        let mut index = index(&[("a", Relation::named("x"))]);
        index.set(&key("a"), Some(Relation::named("y").resolve(Some("here"), true)));
        assert!(related_to(&index, "here", "x", &[]).is_empty());
        assert_eq!(related_to(&index, "here", "y", &[]), ["a"]);
        index.set(&key("a"), None);
        assert!(index.index_keys.is_empty() && index.relations.is_empty());
    }

    #[test]
    fn an_empty_selector_selects_nothing() {
        assert_eq!(Relation::labelled(Vec::<(String, String)>::new()), Relation::nothing());
    }
}
