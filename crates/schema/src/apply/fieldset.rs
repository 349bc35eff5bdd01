//! Sets of fields: what a manager owns, as a sorted tree that shares its unchanged branches.

use super::path::{Path, PathElement, path_text};
use std::cmp::Ordering;
use std::sync::Arc;

/// A set of paths. Owning a field says nothing about the fields inside it, and the other way round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element; no node is without both membership and children.
    nodes: Vec<Node>,
}

/// What a set says about one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    /// Whether the path that ends here is in the set.
    pub(crate) member: bool,
    /// The paths that lead on from here; never an empty set.
    pub(crate) children: Option<Arc<FieldSet>>,
}

impl Node {
    pub(crate) fn new(element: PathElement, member: bool, children: FieldSet) -> Self {
        Node { element, member, children: (!children.is_empty()).then(|| Arc::new(children)) }
    }

    fn unite(&mut self, other: &Node) {
        self.member |= other.member;
        self.children = match (&self.children, &other.children) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => Some(a.clone()),
            (Some(a), Some(b)) => Some(Arc::new(a.union(b))),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
    }

    fn is_void(&self) -> bool {
        !self.member && self.children.is_none()
    }
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of the given paths of plain fields, such as `[&["status"], &["metadata", "labels"]]`.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(&path.iter().map(|name| PathElement::field(name)).collect::<Path>());
        }
        set
    }

    /// Builds a set from the nodes of one level, in any order; nodes of one element are united.
    pub(crate) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.retain(|node| !node.is_void());
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|next, kept| {
                let same = next.element == kept.element;
                if same {
                    kept.unite(next);
                }
                same
            });
        }
        FieldSet { nodes }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn find(&self, element: &PathElement) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        self.nodes.get(at)
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many paths are in the set.
    pub fn len(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| usize::from(node.member) + node.children.as_ref().map_or(0, |set| set.len()))
            .sum()
    }

    /// Adds a path. The empty path, the whole object, is owned by nobody.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((element, rest)) = path.split_first() else { return };
        let at = match self.nodes.binary_search_by(|node| node.element.cmp(element)) {
            Ok(at) => at,
            Err(at) => {
                self.nodes.insert(at, Node { element: element.clone(), member: false, children: None });
                at
            }
        };
        let node = &mut self.nodes[at];
        if rest.is_empty() {
            node.member = true;
        } else {
            Arc::make_mut(node.children.get_or_insert_default()).insert(rest);
        }
    }

    /// Whether the path is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        let Some((element, rest)) = path.split_first() else { return false };
        match self.find(element) {
            Some(node) if rest.is_empty() => node.member,
            Some(node) => node.children.as_ref().is_some_and(|children| children.has(rest)),
            None => false,
        }
    }

    /// Whether the path of this one element is in the set.
    pub(crate) fn has_element(&self, element: &PathElement) -> bool {
        self.find(element).is_some_and(|node| node.member)
    }

    /// The paths that begin with `element`, without it; `None` if there are none.
    pub fn with_prefix(&self, element: &PathElement) -> Option<&FieldSet> {
        self.find(element)?.children.as_deref()
    }

    /// Merges two sets level by level: `both` decides about elements that both have, and whether those that only one side has
    /// stay is told by `left_only` and `right_only`.
    fn combine(
        &self,
        other: &FieldSet,
        left_only: bool,
        right_only: bool,
        both: impl Fn(&Node, &Node) -> (bool, Option<Arc<FieldSet>>),
    ) -> FieldSet {
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        let mut nodes = Vec::new();
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.element.cmp(&b.element),
                (Some(_), None) if left_only => Ordering::Less,
                (None, Some(_)) if right_only => Ordering::Greater,
                _ => break,
            };
            match order {
                Ordering::Less => nodes.extend(left.next().filter(|_| left_only).cloned()),
                Ordering::Greater => nodes.extend(right.next().filter(|_| right_only).cloned()),
                Ordering::Equal => {
                    if let (Some(a), Some(b)) = (left.next(), right.next()) {
                        let (member, children) = both(a, b);
                        let children = children.filter(|children| !children.is_empty());
                        if member || children.is_some() {
                            nodes.push(Node { element: a.element.clone(), member, children });
                        }
                    }
                }
            }
        }
        FieldSet { nodes }
    }

    /// The paths in either set.
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        self.combine(other, true, true, |a, b| {
            let mut united = a.clone();
            united.unite(b);
            (united.member, united.children)
        })
    }

    /// The paths in both sets.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, false, false, |a, b| {
            let children = match (&a.children, &b.children) {
                (Some(a), Some(b)) => Some(Arc::new(a.intersection(b))),
                _ => None,
            };
            (a.member && b.member, children)
        })
    }

    /// The paths in this set that are not in the other.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, true, false, |a, b| {
            let children = match (&a.children, &b.children) {
                (Some(a), Some(b)) => Some(Arc::new(a.difference(b))),
                (children, _) => children.clone(),
            };
            (a.member && !b.member, children)
        })
    }

    /// The paths in this set that are neither in the other nor inside a path in the other.
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, true, false, |a, b| {
            if b.member {
                return (false, None);
            }
            let children = match (&a.children, &b.children) {
                (Some(a), Some(b)) => Some(Arc::new(a.recursive_difference(b))),
                (children, _) => children.clone(),
            };
            (a.member, children)
        })
    }

    /// Whether every path in this set is in the other.
    pub fn is_subset(&self, other: &FieldSet) -> bool {
        self.nodes.iter().all(|node| match other.find(&node.element) {
            None => false,
            Some(there) => {
                (there.member || !node.member)
                    && match (&node.children, &there.children) {
                        (None, _) => true,
                        (Some(here), Some(there)) => Arc::ptr_eq(here, there) || here.is_subset(there),
                        (Some(_), None) => false,
                    }
            }
        })
    }

    /// The paths that no other path in the set leads on from.
    pub fn leaves(&self) -> FieldSet {
        let nodes = self.nodes.iter().map(|node| match &node.children {
            None => node.clone(),
            Some(children) => Node {
                element: node.element.clone(),
                member: false,
                children: Some(Arc::new(children.leaves())),
            },
        });
        FieldSet { nodes: nodes.collect() }
    }

    /// Calls `each` with every path: those that end at a level before those that lead on from it.
    pub fn for_each(&self, each: &mut dyn FnMut(&[PathElement])) {
        self.walk(&mut Vec::new(), each);
    }

    fn walk(&self, prefix: &mut Path, each: &mut dyn FnMut(&[PathElement])) {
        for node in self.nodes.iter().filter(|node| node.member) {
            prefix.push(node.element.clone());
            each(prefix);
            prefix.pop();
        }
        for node in &self.nodes {
            if let Some(children) = &node.children {
                prefix.push(node.element.clone());
                children.walk(prefix, each);
                prefix.pop();
            }
        }
    }

    /// Every path of the set as text, for messages and tests.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        self.for_each(&mut |path| texts.push(path_text(path)));
        texts
    }
}

/// Which fields a request may own at all: those that a strategy resets are not among them.
#[derive(Debug, Clone)]
pub enum Filter {
    /// All but these fields and what is inside them.
    Exclude(FieldSet),
    /// Only the fields that match one of these patterns, what they lead through, and what is inside them.
    Include(Vec<Pattern>),
}

/// The steps of a path; `None` matches any element.
pub type Pattern = Vec<Option<PathElement>>;

impl Filter {
    /// What the filter leaves of a set.
    pub fn apply(&self, set: &FieldSet) -> FieldSet {
        match self {
            Filter::Exclude(fields) => set.recursive_difference(fields),
            Filter::Include(patterns) => {
                let patterns: Vec<&[Option<PathElement>]> = patterns.iter().map(Vec::as_slice).collect();
                include(set, &patterns)
            }
        }
    }
}

fn include(set: &FieldSet, patterns: &[&[Option<PathElement>]]) -> FieldSet {
    if patterns.is_empty() || patterns.iter().any(|pattern| pattern.is_empty()) {
        return set.clone();
    }
    let nodes = set.nodes.iter().filter_map(|node| {
        let matching: Vec<&[Option<PathElement>]> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first())
            .filter(|(first, _)| first.as_ref().is_none_or(|first| *first == node.element))
            .map(|(_, rest)| rest)
            .collect();
        if matching.is_empty() {
            return None;
        }
        let children =
            node.children.as_ref().map(|children| include(children, &matching)).unwrap_or_default();
        Some(Node::new(node.element.clone(), node.member, children))
    });
    FieldSet::from_nodes(nodes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&[&str]]) -> FieldSet {
        FieldSet::of_fields(paths)
    }

    #[test]
    fn a_parent_and_its_child_are_owned_apart() {
        let parent = set(&[&["a"]]);
        let child = set(&[&["a", "b"]]);
        assert_eq!(parent.difference(&child), parent);
        assert_eq!(child.difference(&parent), child);
        assert_eq!(child.recursive_difference(&parent), FieldSet::new());
        assert_eq!(parent.recursive_difference(&child), parent);
        assert!(parent.intersection(&child).is_empty());
        assert_eq!(parent.union(&child).len(), 2);
        assert_eq!(parent.union(&child).leaves(), child);
    }

    #[test]
    fn paths_that_end_at_a_level_come_before_deeper_ones() {
        let set = set(&[&["a", "x"], &["b"], &["a"], &["c", "y"], &["a", "x", "z"]]);
        assert_eq!(set.texts(), [".a", ".b", ".a.x", ".a.x.z", ".c.y"]);
        assert!(set.has(&[PathElement::field("c"), PathElement::field("y")]));
        assert!(!set.has(&[PathElement::field("c")]) && !set.has(&[]));
    }

    #[test]
    fn filters_leave_out_what_is_reset_or_keep_what_matches() {
        let fields = set(&[&["metadata", "labels"], &["spec"], &["spec", "a"], &["status", "phase"]]);
        let exclude = Filter::Exclude(set(&[&["metadata"], &["spec"]]));
        assert_eq!(exclude.apply(&fields), set(&[&["status", "phase"]]));
        let include = Filter::Include(vec![vec![Some(PathElement::field("spec")), None]]);
        assert_eq!(include.apply(&fields), set(&[&["spec"], &["spec", "a"]]));
        assert_eq!(Filter::Include(vec![]).apply(&fields), fields);
    }
}
