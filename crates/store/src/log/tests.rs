//! The log's promises, on a disk that loses power: what was acknowledged is there, what is seen is whole, nothing is seen
//! too early.

use super::disk::Disk;
use super::file::{Role, START};
use super::frame::HEADER;
use super::recover::recover;
use super::simulated::{Random, SimulatedDisk};
use super::snapshot::Snapshot;
use super::writer::{Outcome, Writer};
use super::*;
use crate::{Body, CommitError, Compacted, Entry, ListQuery, Revision, Store};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// Small enough that a few changes reach every boundary.
fn limits(random: &mut Random) -> Limits {
    Limits {
        batch: 8,
        batch_bytes: 1000,
        growth: [1, 100, 300, 4096][random.below(4) as usize],
        segment: [1, 600, 2000, 100_000][random.below(4) as usize],
        snapshot: [500, 3000, 100_000][random.below(3) as usize],
        snapshot_step: 1 + random.below(3) as usize,
        snapshot_frame: [1, 300, 10_000][random.below(3) as usize],
        snapshot_sync: [1, 500, 10_000][random.below(3) as usize],
    }
}

fn open_on(disk: &SimulatedDisk, limits: Limits) -> Result<Writer, OpenError> {
    writer(Arc::new(disk.clone()), Options::default(), Clock::real(), limits)
}

/// A store that only reads: the test is its own writer.
fn reading(writer: &Writer) -> Store {
    Store { state: writer.state().clone(), writing: None }
}

fn key(name: &str) -> Key {
    Key::new(if name < "c" { "configmaps" } else { "secrets" }, if name == "a" { "" } else { "n" }, name)
}

fn body(name: &str, data: u64) -> Body {
    let filler = "x".repeat((data % 7) as usize * 40);
    let value = json!({
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": format!("u-{name}"), "labels": {"parity": (data % 2).to_string()}},
        "data": {"data": data, "filler": filler},
    });
    let body = Body::encode(&value, vec![("spec.data".into(), data.to_string().into())]);
    if data.is_multiple_of(3) { body.written_as(&json!(data)) } else { body }
}

/// What the store should hold: the revision and the data of each object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Model {
    revision: u64,
    objects: BTreeMap<&'static str, (u64, u64)>,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A change, as the model sees it: an object, the version that is expected, and what becomes of it.
type Step = (&'static str, Option<u64>, Option<u64>);

impl Model {
    /// Makes the change if it can be made; says what the store must answer: the revision of the object after it.
    fn apply(&mut self, (name, expected, data): Step) -> Option<u64> {
        let found = self.objects.get(name).copied();
        if found.map(|(revision, _)| revision) != expected || (found.is_none() && data.is_none()) {
            return None;
        }
        if let (Some((revision, before)), Some(data)) = (found, data)
            && before == data
        {
            return Some(revision);
        }
        self.revision += 1;
        match data {
            Some(data) => drop(self.objects.insert(name, (self.revision, data))),
            None => drop(self.objects.remove(name)),
        }
        Some(self.revision)
    }

    /// What a store shows, looked at closely: what it says beside the JSON was written beside it, too.
    fn of(store: &Store) -> Self {
        for resource in ["configmaps", "secrets"] {
            for entry in store.list(&ListQuery::all(resource)).unwrap().items {
                let name = &*entry.key().name;
                let data: u64 = entry.field("spec.data").unwrap().parse().unwrap();
                let whole = Entry::new(key(name), entry.revision(), body(name, data));
                assert_eq!(entry.json(), whole.json());
                assert_eq!(entry.json_rest(), whole.json_rest());
                assert_eq!((entry.uid(), entry.labels()), (whole.uid(), whole.labels()));
                assert_eq!(entry.unseen(), whole.unseen());
            }
        }
        Self::glance(store)
    }

    /// What a store shows.
    fn glance(store: &Store) -> Self {
        let mut objects = BTreeMap::new();
        for resource in ["configmaps", "secrets"] {
            for entry in store.list(&ListQuery::all(resource)).unwrap().items {
                let name = NAMES.into_iter().find(|name| **name == *entry.key().name).unwrap();
                let data = entry.field("spec.data").unwrap().parse().unwrap();
                objects.insert(name, (entry.revision().0, data));
            }
        }
        Self { revision: store.revision().0, objects }
    }
}

fn change((name, expected, data): Step) -> Change {
    let key = key(name);
    match (expected, data) {
        (None, data) => Change::Create { body: body(name, data.unwrap_or_default()), key },
        (Some(expected), Some(data)) => {
            Change::Update { expected: Revision(expected), body: body(name, data), key }
        }
        (Some(expected), None) => Change::Delete { key, expected: Revision(expected) },
    }
}

fn random_step(random: &mut Random, model: &Model) -> Step {
    let name = NAMES[random.below(NAMES.len() as u64) as usize];
    let found = model.objects.get(name).map(|(revision, _)| *revision);
    // Now and then someone who did not look.
    let expected = if random.once_in(8) { Some(random.below(5)) } else { found };
    let data = (expected.is_none() || !random.once_in(4)).then(|| random.below(20));
    (name, expected, data)
}

fn stored(outcome: &Outcome) -> bool {
    !matches!(outcome, Err(CommitError::NotStored(_)))
}

/// One store through several lives: each ends by a loss of power or of the process, at any operation on the disk. Returns
/// how many batches were acknowledged.
fn live(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut disk = SimulatedDisk::new(random.next());
    let mut acknowledged = 0;
    let mut model = Model { revision: 1, ..Model::default() };
    // What may be there besides: changes that failed or were interrupted, as long as nothing was acknowledged after them.
    let mut in_doubt: Vec<Model> = vec![];
    for _ in 0..=random.below(5) {
        let fuse = random.below(150);
        disk.end_after((!random.once_in(3)).then_some(fuse), random.once_in(2));
        disk.fail_syncs(random.once_in(3).then(|| 3 + random.below(20)));
        let limits = limits(&mut random);
        let mut writer = match open_on(&disk, limits) {
            Ok(writer) => writer,
            // No more is known of a disk that fails while it is opened than of one that lost power.
            Err(OpenError::Disk { .. }) => {
                disk = disk.after_power_loss();
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let store = reading(&writer);
        let found = Model::of(&store);
        if found != model {
            assert!(
                in_doubt.contains(&found),
                "seed {seed}: {found:?} is none of {model:?} and {in_doubt:?}"
            );
            model = found;
            in_doubt.clear();
        }
        assert_eq!(store.oldest("configmaps").0, model.revision);
        let mut snapshot: Option<Snapshot> = None;
        for _ in 0..random.below(40) {
            if random.once_in(12) {
                let room = random.below(2000) as usize;
                disk.leave_room((!random.once_in(3)).then_some(room));
            }
            snapshot = match snapshot.take() {
                Some(mut snapshot) => match snapshot.step() {
                    Ok(true) => None,
                    Ok(false) => Some(snapshot),
                    Err(_) => {
                        snapshot.abandon();
                        None
                    }
                },
                None if writer.wants_snapshot() || random.once_in(10) => writer.begin_snapshot().ok(),
                None => None,
            };
            if random.once_in(6)
                && let Some(mark) = writer.mark()
            {
                mark.sync();
            }
            let mut after = model.clone();
            let (mut changes, mut expected) = (vec![], vec![]);
            for _ in 0..1 + random.below(4) {
                let step = random_step(&mut random, &after);
                // A creation of nothing is no change that anyone can ask for.
                if step.1.is_none() && step.2.is_none() {
                    continue;
                }
                expected.push(after.apply(step));
                changes.push(change(step));
            }
            let mut watcher = store.watch("configmaps", None, store.revision()).unwrap();
            let outcomes = writer.commit(changes);
            if outcomes.iter().all(stored) {
                let given: Vec<_> = outcomes
                    .iter()
                    .map(|outcome| outcome.as_ref().ok().map(|entry| entry.revision().0))
                    .collect();
                assert_eq!(given, expected, "seed {seed}");
                if after.revision > model.revision {
                    in_doubt.clear();
                    acknowledged += 1;
                }
                model = after;
            } else {
                in_doubt.push(after);
                assert_eq!(watcher.try_next().unwrap().map(|event| event.revision()), None, "seed {seed}");
            }
            assert_eq!(Model::glance(&store), model, "seed {seed}: what is seen is what was acknowledged");
            if disk.is_over() {
                break;
            }
        }
        let survived = disk.after_process().filter(|_| random.once_in(2));
        disk = survived.unwrap_or_else(|| disk.after_power_loss());
    }
    acknowledged
}

#[test]
fn whatever_was_acknowledged_survives_every_loss_of_power() {
    const SEEDS: u64 = 3000;
    let first = std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let seeds = std::env::var("WINDLASS_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let acknowledged: u64 = (first..first + seeds).map(live).sum();
    println!("{seeds} seeds, {acknowledged} batches acknowledged");
    assert!(acknowledged >= seeds.min(10) / 10, "the disk fails too often for the test to mean anything");
}

/// A disk with some batches in one segment; and the model after each of them, the empty one first.
fn written(batches: u64) -> (SimulatedDisk, Vec<Model>) {
    let disk = SimulatedDisk::new(1);
    let mut writer = open_on(&disk, Limits { growth: 4096, ..Limits::default() }).unwrap();
    let mut models = vec![Model { revision: 1, ..Model::default() }];
    for data in 0..batches {
        let mut model = models.last().unwrap().clone();
        let name = NAMES[(data % 3) as usize];
        let step = (name, model.objects.get(name).map(|(revision, _)| *revision), Some(data));
        model.apply(step).unwrap();
        assert!(writer.commit(vec![change(step)])[0].is_ok());
        models.push(model);
    }
    (disk, models)
}

fn first_segment() -> String {
    Role::Segment.name(1)
}

/// Where each frame of the only segment starts, and where the last one ends.
fn frame_offsets(disk: &SimulatedDisk) -> Vec<usize> {
    let mut bytes = vec![];
    std::io::Read::read_to_end(&mut disk.read(&first_segment()).unwrap(), &mut bytes).unwrap();
    let scan = segment::scan(&bytes, 1);
    scan.frames.iter().map(|(offset, ..)| *offset).chain([scan.end]).collect()
}

/// A disk as after a loss of power that took the mark as well: the same log, and no word of how far it was acknowledged.
fn without_mark(disk: &SimulatedDisk) {
    disk.remove(mark::FILE).unwrap();
}

#[test]
fn a_log_that_is_damaged_at_its_end_is_cut_there_if_that_was_not_acknowledged() {
    let (_, models) = written(4);
    let offsets = frame_offsets(&written(4).0);
    for at in [offsets[3], offsets[3] + 13, offsets[3] + HEADER, offsets[4] - 1] {
        let (disk, _) = written(4);
        disk.tamper(&first_segment(), |bytes| bytes[at] ^= 1);
        let refused = open_on(&disk, Limits::default()).unwrap_err();
        assert!(matches!(refused, OpenError::Lost { reached: 4, acknowledged: 5, .. }), "{refused}");
        without_mark(&disk);
        let writer = open_on(&disk, Limits::default()).unwrap();
        assert_eq!(Model::of(&reading(&writer)), models[3]);
        assert_eq!(*frame_offsets(&disk).last().unwrap(), offsets[3]);
    }
    for length in [START, offsets[1] - 1, offsets[2], offsets[2] + 7] {
        let (disk, _) = written(4);
        disk.tamper(&first_segment(), |bytes| bytes.truncate(length));
        assert!(matches!(open_on(&disk, Limits::default()), Err(OpenError::Lost { .. })));
        without_mark(&disk);
        let writer = open_on(&disk, Limits::default()).unwrap();
        let whole = offsets.iter().filter(|offset| **offset <= length).count() - 1;
        assert_eq!(Model::of(&reading(&writer)), models[whole]);
    }
}

/// Several segments and a snapshot, closed; and the model at the end.
fn with_every_kind_of_file() -> (SimulatedDisk, Model) {
    let (disk, models) = written(2);
    let small = Limits { segment: 200, growth: 64, ..Limits::default() };
    let mut writer = open_on(&disk, small).unwrap();
    let mut snapshot = writer.begin_snapshot().unwrap();
    while !snapshot.step().unwrap() {}
    let mut model = models.last().unwrap().clone();
    for data in 10..14 {
        let step = ("d", model.objects.get("d").map(|(revision, _)| *revision), Some(data));
        model.apply(step).unwrap();
        assert!(writer.commit(vec![change(step)])[0].is_ok());
    }
    (disk, model)
}

#[test]
fn whatever_is_removed_or_cut_off_is_noticed_or_was_not_needed() {
    let (disk, model) = with_every_kind_of_file();
    let names = disk.names().unwrap();
    assert!(names.len() >= 5, "{names:?}");
    let length = |name: &str| {
        let mut bytes = vec![];
        std::io::Read::read_to_end(&mut disk.read(name).unwrap(), &mut bytes).unwrap();
        bytes.len()
    };
    let mut refused = 0;
    let mut look = |what: &str, harm: &dyn Fn(&SimulatedDisk)| {
        let (disk, _) = with_every_kind_of_file();
        harm(&disk);
        match open_on(&disk, Limits::default()) {
            Ok(writer) => assert_eq!(Model::of(&reading(&writer)), model, "{what}"),
            Err(_) => refused += 1,
        }
    };
    for name in &names {
        look(&format!("{name} is removed"), &|disk| disk.remove(name).unwrap());
        // Every seventh: all kinds of places, within a second.
        for length in (0..length(name)).step_by(7) {
            look(&format!("{name} is cut to {length}"), &|disk| {
                disk.tamper(name, |bytes| bytes.truncate(length));
            });
        }
        for other in names.iter().filter(|other| *other > name) {
            look(&format!("{name} and {other} are swapped"), &|disk| {
                let mut kept = vec![];
                disk.tamper(name, |bytes| kept = std::mem::take(bytes));
                disk.tamper(other, |bytes| std::mem::swap(bytes, &mut kept));
                disk.tamper(name, |bytes| *bytes = kept);
            });
        }
    }
    look("all of the log is removed", &|disk| {
        names.iter().filter(|name| *name != mark::FILE).for_each(|name| disk.remove(name).unwrap());
    });
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_loss_that_is_accepted_takes_no_revision_back() {
    let (disk, models) = written(4);
    let offsets = frame_offsets(&disk);
    disk.tamper(&first_segment(), |bytes| bytes.truncate(offsets[2]));
    let options = || Options { accept_data_loss: true, ..Options::default() };
    let accepted =
        |disk: &SimulatedDisk| writer(Arc::new(disk.clone()), options(), Clock::real(), Limits::default());
    let mut writer = accepted(&disk).unwrap();
    let found = Model::of(&reading(&writer));
    assert_eq!((found.revision, found.objects), (models[4].revision, models[2].objects.clone()));
    let made = writer.commit(vec![change(("e", None, Some(1)))]).remove(0).unwrap();
    assert_eq!(made.revision().0, models[4].revision + 1);
    let after = Model::of(&reading(&writer));
    drop(writer);
    let again = open_on(&disk.after_power_loss(), Limits::default()).unwrap();
    assert_eq!(Model::of(&reading(&again)), after);
}

#[test]
fn a_mark_whose_both_slots_are_damaged_is_refused() {
    for (at, harmless) in [(vec![3], true), (vec![515], true), (vec![3, 515], false)] {
        let (disk, _) = written(4);
        // Both slots say the same, as when it was just made.
        disk.tamper(mark::FILE, |bytes| {
            let (first, second) = bytes.split_at_mut(512);
            second[..20].copy_from_slice(&first[..20]);
            at.iter().for_each(|at| bytes[*at] ^= 1);
        });
        let opened = open_on(&disk, Limits::default());
        assert_eq!(opened.is_ok(), harmless, "{at:?}");
        assert!(harmless || matches!(opened, Err(OpenError::Damaged { .. })));
    }
}

#[test]
fn a_log_that_is_damaged_in_its_middle_is_refused_with_file_and_place() {
    let offsets = frame_offsets(&written(4).0);
    for (at, told) in [
        (offsets[0], offsets[0]),
        (offsets[2] + 5, offsets[2]),
        (offsets[2] + HEADER + 3, offsets[2]),
        (3, 0),
    ] {
        let (disk, _) = written(4);
        disk.tamper(&first_segment(), |bytes| bytes[at] ^= 0x40);
        let error = open_on(&disk, Limits::default()).unwrap_err();
        let wanted = format!("/simulated/{} is damaged at byte {told}: ", first_segment());
        assert!(error.to_string().starts_with(&wanted), "{error}");
    }
}

#[test]
fn a_missing_or_damaged_segment_is_refused() {
    let several = || {
        let disk = SimulatedDisk::new(1);
        let mut writer = open_on(&disk, Limits { segment: 1, ..Limits::default() }).unwrap();
        for name in &NAMES[..3] {
            writer.commit(vec![change((name, None, Some(1)))]).remove(0).unwrap();
        }
        disk
    };
    for missing in [1, 2] {
        let disk = several();
        disk.remove(&Role::Segment.name(missing)).unwrap();
        let error = open_on(&disk, Limits::default()).unwrap_err().to_string();
        assert!(
            error.contains(&Role::Segment.name(missing + 1)) || error.contains("cannot be read"),
            "{error}"
        );
    }
    let disk = several();
    disk.tamper(&Role::Segment.name(2), |bytes| bytes[START + 4] ^= 1);
    let error = open_on(&disk, Limits::default()).unwrap_err().to_string();
    assert!(
        error.contains(&Role::Segment.name(2)) && error.contains("revisions 3 to 3 cannot be read"),
        "{error}"
    );
    assert!(open_on(&several(), Limits::default()).is_ok());
}

#[test]
fn a_damaged_snapshot_is_refused_and_an_unknown_form_is_told() {
    let with_snapshot = || {
        let (disk, models) = written(4);
        let mut writer = open_on(&disk, Limits::default()).unwrap();
        let mut snapshot = writer.begin_snapshot().unwrap();
        while !snapshot.step().unwrap() {}
        (disk, models, snapshot.size())
    };
    let (disk, models, size) = with_snapshot();
    assert_eq!(disk.names().unwrap(), [Role::Snapshot.name(2), mark::FILE.to_owned()]);
    assert_eq!(Model::of(&reading(&open_on(&disk, Limits::default()).unwrap())), models[4]);
    for at in 0..size as usize {
        let (disk, ..) = with_snapshot();
        disk.tamper(&Role::Snapshot.name(2), |bytes| bytes[at] ^= 4);
        assert!(matches!(open_on(&disk, Limits::default()), Err(OpenError::Damaged { .. })), "{at}");
    }
    let (disk, ..) = with_snapshot();
    disk.tamper(&Role::Snapshot.name(2), |bytes| {
        bytes[8] = 9;
        let sum = checksum::checksum(0, &bytes[..28]).to_le_bytes();
        bytes[28..32].copy_from_slice(&sum);
    });
    assert!(matches!(open_on(&disk, Limits::default()), Err(OpenError::Format { format: 9, .. })));
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let disk = SimulatedDisk::new(3);
    let mut writer = open_on(&disk, Limits { growth: 100, ..Limits::default() }).unwrap();
    let store = reading(&writer);
    writer.commit(vec![change(("a", None, Some(1)))]).remove(0).unwrap();
    disk.leave_room(Some(50));
    let seen = Model::of(&store);
    for data in 2..5 {
        let outcomes = writer.commit(vec![change(("b", None, Some(data))), change(("a", None, Some(data)))]);
        let full = |outcome: &Outcome| match outcome {
            Err(CommitError::NotStored(error)) => error.kind() == std::io::ErrorKind::StorageFull,
            _ => false,
        };
        assert!(full(&outcomes[0]), "{outcomes:?}");
        assert!(matches!(outcomes[1], Err(CommitError::Exists(_))), "it does not depend on what failed");
        assert_eq!(Model::of(&store), seen);
    }
    disk.leave_room(None);
    let made = writer.commit(vec![change(("b", None, Some(9)))]).remove(0).unwrap();
    assert_eq!(made.revision().0, seen.revision + 1);
    let after = Model::of(&store);
    let again = open_on(&disk.after_power_loss(), Limits::default()).unwrap();
    assert_eq!(Model::of(&reading(&again)), after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_seen_before_it_is_synced_and_waiting_changes_share_a_sync() {
    let disk = SimulatedDisk::new(5);
    let (state, writing) = start(open_on(&disk, Limits::default()).unwrap(), Path::new("simulated")).unwrap();
    let store = Arc::new(Store { state, writing: Some(writing) });
    let clock = Clock::real();
    store.commit(change(("a", None, Some(1)))).await.unwrap();
    let mut watcher = store.watch("secrets", None, store.revision()).unwrap();
    disk.hold_syncs(true);
    let commit = |name: &'static str| {
        let store = store.clone();
        tokio::spawn(async move { store.commit(change((name, None, Some(1)))).await })
    };
    let mut waiting = vec![commit("c")];
    while disk.waiting_syncs() == 0 {
        clock.sleep(Duration::from_millis(1)).await;
    }
    waiting.extend([commit("d"), commit("e"), commit("d")]);
    clock.sleep(Duration::from_millis(30)).await;
    assert_eq!(store.revision(), Revision(2));
    assert!(store.get(&key("c")).is_none());
    assert!(store.list(&ListQuery::all("secrets")).unwrap().items.is_empty());
    assert!(watcher.try_next().unwrap().is_none());
    assert!(waiting.iter().all(|task| !task.is_finished()));
    disk.hold_syncs(false);
    let mut made = 0;
    for task in waiting {
        match task.await.unwrap() {
            Ok(_) => made += 1,
            Err(CommitError::Exists(found)) => assert_eq!(found.key(), &key("d")),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(made, 3);
    let seen: Vec<u64> =
        std::iter::from_fn(|| watcher.try_next().unwrap()).map(|event| event.revision().0).collect();
    assert_eq!(seen, [3, 4, 5]);
    drop(store);
    let mut bytes = vec![];
    std::io::Read::read_to_end(&mut disk.read(&first_segment()).unwrap(), &mut bytes).unwrap();
    let counts: Vec<u32> =
        segment::scan(&bytes, 1).frames.iter().map(|(_, header, _)| header.count).collect();
    assert_eq!(counts, [1, 1, 2], "what waited became one frame");
}

#[test]
fn history_before_the_restart_is_compacted_and_revisions_go_on() {
    let (disk, models) = written(4);
    let mut writer = open_on(&disk, Limits::default()).unwrap();
    let store = reading(&writer);
    let last = models[4].revision;
    for resource in ["configmaps", "never-used"] {
        let refused = store.watch(resource, None, Revision(last - 1)).unwrap_err();
        assert_eq!(refused, Compacted { oldest: Revision(last) });
        assert!(store.watch(resource, None, Revision(last)).is_ok());
    }
    assert_eq!(writer.commit(vec![change(("e", None, Some(1)))])[0].as_ref().unwrap().revision().0, last + 1);
}

proptest! {
    #[test]
    fn any_bytes_are_a_log_or_are_refused(
        garbage in prop::collection::vec(any::<u8>(), 0..300),
        segment in any::<bool>(),
        whole_start in any::<bool>(),
    ) {
        let role = if segment { Role::Segment } else { Role::Snapshot };
        let mut bytes = vec![];
        if whole_start {
            bytes.extend(file::Start { role, number: 1, revision: 2 }.to_bytes());
        }
        bytes.extend(&garbage);
        let disk = SimulatedDisk::new(0);
        disk.tamper(&role.name(1), |file| *file = bytes);
        let _ = open_on(&disk, Limits::default());
    }

    #[test]
    fn sealed_nonsense_is_refused_without_a_panic(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        count in 0..4_u32,
        number in prop_oneof![Just(2), any::<u64>()],
        segment in any::<bool>(),
        revision in prop_oneof![Just(2), any::<u64>()],
    ) {
        let role = if segment { Role::Segment } else { Role::Snapshot };
        let mut bytes = file::Start { role, number: 1, revision }.to_bytes().to_vec();
        let mut framed = frame::start();
        framed.extend(&payload);
        frame::seal(&mut framed, 1, number, count);
        bytes.extend(framed);
        let disk = SimulatedDisk::new(0);
        disk.tamper(&role.name(1), |file| *file = bytes);
        let _ = open_on(&disk, Limits::default());
    }

    #[test]
    fn a_log_with_any_damage_opens_at_some_earlier_state_or_not_at_all(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (disk, models) = written(5);
        let end = *frame_offsets(&disk).last().unwrap();
        disk.tamper(&first_segment(), |bytes| {
            for (at, byte) in edits {
                bytes[at.index(end)] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(end));
            }
        });
        if let Ok(recovered) = recover(&disk, Options::default(), Clock::real()) {
            let store = Store { state: Arc::new(recovered.state), writing: None };
            prop_assert_eq!(&Model::of(&store), models.last().unwrap());
        }
        without_mark(&disk);
        if let Ok(recovered) = recover(&disk, Options::default(), Clock::real()) {
            let store = Store { state: Arc::new(recovered.state), writing: None };
            prop_assert!(models.contains(&Model::of(&store)));
        }
    }
}
