//! What an agent does next, decided purely from what it sees. One step at a time: after each it looks again.

use super::sql::State;
use crate::api::v1alpha1::SampleDBInstanceSpec;
use crate::leadership::Leadership;
use crate::timelines::Timelines;
use std::collections::BTreeMap;

/// What an agent sees.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// Its instance.
    pub instance: &'a str,
    /// Its run.
    pub run: &'a str,
    /// The identity of its copy of the data.
    pub clone: &'a str,
    /// What the Lease says, as last seen.
    pub leadership: Option<&'a Leadership>,
    /// What the operator wants of the instance.
    pub spec: Option<&'a SampleDBInstanceSpec>,
    /// The data that is there.
    pub data: Option<Data>,
    /// The server.
    pub server: Server,
    /// The highest epoch that was recorded beside the data.
    pub epoch: i32,
    /// The epoch whose primary the data follows.
    pub followed: i32,
    /// Whether the last answers about where the data ends were the same.
    pub settled: bool,
    /// How many times in a row the server ended by itself soon after its start.
    pub crashes: u32,
    /// Whether following the primary has not worked for a while.
    pub cut_off: bool,
    /// Whether that was so before, and rewinding the data did not help.
    pub rewound: bool,
    /// The restart that was asked for and done last.
    pub restarted: Option<&'a str>,
    /// The identifier of data that an upgrade took the place of.
    pub superseded: Option<&'a str>,
}

/// A data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Which database's.
    pub system_identifier: String,
    /// Whether its server starts as a standby.
    pub standby: bool,
    /// The timelines that it is of.
    pub timelines: Timelines,
    /// What some parameters of a standby must be at least.
    pub floors: BTreeMap<String, u64>,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// There is none.
    Stopped,
    /// It does not answer yet.
    Starting,
    /// It has answered nothing for too long: it hangs, or is frozen.
    Silent,
    /// It answers.
    Running(State),
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing, but for what a primary does all the time: what is waited for, or how it is.
    Nothing(String),
    /// Take the Lease for this run.
    Take,
    /// Make a new database.
    Initialize,
    /// Make a new database of a backup.
    Restore,
    /// Write the database's identifier into the Lease.
    RecordIdentifier,
    /// Copy an instance's data.
    Clone(String),
    /// Take away what an instance's data has not, and follow it.
    Rewind(String),
    /// Record the Lease's epoch beside the data.
    RecordEpoch,
    /// Start as a standby from now on.
    BecomeStandby,
    /// Start the server.
    Start {
        /// The instance to follow.
        follow: Option<String>,
    },
    /// Have the server follow an instance, or none.
    Follow(Option<String>),
    /// Record that the data follows the primary of the Lease's epoch.
    RecordFollowed,
    /// Stop the server.
    Stop(String),
    /// Kill the server: it must not write any more.
    Kill,
    /// Make the standby a primary.
    Promote,
    /// Ask to be counted on no more: its data is about to be replaced.
    Leave,
    /// Give the Lease back, and let others decide.
    Release(String),
    /// Stop the server and give the Lease back, for another to take it.
    HandOver(String),
    /// Restart the server.
    Restart(String),
}

/// Starts that fail before a primary gives up, and a replica its data.
const CRASHES: u32 = 3;

/// Decides the next step.
pub fn decide(view: &View<'_>) -> Step {
    let Some(leadership) = view.leadership else { return nothing("the Lease is not there") };
    let Some(spec) = view.spec else { return nothing("the SampleDBInstance is not there") };
    if leadership.epoch < view.epoch {
        return nothing("an old version of the Lease was read");
    }
    if view.server == Server::Silent {
        // Whatever it was to do, it does not; it is started again.
        return Step::Kill;
    }
    if spec.fenced {
        return fence(view, leadership);
    }
    match &view.data {
        None => begin(view, leadership, spec),
        Some(data) => go_on(view, leadership, spec, data),
    }
}

fn nothing(why: &str) -> Step {
    Step::Nothing(why.to_owned())
}

fn fence(view: &View<'_>, leadership: &Leadership) -> Step {
    if view.server != Server::Stopped {
        return Step::Stop("it is fenced".to_owned());
    }
    if leadership.is_held_by(view.instance, view.clone) {
        return Step::Release("it is fenced".to_owned());
    }
    nothing("it is fenced")
}

/// There is no data yet.
fn begin(view: &View<'_>, leadership: &Leadership, spec: &SampleDBInstanceSpec) -> Step {
    if view.server != Server::Stopped {
        return Step::Kill;
    }
    let holder = leadership.holder.as_ref();
    let mine = holder.is_some_and(|holder| holder.instance == view.instance);
    match (&leadership.system_identifier, holder) {
        (None, Some(holder)) if mine => {
            let taken = holder.clone.as_deref() == Some(view.clone) && leadership.is_held_by_run(view.run);
            match (taken, &spec.restore) {
                (false, _) => Step::Take,
                (true, Some(_)) => Step::Restore,
                (true, None) => Step::Initialize,
            }
        }
        (None, _) => nothing("another instance makes the database"),
        (Some(_), Some(_)) if mine => Step::Release("its data is lost".to_owned()),
        (Some(_), Some(holder)) if holder.run.is_some() => Step::Clone(holder.instance.clone()),
        (Some(_), _) => nothing("there is no primary to clone"),
    }
}

/// There is data.
fn go_on(view: &View<'_>, leadership: &Leadership, spec: &SampleDBInstanceSpec, data: &Data) -> Step {
    let held = leadership.is_held_by(view.instance, view.clone);
    match &leadership.system_identifier {
        Some(recorded) if *recorded != data.system_identifier => {
            if view.superseded == Some(&data.system_identifier) && !held {
                return copy_upgraded(view, leadership);
            }
            let why =
                format!("the data is of another database: {} instead of {recorded}", data.system_identifier);
            return if view.server == Server::Stopped { Step::Nothing(why) } else { Step::Stop(why) };
        }
        Some(_) => {}
        None if held && leadership.is_held_by_run(view.run) => return Step::RecordIdentifier,
        None if leadership.holder.as_ref().is_some_and(|holder| holder.instance == view.instance) => {
            return Step::Take;
        }
        None => return nothing("another instance makes the database"),
    }
    if held { lead(view, leadership, spec, data) } else { follow(view, leadership, spec, data) }
}

/// The data is of the version before an upgrade, which the primary's is not any more.
fn copy_upgraded(view: &View<'_>, leadership: &Leadership) -> Step {
    if view.server != Server::Stopped {
        return Step::Kill;
    }
    match leadership.holder.as_ref().filter(|holder| holder.run.is_some()) {
        Some(holder) => Step::Clone(holder.instance.clone()),
        None => nothing("the database was upgraded, and there is no primary to clone yet"),
    }
}

/// It is, or is to be, the primary.
fn lead(view: &View<'_>, leadership: &Leadership, spec: &SampleDBInstanceSpec, data: &Data) -> Step {
    if !leadership.is_held_by_run(view.run) {
        return Step::Take;
    }
    if view.epoch < leadership.epoch {
        return Step::RecordEpoch;
    }
    match &view.server {
        Server::Stopped if view.crashes >= CRASHES && spec.instances > 1 => {
            Step::Release(format!("the server ended {} times in a row", view.crashes))
        }
        Server::Stopped => Step::Start { follow: None },
        Server::Starting | Server::Silent => nothing("the server starts"),
        Server::Running(state) if state.in_recovery => Step::Promote,
        Server::Running(_) => {
            let target = leadership.switchover_to.as_deref().filter(|target| *target != view.instance);
            match (target, restart(view, spec)) {
                (Some(target), _) => Step::HandOver(target.to_owned()),
                (None, Some(restart)) => restart,
                (None, None) if data.standby => nothing("the server becomes a primary"),
                (None, None) => nothing(""),
            }
        }
    }
}

fn restart(view: &View<'_>, spec: &SampleDBInstanceSpec) -> Option<Step> {
    let wanted = spec.restart.as_deref()?;
    (view.restarted != Some(wanted)).then(|| Step::Restart(wanted.to_owned()))
}

/// Somebody else is the primary, or nobody.
fn follow(view: &View<'_>, leadership: &Leadership, spec: &SampleDBInstanceSpec, data: &Data) -> Step {
    match &view.server {
        // One that is no standby takes writes, or is about to.
        Server::Starting if !data.standby => return Step::Kill,
        Server::Running(state) if !state.in_recovery => return Step::Kill,
        _ => {}
    }
    if view.epoch < leadership.epoch {
        return Step::RecordEpoch;
    }
    // Somebody who took the Lease, and so is or becomes a primary.
    let primary = leadership.holder.as_ref().filter(|holder| holder.run.is_some());
    let Some(primary) = primary else { return answer(view, data) };
    let primary = primary.instance.clone();
    if view.server == Server::Stopped && view.crashes >= CRASHES {
        // Its data does not fit what the primary has, or is damaged.
        return replace(view, leadership, Step::Clone(primary));
    }
    if view.followed < leadership.epoch {
        return join(view, leadership, data, primary);
    }
    match &view.server {
        _ if view.cut_off && view.rewound => replace(view, leadership, Step::Clone(primary)),
        _ if view.cut_off => replace(view, leadership, Step::Rewind(primary)),
        Server::Stopped => Step::Start { follow: Some(primary) },
        Server::Starting | Server::Silent => nothing("the server starts"),
        Server::Running(state) if state.streams => restart(view, spec).unwrap_or_else(|| nothing("")),
        Server::Running(_) => Step::Follow(Some(primary)),
    }
}

/// A copy that acknowledges commits may be the only one beside the primary's that has some: it is not replaced before the primary
/// has recorded that others have them.
fn replace(view: &View<'_>, leadership: &Leadership, step: Step) -> Step {
    if !leadership.synchronous.clones.contains(view.clone) {
        return step;
    }
    if leadership.leaving.contains(view.clone) {
        return nothing("the primary still counts on its data, which is to be replaced");
    }
    Step::Leave
}

/// Nobody is primary: find out where the data ends.
fn answer(view: &View<'_>, data: &Data) -> Step {
    match &view.server {
        Server::Stopped if !data.standby => Step::BecomeStandby,
        Server::Stopped => Step::Start { follow: None },
        Server::Starting | Server::Silent => nothing("the server starts"),
        Server::Running(state) if state.receives => Step::Follow(None),
        Server::Running(_) if view.settled => nothing("it has answered, and waits for a primary"),
        Server::Running(_) => nothing("it applies what it received"),
    }
}

/// There is another primary than the one that was followed: does the data fit?
fn join(view: &View<'_>, leadership: &Leadership, data: &Data, primary: String) -> Step {
    if !data.standby {
        return match view.server {
            Server::Stopped => replace(view, leadership, Step::Rewind(primary)),
            _ => Step::Kill,
        };
    }
    match &view.server {
        Server::Stopped => Step::Start { follow: None },
        // A copy that was cut short needs what only its source had: without it, it would never say where it ends.
        Server::Starting if view.cut_off => replace(view, leadership, Step::Clone(primary)),
        Server::Starting | Server::Silent => nothing("the server starts"),
        Server::Running(state) if state.receives => Step::Follow(None),
        Server::Running(_) if !view.settled => nothing("it applies what it received"),
        Server::Running(state) => {
            let fits = leadership.fork.is_none_or(|fork| {
                data.timelines.at(state.flushed) == fork.timeline && state.flushed <= fork.flushed
            });
            if fits { Step::RecordFollowed } else { replace(view, leadership, Step::Rewind(primary)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leadership::{Holder, Position, Synchronous};
    use crate::lsn::Lsn;

    fn leadership(epoch: i32, holder: Option<(&str, &str, Option<&str>)>) -> Leadership {
        let holder = holder.map(|(instance, clone, run)| Holder {
            instance: instance.to_owned(),
            clone: Some(clone.to_owned()),
            pod_uid: None,
            run: run.map(str::to_owned),
        });
        Leadership {
            epoch,
            holder,
            system_identifier: Some("7".to_owned()),
            fork: Some(Position { timeline: 2, flushed: Lsn(100) }),
            ..Leadership::default()
        }
    }

    fn spec() -> SampleDBInstanceSpec {
        SampleDBInstanceSpec { database: "db".into(), instances: 3, ..Default::default() }
    }

    fn data(standby: bool) -> Data {
        Data {
            system_identifier: "7".to_owned(),
            standby,
            timelines: Timelines::only(2),
            floors: BTreeMap::new(),
        }
    }

    fn running(in_recovery: bool) -> State {
        State {
            in_recovery,
            receives: false,
            streams: false,
            replayed: true,
            flushed: Lsn(100),
            version: "15".into(),
        }
    }

    fn view<'a>(leadership: &'a Leadership, spec: &'a SampleDBInstanceSpec) -> View<'a> {
        View {
            instance: "db-1",
            run: "r1",
            clone: "b",
            leadership: Some(leadership),
            spec: Some(spec),
            data: Some(data(true)),
            server: Server::Stopped,
            epoch: leadership.epoch,
            followed: leadership.epoch,
            settled: true,
            crashes: 0,
            cut_off: false,
            rewound: false,
            restarted: None,
            superseded: None,
        }
    }

    fn name(instance: &str) -> String {
        instance.to_owned()
    }

    #[test]
    fn the_first_instance_takes_the_lease_and_makes_the_database() {
        let spec = spec();
        let mut first = Leadership::first("db-1", 1);
        let see =
            |leadership: &Leadership, data: Option<Data>| decide(&View { data, ..view(leadership, &spec) });
        assert_eq!(see(&first, None), Step::Take);
        first.holder = leadership(1, Some(("db-1", "b", Some("r1")))).holder;
        assert_eq!(see(&first, None), Step::Initialize);
        assert_eq!(see(&first, Some(data(false))), Step::RecordIdentifier);
        first.holder = leadership(1, Some(("db-0", "a", Some("r")))).holder;
        assert!(matches!(see(&first, None), Step::Nothing(_)));
    }

    #[test]
    fn an_empty_volume_is_never_made_a_database_again() {
        let spec = spec();
        let mine = leadership(3, Some(("db-1", "lost", Some("r0"))));
        assert!(matches!(decide(&View { data: None, ..view(&mine, &spec) }), Step::Release(_)));
        let theirs = leadership(3, Some(("db-0", "a", Some("r"))));
        assert_eq!(decide(&View { data: None, ..view(&theirs, &spec) }), Step::Clone(name("db-0")));
        let nobodys = leadership(3, None);
        assert!(matches!(decide(&View { data: None, ..view(&nobodys, &spec) }), Step::Nothing(_)));
    }

    #[test]
    fn data_of_the_version_before_an_upgrade_is_copied_anew() {
        let spec = spec();
        let old = || Some(Data { system_identifier: "6".to_owned(), ..data(true) });
        let taken = leadership(3, Some(("db-0", "a", Some("r"))));
        let seen = View { data: old(), superseded: Some("6"), ..view(&taken, &spec) };
        assert_eq!(decide(&seen), Step::Clone(name("db-0")));
        let nobodys = leadership(3, None);
        assert!(matches!(decide(&View { leadership: Some(&nobodys), ..seen.clone() }), Step::Nothing(_)));
        assert!(matches!(decide(&View { superseded: Some("5"), ..seen }), Step::Nothing(_)));
    }

    #[test]
    fn data_of_another_database_is_never_served() {
        let spec = spec();
        let mine = leadership(3, Some(("db-1", "b", Some("r1"))));
        let foreign = Data { system_identifier: "8".to_owned(), ..data(false) };
        let seen =
            View { data: Some(foreign), server: Server::Running(running(false)), ..view(&mine, &spec) };
        assert!(matches!(decide(&seen), Step::Stop(_)));
    }

    #[test]
    fn one_that_is_elected_takes_the_lease_before_it_is_promoted() {
        let spec = spec();
        let elected = leadership(3, Some(("db-1", "b", None)));
        let seen = View { epoch: 3, server: Server::Running(running(true)), ..view(&elected, &spec) };
        assert_eq!(decide(&seen), Step::Take);
        let taken = leadership(3, Some(("db-1", "b", Some("r1"))));
        assert_eq!(decide(&View { leadership: Some(&taken), ..seen.clone() }), Step::Promote);
        // Another copy of the data was elected.
        let other = leadership(3, Some(("db-1", "lost", None)));
        assert!(!matches!(decide(&View { leadership: Some(&other), ..seen }), Step::Take | Step::Promote));
    }

    #[test]
    fn a_server_that_may_not_be_primary_is_killed() {
        let spec = spec();
        for held_by in [None, Some(("db-0", "a", Some("r"))), Some(("db-1", "lost", Some("r1")))] {
            let leadership = leadership(3, held_by);
            let seen = View { server: Server::Running(running(false)), ..view(&leadership, &spec) };
            assert_eq!(decide(&seen), Step::Kill, "{held_by:?}");
            let starts =
                View { data: Some(data(false)), server: Server::Starting, ..view(&leadership, &spec) };
            assert_eq!(decide(&starts), Step::Kill, "{held_by:?}");
        }
    }

    #[test]
    fn an_answer_is_given_after_the_epoch_is_recorded_and_nothing_is_received() {
        let spec = spec();
        let vacant = leadership(4, None);
        let mut state = running(true);
        state.receives = true;
        let seen = View { epoch: 3, server: Server::Running(state.clone()), ..view(&vacant, &spec) };
        assert_eq!(decide(&seen), Step::RecordEpoch);
        assert_eq!(decide(&View { epoch: 4, ..seen.clone() }), Step::Follow(None));
        state.receives = false;
        let seen = View { epoch: 4, server: Server::Running(state), settled: false, ..seen };
        assert!(matches!(decide(&seen), Step::Nothing(why) if why.contains("applies")));
        // A primary that ended answers as a standby.
        let ended = View { data: Some(data(false)), ..view(&vacant, &spec) };
        assert_eq!(decide(&ended), Step::BecomeStandby);
    }

    #[test]
    fn whoever_has_more_than_the_new_primary_gives_it_up() {
        let spec = spec();
        let taken = leadership(4, Some(("db-0", "a", Some("r"))));
        let seen = View { followed: 3, server: Server::Running(running(true)), ..view(&taken, &spec) };
        assert_eq!(decide(&seen), Step::RecordFollowed);
        let more = State { flushed: Lsn(101), ..running(true) };
        let ahead = View { server: Server::Running(more), ..seen.clone() };
        assert_eq!(decide(&ahead), Step::Rewind(name("db-0")));
        let older = View { data: Some(Data { timelines: Timelines::only(1), ..data(true) }), ..seen.clone() };
        assert_eq!(decide(&older), Step::Rewind(name("db-0")));
        let was_primary = View { data: Some(data(false)), server: Server::Stopped, ..seen };
        assert_eq!(decide(&was_primary), Step::Rewind(name("db-0")));
    }

    #[test]
    fn a_replica_follows_the_primary() {
        let spec = spec();
        let taken = leadership(4, Some(("db-0", "a", Some("r"))));
        assert_eq!(decide(&view(&taken, &spec)), Step::Start { follow: Some(name("db-0")) });
        let seen = View { server: Server::Running(running(true)), ..view(&taken, &spec) };
        assert_eq!(decide(&seen), Step::Follow(Some(name("db-0"))));
        let mut state = running(true);
        state.streams = true;
        state.receives = true;
        assert_eq!(decide(&View { server: Server::Running(state), ..seen.clone() }), nothing(""));
        let crashed = View { crashes: CRASHES, server: Server::Stopped, ..seen.clone() };
        assert_eq!(decide(&crashed), Step::Clone(name("db-0")));
        let cut_off = View { cut_off: true, ..seen };
        assert_eq!(decide(&cut_off), Step::Rewind(name("db-0")));
        assert_eq!(decide(&View { rewound: true, ..cut_off }), Step::Clone(name("db-0")));
    }

    #[test]
    fn a_copy_that_acknowledges_commits_is_not_replaced_before_the_primary_counts_on_others() {
        let spec = spec();
        let mut taken = leadership(4, Some(("db-0", "a", Some("r"))));
        taken.synchronous = Synchronous { quorum: 1, clones: ["b".to_owned()].into() };
        let step = |leadership: &Leadership| {
            let crashed = View { crashes: CRASHES, server: Server::Stopped, ..view(leadership, &spec) };
            decide(&crashed)
        };
        assert_eq!(step(&taken), Step::Leave);
        taken.leaving.insert("b".to_owned());
        assert!(matches!(step(&taken), Step::Nothing(why) if why.contains("counts on")));
        taken.synchronous.clones.clear();
        assert_eq!(step(&taken), Step::Clone(name("db-0")));
    }

    #[test]
    fn an_old_version_of_the_lease_means_nothing() {
        let spec = spec();
        let old = leadership(3, Some(("db-1", "b", Some("r1"))));
        assert!(matches!(decide(&View { epoch: 4, ..view(&old, &spec) }), Step::Nothing(_)));
    }

    #[test]
    fn a_server_that_hangs_is_killed_and_a_primary_that_hangs_again_and_again_gives_up() {
        let spec = spec();
        for holder in [("db-1", "b", Some("r1")), ("db-0", "a", Some("r"))] {
            let leadership = leadership(3, Some(holder));
            let hangs = View { server: Server::Silent, ..view(&leadership, &spec) };
            assert_eq!(decide(&hangs), Step::Kill);
        }
        let mine = leadership(3, Some(("db-1", "b", Some("r1"))));
        let killed = View { crashes: CRASHES, ..view(&mine, &spec) };
        assert!(matches!(decide(&killed), Step::Release(_)));
    }

    #[test]
    fn a_copy_that_was_cut_short_is_made_anew() {
        let spec = spec();
        let taken = leadership(3, Some(("db-0", "a", Some("r"))));
        let starts =
            View { data: Some(data(true)), server: Server::Starting, followed: 2, ..view(&taken, &spec) };
        assert!(matches!(decide(&starts), Step::Nothing(_)));
        assert_eq!(decide(&View { cut_off: true, ..starts }), Step::Clone("db-0".into()));
    }

    #[test]
    fn a_fenced_instance_stops_and_gives_the_lease_back() {
        let fenced = SampleDBInstanceSpec { fenced: true, ..spec() };
        let mine = leadership(3, Some(("db-1", "b", Some("r1"))));
        let seen = View { server: Server::Running(running(false)), ..view(&mine, &fenced) };
        assert!(matches!(decide(&seen), Step::Stop(_)));
        assert!(matches!(decide(&View { server: Server::Stopped, ..seen }), Step::Release(_)));
    }
}
