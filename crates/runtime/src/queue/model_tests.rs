//! The queue's core against a model that is too simple to be wrong.

use super::backoff::Backoff;
use super::core::Core;
use super::priority::Priority;
use proptest::prelude::*;
use std::time::Duration;
use windlass_clock::Moment;

/// A list of keys that is searched from end to end for everything.
#[derive(Default)]
struct Model {
    keys: Vec<Key>,
    now: Moment,
    /// Counts events, to say what came first.
    count: u64,
}

struct Key {
    name: u8,
    failures: u32,
    taken: Option<Priority>,
    queued: Option<Queued>,
}

#[derive(Clone, Copy)]
struct Queued {
    due: Moment,
    priority: Priority,
    first_queued: u64,
    /// When it joined those that are ready at its priority; none while it waits or its worker has it.
    joined: Option<u64>,
}

impl Model {
    fn key(&mut self, name: u8) -> &mut Key {
        if let Some(index) = self.keys.iter().position(|key| key.name == name) {
            return &mut self.keys[index];
        }
        self.keys.push(Key { name, failures: 0, taken: None, queued: None });
        self.keys.last_mut().unwrap()
    }

    fn tick(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Lets everyone who is due and not with a worker join, in the order of due times.
    fn advance(&mut self) {
        loop {
            let now = self.now;
            let may_join = |key: &&mut Key| {
                key.taken.is_none()
                    && key.queued.is_some_and(|queued| queued.joined.is_none() && queued.due <= now)
            };
            let tick = self.tick();
            let order = |key: &&mut Key| key.queued.map(|queued| (queued.due, queued.first_queued));
            let Some(key) = self.keys.iter_mut().filter(may_join).min_by_key(order) else { break };
            key.queued.as_mut().unwrap().joined = Some(tick);
        }
    }

    fn add(&mut self, name: u8, due: Moment, priority: Priority) {
        self.advance();
        let due = due.max(self.now);
        let tick = self.tick();
        let key = self.key(name);
        match &mut key.queued {
            None => key.queued = Some(Queued { due, priority, first_queued: tick, joined: None }),
            Some(queued) => {
                queued.due = queued.due.min(due);
                if priority > queued.priority {
                    queued.priority = priority;
                    queued.joined = queued.joined.map(|_| tick);
                }
            }
        }
        self.advance();
    }

    fn retry(&mut self, name: u8) -> Duration {
        let key = self.key(name);
        key.failures += 1;
        let delay = Backoff::default().delay(key.failures);
        let queued = key.queued.map(|queued| queued.priority);
        let priority = key.taken.or(queued).unwrap_or_default();
        self.add(name, self.now + delay, priority);
        delay
    }

    fn take(&mut self) -> Option<(u8, Priority, u32, Duration)> {
        self.advance();
        let now = self.now;
        let ready =
            self.keys.iter_mut().filter(|key| key.queued.is_some_and(|queued| queued.joined.is_some()));
        let next = ready.min_by_key(|key| {
            let queued = key.queued.unwrap();
            (std::cmp::Reverse(queued.priority), queued.joined)
        })?;
        let queued = next.queued.take().unwrap();
        next.taken = Some(queued.priority);
        Some((next.name, queued.priority, next.failures, now - queued.due))
    }

    fn next_due(&self) -> Option<Moment> {
        self.keys
            .iter()
            .filter_map(|key| key.queued)
            .map(|queued| queued.due)
            .filter(|due| *due > self.now)
            .min()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add { name: u8, after: u64, priority: i8 },
    AddInThePast { name: u8 },
    Retry { name: u8 },
    Forget { name: u8 },
    Take,
    Done { which: usize },
    Pass { millis: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..12_u8;
    let after = prop_oneof![2 => Just(0), 3 => 0..20_u64];
    prop_oneof![
        4 => (name(), after, -1..=1_i8).prop_map(|(name, after, priority)| Step::Add { name, after, priority }),
        1 => name().prop_map(|name| Step::AddInThePast { name }),
        2 => name().prop_map(|name| Step::Retry { name }),
        1 => name().prop_map(|name| Step::Forget { name }),
        4 => Just(Step::Take),
        3 => any::<usize>().prop_map(|which| Step::Done { which }),
        2 => (0..15_u64).prop_map(|millis| Step::Pass { millis }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_core_does_what_the_model_does(steps in prop::collection::vec(step(), 1..200)) {
        let mut core = Core::new(Backoff::default());
        let mut model = Model::default();
        let mut taken = Vec::new();
        let mut most = 0;
        for step in steps {
            match step {
                Step::Add { name, after, priority } => {
                    let (due, priority) = (model.now + Duration::from_millis(after), Priority(priority));
                    core.add(name, due, priority, model.now);
                    model.add(name, due, priority);
                }
                Step::AddInThePast { name } => {
                    core.add(name, Moment::default(), Priority::NORMAL, model.now);
                    model.add(name, Moment::default(), Priority::NORMAL);
                }
                Step::Retry { name } => {
                    prop_assert_eq!(core.retry(name, Duration::ZERO, model.now), model.retry(name));
                }
                Step::Forget { name } => {
                    core.forget(&name);
                    model.key(name).failures = 0;
                }
                Step::Take => {
                    let handed = core.take(model.now);
                    let seen = handed.as_ref().map(|it| (it.key, it.priority, it.failures, it.waited));
                    prop_assert_eq!(seen, model.take());
                    taken.extend(handed);
                }
                Step::Done { which } if !taken.is_empty() => {
                    let handed = taken.swap_remove(which % taken.len());
                    core.done(handed.slot);
                    model.key(handed.key).taken = None;
                    model.advance();
                }
                Step::Done { .. } => {}
                Step::Pass { millis } => {
                    model.now += Duration::from_millis(millis);
                    model.advance();
                    core.depth(model.now);
                }
            }
            let queued: Vec<Queued> = model.keys.iter().filter_map(|key| key.queued).collect();
            prop_assert_eq!(core.len(), queued.len());
            prop_assert_eq!(core.ready(), queued.iter().filter(|queued| queued.joined.is_some()).count());
            prop_assert_eq!(core.next_due(), model.next_due());
            let depth = core.depth(model.now);
            prop_assert_eq!(depth.taken, taken.len());
            prop_assert_eq!(depth.ready.iter().map(|(_, len)| len).sum::<usize>(), core.ready());
            let remembered = model.keys.iter().filter(|key| {
                key.failures > 0 || key.taken.is_some() || key.queued.is_some()
            }).count();
            prop_assert_eq!(core.remembered(), remembered);
            most = most.max(remembered);
            prop_assert_eq!(core.slots(), most);
        }
    }
}

#[test]
fn many_due_times_come_out_in_order_and_leave_nothing_behind() {
    const KEYS: u64 = 100_000;
    let mut core = Core::new(Backoff::default());
    let start = Moment::default();
    for key in 0..KEYS {
        // A full cycle through all remainders, in no visible order.
        core.add(key, start + Duration::from_micros(key * 7919 % KEYS + 1), Priority::NORMAL, start);
    }
    for reconcile in 1..=KEYS {
        let now = start + Duration::from_micros(reconcile);
        let handed = core.take(now).unwrap();
        assert_eq!(handed.key * 7919 % KEYS + 1, reconcile);
        assert!(core.take(now).is_none());
        core.done(handed.slot);
    }
    assert_eq!((core.len(), core.remembered()), (0, 0));
}
