//! The delegation boundary: everything at one instant, stamped in order, used once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use session::*;

use crate::support::*;

/// What a policy hands down, as data.
struct Says<F>(Rank, F);

impl<F: Fn(&Snapshot, &mut Stamps) + Send + Sync> Contributor for Says<F> {
    fn rank(&self) -> Rank {
        self.0
    }

    fn contribute(&self, parent: &Snapshot, stamps: &mut Stamps) {
        (self.1)(parent, stamps);
    }
}

fn contribute(
    house: &Sessions,
    name: &str,
    rank: Rank,
    says: impl Fn(&Snapshot, &mut Stamps) + Send + Sync + 'static,
) -> context::Registration {
    house.register_contributor(name, Arc::new(Says(rank, says))).unwrap()
}

/// As the sandbox policy does it: an override is copied, an unswitched parent copies nothing.
fn hand_down_mode(parent: &Snapshot, stamps: &mut Stamps) {
    if let Some(Mode { mode, .. }) = parent.latest() {
        stamps.add(Mode { mode: mode.clone(), source: Some("delegation".into()) });
    }
}

fn pin(_: &Snapshot, stamps: &mut Stamps) {
    stamps.add(Pin { policy: "never".into() });
}

fn mode_of(session: &Session) -> Option<String> {
    Some(session.latest::<Mode>()?.mode.clone())
}

/// D-04, D-05
#[test]
fn stamps_follow_the_seed_in_the_order_of_ranks() {
    let house = house();
    let note = |n| move |_: &Snapshot, stamps: &mut Stamps| stamps.add(Note { n });
    let _guards = [
        contribute(&house, "first", Rank::Other, note(1)),
        contribute(&house, "approval", Rank::Approval, pin),
        contribute(&house, "second", Rank::Other, note(2)),
        contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode),
    ];
    let parent = house.create("/abs");
    parent.append(mode("workspace-write")).unwrap();
    turn(&parent, 1);
    parent.append(mode("read-only")).unwrap();
    let child = fork(&parent);
    assert_eq!((child.header().seed_length(), child.first_live_seq()), (4, 4));
    assert_eq!(
        lines(&child.snapshot())[4..],
        [
            r#"{"seq":4,"time":1790000000123,"type":"session/end-seed","data":{}}"#,
            r#"{"seq":5,"time":1790000000123,"type":"sandbox/mode","data":{"mode":"read-only","source":"delegation"}}"#,
            r#"{"seq":6,"time":1790000000123,"type":"approval/policy","data":{"policy":"never"}}"#,
            r#"{"seq":7,"time":1790000000123,"type":"test/note","ignorable":true,"data":{"n":1}}"#,
            r#"{"seq":8,"time":1790000000123,"type":"test/note","ignorable":true,"data":{"n":2}}"#,
        ]
    );
    assert_eq!(mode_of(&child).as_deref(), Some("read-only"), "the capture beats the switch inside the seed");
    let spawned = spawn(&parent);
    assert_eq!(tags(&spawned.snapshot()), ["sandbox/mode", "approval/policy", "test/note", "test/note"]);
    assert_eq!((spawned.first_live_seq(), spawned.header().seed_length()), (0, 0));
}

/// D-01, D-02
#[test]
fn an_unswitched_parent_copies_nothing() {
    let house = house();
    let _sandbox = contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode);
    let parent = house.create("/abs");
    turn(&parent, 1);
    let delegation = Delegation::capture(&parent).unwrap();
    assert!(!delegation.hands_down::<Mode>());
    assert_eq!(tags(&Session::delegated(delegation, Seed::Fresh).snapshot()), [""; 0]);
    assert_eq!(tags(&fork(&parent).snapshot())[3..], ["session/end-seed"]);
    parent.append(mode("read-only")).unwrap();
    let delegation = Delegation::capture(&parent).unwrap();
    assert!(delegation.hands_down::<Mode>() && !delegation.hands_down::<Pin>());
    assert_eq!(mode_of(&Session::delegated(delegation, Seed::Fresh)).as_deref(), Some("read-only"));
}

/// D-03, D-07
#[test]
fn what_the_parent_does_after_the_capture_does_not_show() {
    let house = house();
    let _sandbox = contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode);
    let parent = house.create("/abs");
    parent.append(mode("read-only")).unwrap();
    turn(&parent, 1);
    for seed in [Seed::Fresh, Seed::ClosedTurns] {
        let before = parent.snapshot();
        let delegation = Delegation::capture(&parent).unwrap();
        parent.append(mode("full-access")).unwrap();
        turn(&parent, 2);
        assert_eq!((delegation.parent().len(), delegation.parent_session().id()), (before.len(), parent.id()));
        let child = Session::delegated(delegation, seed);
        assert_eq!(child.header().lineage().unwrap().parent_seq(), before.len());
        assert_eq!(mode_of(&child).as_deref(), Some("read-only"));
        assert_eq!(child.header().seed_length(), if seed == Seed::Fresh { 0 } else { before.closed_len() });
        parent.append(mode("read-only")).unwrap();
    }
}

/// D-07
#[test]
fn later_switches_stay_where_they_are_made() {
    let house = house();
    let _sandbox = contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode);
    let parent = house.create("/abs");
    parent.append(mode("read-only")).unwrap();
    let child = spawn(&parent);
    child.append(mode("workspace-write")).unwrap();
    parent.append(mode("full-access")).unwrap();
    assert_eq!(
        (mode_of(&child).as_deref(), mode_of(&parent).as_deref()),
        (Some("workspace-write"), Some("full-access"))
    );
}

/// D-04: no contributor sees a switch that another has not seen.
#[test]
fn all_contributors_see_one_instant() {
    let house = house();
    let parent_slot: Arc<OnceLock<Session>> = Arc::default();
    let meddling = parent_slot.clone();
    let _meddler = contribute(&house, "meddler", Rank::Sandbox, move |parent, stamps| {
        hand_down_mode(parent, stamps);
        meddling.get().unwrap().append(mode("full-access")).unwrap();
    });
    let _later = contribute(&house, "later", Rank::Other, hand_down_mode);
    let parent = house.create("/abs");
    parent.append(mode("read-only")).unwrap();
    parent_slot.set(parent.clone()).unwrap();
    let child = spawn(&parent);
    let stamped = child.snapshot();
    let modes = stamped.events().iter().filter_map(|event| event.get::<Mode>());
    assert!(modes.map(|stamp| &*stamp.mode).eq(["read-only", "read-only"]));
    assert_eq!(child.header().lineage().unwrap().parent_seq(), 1);
    assert_eq!(mode_of(&parent).as_deref(), Some("full-access"));
}

/// D-04: the stamp is the parent's override at `parentSeq`, however fast it is switched meanwhile.
#[test]
fn a_capture_falls_between_two_switches() {
    within_deadline(|| {
        let house = house();
        let _sandbox = contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode);
        let parent = house.create("/abs");
        parent.append(mode("0")).unwrap();
        let done = AtomicBool::new(false);
        let children: Vec<Session> = std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1.. {
                    parent.append(mode(&n.to_string())).unwrap();
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let children = (0..500).map(|_| spawn(&parent)).collect();
            done.store(true, Ordering::Relaxed);
            children
        });
        let log = parent.snapshot();
        for child in children {
            let at = child.header().lineage().unwrap().parent_seq();
            let then = log.event(at - 1).unwrap().get::<Mode>().unwrap();
            assert_eq!(mode_of(&child).as_ref(), Some(&then.mode));
        }
    });
}

/// D-04
#[test]
fn a_contributor_that_panics_fails_the_capture() {
    let house = house();
    let broken = Arc::new(AtomicBool::new(true));
    let breaks = broken.clone();
    let _guards = [
        contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode),
        contribute(&house, "approval", Rank::Approval, move |_, _| {
            assert!(!breaks.load(Ordering::Relaxed), "on purpose");
        }),
        contribute(&house, "other", Rank::Other, pin),
    ];
    let parent = house.create("/abs");
    let error = Delegation::capture(&parent).err().expect("it panicked");
    assert_eq!(error, CaptureError { contributor: "approval".into() });
    assert_eq!(error.to_string(), "`approval` panicked while it captured what the child inherits");
    assert!(parent.is_empty(), "the parent is untouched");
    broken.store(false, Ordering::Relaxed);
    assert_eq!(tags(&spawn(&parent).snapshot()), ["approval/policy"], "and works again");
}

/// D-04: policies that are not composed write nothing, and names are unique.
#[test]
fn contributors_come_and_go() {
    let house = house();
    let parent = house.create("/abs");
    let guard = contribute(&house, "approval", Rank::Approval, pin);
    let second = house.register_contributor("approval", Arc::new(Says(Rank::Other, pin)));
    assert_eq!(second.unwrap_err().to_string(), "the name `approval` is taken");
    let delegation = Delegation::capture(&parent).unwrap();
    drop(guard);
    assert_eq!(tags(&spawn(&parent).snapshot()), [""; 0]);
    assert_eq!(tags(&Session::delegated(delegation, Seed::Fresh).snapshot()), ["approval/policy"], "captured before");
}

/// D-08
#[test]
fn a_grandchild_is_captured_from_its_parent() {
    let house = house();
    let _sandbox = contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode);
    let root = house.create("/abs");
    root.append(mode("read-only")).unwrap();
    turn(&root, 1);
    let child = fork(&root);
    root.append(mode("full-access")).unwrap();
    turn(&child, 2);
    let grandchild = fork(&child);
    assert_eq!(mode_of(&grandchild).as_deref(), Some("read-only"), "not what the root has become");
    let lineage = grandchild.header().lineage().unwrap();
    assert_eq!((lineage.parent(), lineage.depth(), lineage.parent_seq()), (child.id(), 2, child.len()));
    assert_eq!(Delegation::capture(&grandchild).unwrap().depth(), 3);
    assert_eq!(grandchild.header().cwd(), root.header().cwd());
    assert_eq!(lines(&grandchild.snapshot())[..9], lines(&child.snapshot()), "stamps inside a seed are history");
}

/// D-06: whoever has the file alone can tell what the child may do.
#[test]
fn a_childs_log_tells_its_scope_by_itself() {
    let house = house();
    let _guards = [
        contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode),
        contribute(&house, "approval", Rank::Approval, pin),
    ];
    let parent = house.create("/abs");
    turn(&parent, 1);
    parent.append(mode("read-only")).unwrap();
    for child in [spawn(&parent), fork(&parent)] {
        let file = decode(&text(&child.snapshot()));
        assert_eq!(file.log().latest::<Mode>().unwrap().mode, "read-only");
        assert_eq!(file.log().latest::<Pin>().unwrap().policy, "never");
        assert_eq!(file.log().header(), child.header());
    }
}

/// D-40, as far as the log goes: what was handed down is not handed down again.
#[test]
fn a_resume_stamps_nothing() {
    let house = house();
    let _sandbox = contribute(&house, "sandbox", Rank::Sandbox, hand_down_mode);
    let parent = house.create("/abs");
    parent.append(mode("read-only")).unwrap();
    let child = spawn(&parent);
    parent.append(mode("full-access")).unwrap();
    let resumed = reopened(&child);
    assert_eq!(lines(&resumed.snapshot()), lines(&child.snapshot()));
    assert_eq!((resumed.id(), resumed.first_live_seq(), resumed.header()), (child.id(), 1, child.header()));
}

/// D-12
#[test]
fn a_child_without_events_of_its_own_was_never_born() {
    let parent = session();
    turn(&parent, 1);
    let child = fork(&parent);
    let whole = text(&child.snapshot());
    let cut = |lines: usize| whole.split_inclusive('\n').take(lines).collect::<String>();
    for lines in 1..=4 {
        let decoded = decode(&cut(lines));
        assert_eq!(house().resume(decoded).unwrap_err(), ResumeError::Unborn, "a header and {} events", lines - 1);
    }
    assert!(house().resume(decode(&whole)).is_ok());
    let spawned = text(&spawn(&parent).snapshot());
    assert_eq!(house().resume(decode(&spawned)).unwrap_err(), ResumeError::Unborn);
    let said = ResumeError::Unborn.to_string();
    assert_eq!(
        said,
        "the log of a child without events of its own: the child was never announced, and its scope is not known"
    );
}
