//! The overlay under every interleaving: what was written is read, and what was deleted stays so.

use super::overlay::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

fn object_version(uid: &str, version: u64) -> ObjectVersion {
    ObjectVersion { uid: uid.into(), version }
}

#[test]
fn a_write_is_read_back_before_the_watch_shows_it() {
    let mut view = Overlay::default();
    view.listed(vec![("a", object_version("u", 3), 3)], 5).unwrap();
    assert!(view.wrote("a", object_version("u", 7), 7).is_some());
    assert_eq!(view.shown("a", object_version("u", 6), 6), None, "an event older than the write");
    assert_eq!(view.get(&"a"), Some(&7));
    assert_eq!(view.shown("a", object_version("u", 7), 7), None, "the write's own echo");
    assert_eq!(view.shown("a", object_version("u", 9), 9).unwrap().old, Some(7));
}

#[test]
fn a_list_from_before_the_write_does_not_undo_it() {
    let mut view = Overlay::default();
    view.wrote("a", object_version("u", 7), 7);
    view.listed(vec![], 6).unwrap();
    assert_eq!(view.get(&"a"), Some(&7));
    view.listed(vec![], 7).unwrap();
    assert_eq!(view.get(&"a"), None, "a list at the write's version without it means it was deleted");
}

#[test]
fn a_deleted_object_stays_deleted_until_the_watch_agrees() {
    let mut view = Overlay::default();
    view.wrote("a", object_version("u", 7), 7);
    view.wrote_gone("a", &object_version("u", 7));
    assert_eq!(view.shown("a", object_version("u", 7), 7), None, "its creation comes late");
    assert_eq!(view.get(&"a"), None);
    view.shown_deleted("a", &object_version("u", 8));
    assert!(
        view.shown("a", object_version("v", 9), 9).is_some(),
        "a new object of that name is another matter"
    );
    assert_eq!(view.remembers().0, 0);
}

#[test]
fn a_deletion_that_the_watch_showed_first_leaves_no_tombstone() {
    let mut view: Overlay<&str, u64> = Overlay::default();
    view.shown("a", object_version("u", 7), 7);
    view.shown_deleted("a", &object_version("u", 8));
    view.wrote_gone("a", &object_version("u", 7));
    assert_eq!(view.remembers().0, 0);
}

#[test]
fn a_deleted_object_does_not_bring_its_predecessor_back() {
    let mut view = Overlay::default();
    view.wrote("a", object_version("u", 1), 1);
    view.wrote("a", object_version("v", 3), 3);
    view.wrote_gone("a", &object_version("v", 3));
    assert_eq!(view.shown("a", object_version("u", 1), 1), None, "long replaced by the one that was deleted");
    assert_eq!(view.get(&"a"), None);
    view.bookmark(4);
    assert_eq!(view.remembers().1, 0);
}

#[test]
fn a_list_older_than_the_view_is_refused() {
    let mut view = Overlay::default();
    view.shown("a", object_version("u", 7), 7);
    assert_eq!(view.listed(vec![], 6), Err(Stale { listed: 6, known: 7 }));
    assert_eq!(view.get(&"a"), Some(&7));
}

#[test]
fn one_that_left_and_came_back_before_we_deleted_it_does_not_come_back_with_old_lists() {
    let mut view = Overlay::default();
    view.wrote("a", object_version("u", 1), 1);
    view.wrote_out("a", &object_version("u", 2));
    view.wrote("a", object_version("u", 3), 3);
    view.wrote_gone("a", &object_version("u", 3));
    view.shown_deleted("a", &object_version("u", 2));
    for version in [4, 5] {
        view.listed(vec![("a", object_version("u", 3), 3)], version).unwrap();
        assert_eq!(view.get(&"a"), None, "the list of {version}");
    }
    view.shown_deleted("a", &object_version("u", 6));
    assert_eq!(view.remembers().0, 0);
}

/// A server with a history, the way of its events to us, and what we were told by our own writes.
#[derive(Default)]
struct World {
    history: Vec<(u8, ObjectVersion, bool)>,
    delivered: usize,
    uids: u64,
    /// Those that left the scope of the watch: they are there, and the watch has said that they are not.
    outside: HashMap<u8, Arc<str>>,
}

impl World {
    fn live(&self, at: usize) -> HashMap<u8, ObjectVersion> {
        let mut live = HashMap::new();
        for (name, object_version, alive) in &self.history[..at] {
            match alive {
                true => live.insert(*name, object_version.clone()),
                false => live.remove(name),
            };
        }
        live
    }

    fn write(&mut self, name: u8) -> ObjectVersion {
        let uid = match self.live(self.history.len()).get(&name) {
            Some(object_version) => object_version.uid.clone(),
            None => self.outside.remove(&name).unwrap_or_else(|| {
                self.uids += 1;
                format!("uid-{}", self.uids).into()
            }),
        };
        let object_version = ObjectVersion { uid, version: self.history.len() as u64 + 1 };
        self.history.push((name, object_version.clone(), true));
        object_version
    }

    /// Changes it so that it leaves the scope: to the watch that is its end, at the version of the change.
    fn move_out(&mut self, name: u8) -> Option<ObjectVersion> {
        let uid = self.live(self.history.len()).get(&name)?.uid.clone();
        let object_version = ObjectVersion { uid: uid.clone(), version: self.history.len() as u64 + 1 };
        self.history.push((name, object_version.clone(), false));
        self.outside.insert(name, uid);
        Some(object_version)
    }

    /// Deletes it; returns what it was, with the version that our client last knew.
    fn delete(&mut self, name: u8) -> Option<ObjectVersion> {
        let last = self.live(self.history.len()).get(&name)?.clone();
        let version = self.history.len() as u64 + 1;
        self.history.push((name, ObjectVersion { uid: last.uid.clone(), version }, false));
        Some(last)
    }
}

#[derive(Debug, Clone)]
enum Step {
    OurWrite(u8),
    OurDelete(u8),
    OurMoveOut(u8),
    TheirMoveOut(u8),
    TheirWrite(u8),
    TheirDelete(u8),
    Deliver(u8),
    /// The watch breaks; a list from so many versions ago is taken, and the watch goes on from there.
    Relist(u8),
    Bookmark,
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0u8..3;
    prop_oneof![
        3 => name.clone().prop_map(Step::OurWrite),
        2 => name.clone().prop_map(Step::OurDelete),
        1 => name.clone().prop_map(Step::OurMoveOut),
        1 => name.clone().prop_map(Step::TheirMoveOut),
        2 => name.clone().prop_map(Step::TheirWrite),
        2 => name.prop_map(Step::TheirDelete),
        4 => (1u8..4).prop_map(Step::Deliver),
        2 => (0u8..6).prop_map(Step::Relist),
        1 => Just(Step::Bookmark),
    ]
}

fn deliver(world: &mut World, view: &mut Overlay<u8, ObjectVersion>, count: usize) {
    for _ in 0..count {
        let Some((name, object_version, alive)) = world.history.get(world.delivered).cloned() else { return };
        world.delivered += 1;
        match alive {
            true => view.shown(name, object_version.clone(), object_version),
            false => view.shown_deleted(name, &object_version),
        };
    }
}

proptest! {
    #[test]
    fn a_read_after_a_write_is_never_older_than_the_write(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::default();
        let mut view: Overlay<u8, ObjectVersion> = Overlay::default();
        let mut told: HashMap<u8, u64> = HashMap::new();
        let mut dead: Vec<Arc<str>> = Vec::new();
        for step in steps {
            match step {
                Step::OurWrite(name) => {
                    let object_version = world.write(name);
                    told.insert(name, object_version.version);
                    view.wrote(name, object_version.clone(), object_version);
                }
                Step::OurDelete(name) => {
                    if let Some(last) = world.delete(name) {
                        told.insert(name, world.history.len() as u64);
                        dead.push(last.uid.clone());
                        view.wrote_gone(name, &last);
                    }
                }
                Step::OurMoveOut(name) => {
                    if let Some(object_version) = world.move_out(name) {
                        told.insert(name, object_version.version);
                        view.wrote_out(name, &object_version);
                    }
                }
                Step::TheirMoveOut(name) => { world.move_out(name); }
                Step::TheirWrite(name) => { world.write(name); }
                Step::TheirDelete(name) => { world.delete(name); }
                Step::Deliver(count) => deliver(&mut world, &mut view, count.into()),
                Step::Relist(back) => {
                    let at = world.history.len().saturating_sub(back.into());
                    let items = world.live(at).into_iter().map(|(name, object_version)| (name, object_version.clone(), object_version));
                    let _ = view.listed(items.collect(), at as u64);
                    world.delivered = at;
                }
                Step::Bookmark => view.bookmark(world.delivered as u64),
            }
            for (name, version) in &told {
                // Absence is right only if the object is really gone by now; presence must be as new as we were told.
                match view.get(name) {
                    Some(object_version) => prop_assert!(object_version.version >= *version, "{name}: {object_version:?} < {version}"),
                    None => {
                        let ended = world.history[*version as usize - 1..]
                            .iter()
                            .any(|(other, _, alive)| other == name && !alive);
                        prop_assert!(ended, "{name} is missing");
                    }
                }
            }
            for uid in &dead {
                prop_assert!(view.iter().all(|(_, object_version)| object_version.uid != *uid), "{uid} came back");
            }
        }
        let rest = world.history.len();
        deliver(&mut world, &mut view, rest);
        let end: HashMap<u8, ObjectVersion> = view.iter().map(|(name, object_version)| (*name, object_version.clone())).collect();
        prop_assert_eq!(end, world.live(world.history.len()));
        prop_assert_eq!(view.remembers().0, 0, "the watch has shown every deletion");
    }
}
