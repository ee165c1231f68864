//! What a child is handed: taken at the call, by every policy that is composed.

use std::sync::Arc;

use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet};
use serde::{Deserialize, Serialize};
use session::{CaptureError, Contributor, Payload, Rank, Snapshot, Stamps};
use subagent::{ApprovalAbsent, Descriptor, Request, StartError};
use user_approval::{Policy, PolicyCause, PolicySet};

use crate::doubles::{Gate, Yes};
use crate::world::*;

const DELEGATED: Option<ModeCause> = Some(ModeCause::Delegation);
const PIN: PolicySet = PolicySet { policy: Policy::Never, source: Some(PolicyCause::Delegation) };

/// A stamp of a third party.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Note {}

impl Payload for Note {
    const TAG: &'static str = "test/note";
    const IGNORABLE: bool = true;
}

/// Adds a [`Note`], in its rank.
struct Notes(Rank);

impl Contributor for Notes {
    fn rank(&self) -> Rank {
        self.0
    }

    fn contribute(&self, _: &Snapshot, stamps: &mut Stamps) {
        stamps.add(Note {});
    }
}

/// Cannot say what it hands down.
struct Broken;

impl Contributor for Broken {
    fn contribute(&self, _: &Snapshot, _: &mut Stamps) {
        panic!("on purpose");
    }
}

// D-01
#[tokio::test]
async fn the_parents_override_is_copied_whatever_its_source() {
    within(async {
        let world = World::new().await;
        for mode in Mode::ALL {
            for source in
                [None, Some(ModeCause::Initial), Some(ModeCause::Preset), DELEGATED, Some(ModeCause::Ancestor)]
            {
                let parent = world.parent().await;
                switch(&parent, Mode::DangerFullAccess);
                parent.session().append(ModeSet { mode, source }).unwrap();
                let run = world.spawn(&parent, "say done").await;
                run.result().await;
                run.dispose().await.unwrap();
                let log = world.log(run.child().unwrap());
                assert_eq!(all::<ModeSet>(&log), [&ModeSet { mode, source: DELEGATED }]);
                parent.dispose().await.unwrap();
            }
        }
        world.app.close().await.unwrap();
    })
    .await;
}

// D-02
#[tokio::test]
async fn an_unswitched_parent_copies_nothing_and_the_child_follows_the_default_live() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        let script = r#"write a.txt 1; call gate {"name":"1"}; write b.txt 2; call gate {"name":"2"}; write c.txt 3"#;
        let run = world.spawn(&parent, script).await;
        gate.arrived("1").await;
        assert!(!world.at("ws/a.txt").exists(), "read-only by default");
        world.policy().set_default(Mode::WorkspaceWrite);
        gate.open("1");
        gate.arrived("2").await;
        assert!(world.at("ws/b.txt").exists(), "the default was widened");
        world.policy().set_default(Mode::ReadOnly);
        gate.open("2");
        run.result().await;
        assert!(!world.at("ws/c.txt").exists(), "and narrowed again");
        run.dispose().await.unwrap();
        assert_eq!(all::<ModeSet>(&world.log(run.child().unwrap())), [] as [&ModeSet; 0]);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-02
#[tokio::test]
async fn a_grant_is_not_handed_down() {
    within(async {
        let world = World::new().await;
        let yes = Arc::new(Yes::default());
        world.app.own(world.approval().answer_with(yes.clone())).unwrap();
        let parent = world.parent().await;
        tell(&parent, r#"write mine.txt x with workspace-write because "the task says so""#).await;
        assert!(world.at("ws/mine.txt").exists(), "the parent was granted one call");
        let run = world.spawn(&parent, "write mine.txt y; write other.txt y").await;
        run.result().await;
        assert_eq!(std::fs::read_to_string(world.at("ws/mine.txt")).unwrap(), "x");
        assert!(!world.at("ws/other.txt").exists());
        assert_eq!(yes.asked(), 1);
        run.dispose().await.unwrap();
        let log = world.log(run.child().unwrap());
        assert_eq!(tags(&log)[..2], ["approval/policy", "subagent/descriptor"], "nothing of it in the child's log");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-03
#[tokio::test]
async fn a_switch_between_the_call_and_the_first_poll_is_too_late() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        switch(&parent, Mode::ReadOnly);
        let narrow = world.subagents.start(&parent, "spawn", Request::new("write narrow.txt x"));
        let at_call = parent.session().len();
        switch(&parent, Mode::DangerFullAccess);
        let wide = world.subagents.start(&parent, "spawn", Request::new("write ../outside/wide.txt x"));
        switch(&parent, Mode::ReadOnly);
        // Polled in the other order, and late.
        let (wide, narrow) = (wide.await.unwrap(), narrow.await.unwrap());
        wide.result().await;
        narrow.result().await;
        assert!(world.at("outside/wide.txt").exists() && !world.at("ws/narrow.txt").exists());
        let log = world.log(narrow.child().unwrap());
        assert_eq!(all::<ModeSet>(&log), [&ModeSet { mode: Mode::ReadOnly, source: DELEGATED }]);
        assert_eq!(log.header().lineage().unwrap().parent_seq(), at_call);
        let log = world.log(wide.child().unwrap());
        assert_eq!(all::<ModeSet>(&log), [&ModeSet { mode: Mode::DangerFullAccess, source: DELEGATED }]);
        assert_eq!(log.header().lineage().unwrap().parent_seq(), at_call + 1);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-03: an unswitched parent that switches at once hands down that it was not.
#[tokio::test]
async fn a_first_switch_after_the_call_is_not_copied_either() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let starting = world.subagents.start(&parent, "spawn", Request::new("write a.txt x"));
        switch(&parent, Mode::DangerFullAccess);
        let run = starting.await.unwrap();
        run.result().await;
        assert!(!world.at("ws/a.txt").exists(), "the default is read-only");
        assert!(world.log(run.child().unwrap()).latest::<ModeSet>().is_none());
        world.app.close().await.unwrap();
    })
    .await;
}

// D-04
#[tokio::test]
async fn policies_speak_by_rank_and_the_pin_does_not_depend_on_the_parent() {
    within(async {
        let early = |app: &context::Scope| {
            let sessions = app.get::<session::Sessions>().unwrap();
            app.own(sessions.register_contributor("first of all", Arc::new(Notes(Rank::Other))).unwrap()).unwrap();
        };
        let world = World::with(Default::default(), |plugins| plugins, early).await;
        for own in [None, Some(Policy::Ask), Some(Policy::Never)] {
            let parent = world.parent().await;
            switch(&parent, Mode::WorkspaceWrite);
            own.map(|policy| parent.session().append(PolicySet::by_user(policy)).unwrap());
            let run = world.spawn(&parent, "say done").await;
            run.result().await;
            let log = world.log(run.child().unwrap());
            let want = ["sandbox/mode", "approval/policy", "test/note", "subagent/descriptor", "inbox/accepted"];
            assert_eq!(tags(&log)[..5], want);
            assert_eq!(all::<PolicySet>(&log), [&PIN]);
            assert_eq!(log.latest::<Descriptor>().unwrap().approval, None);
            parent.dispose().await.unwrap();
        }
        world.app.close().await.unwrap();
    })
    .await;
}

// D-04
#[tokio::test]
async fn a_policy_that_is_not_composed_stamps_nothing_and_all_else_is_the_same() {
    within(async {
        let absent = Some(ApprovalAbsent::Absent);
        let table: [(&[&str], &[&str], _); 3] = [
            (&["permission", "user-approval"], &["sandbox/mode", "subagent/descriptor"], absent),
            (&["permission", "sandbox-policy", "fs-sandbox"], &["approval/policy", "subagent/descriptor"], None),
            (&["permission", "user-approval", "sandbox-policy", "fs-sandbox"], &["subagent/descriptor"], absent),
        ];
        for (without, want, approval) in table {
            let world = World::without(without).await;
            let parent = world.parent().await;
            switch(&parent, Mode::WorkspaceWrite);
            let run = world.spawn(&parent, "write a.txt x; say done").await;
            assert_eq!(run.result().await.text(), "done", "{without:?}");
            assert_eq!(world.at("ws/a.txt").exists(), !without.contains(&"fs-sandbox"));
            run.dispose().await.unwrap();
            let log = world.log(run.child().unwrap());
            assert_eq!(tags(&log)[..want.len()], *want);
            assert!(!tags(&log)[want.len()..].iter().any(|tag| want.contains(&&**tag) || tag.starts_with("approval/")));
            let descriptor = log.latest_event::<Descriptor>().unwrap();
            assert_eq!(descriptor.get::<Descriptor>().unwrap().approval, approval);
            assert_eq!(descriptor.to_json().contains(r#""approval":"absent""#), approval.is_some());
            world.app.close().await.unwrap();
        }
    })
    .await;
}

// D-04, D-11
#[tokio::test]
async fn a_policy_that_panics_fails_the_start() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let before = world.news.all();
        let broken = world.sessions.register_contributor("broken", Arc::new(Broken)).unwrap();
        let starting = world.subagents.start(&parent, "spawn", Request::new("say done"));
        drop(broken);
        let error = starting.await.unwrap_err();
        let StartError::Capture(CaptureError { contributor }) = &error else { panic!("{error}") };
        assert_eq!(&**contributor, "broken");
        assert_eq!(error.to_string(), "`broken` panicked while it captured what the child inherits");
        assert_eq!((world.news.all(), world.live()), (before, vec![parent.id()]));
        let run = world.spawn(&parent, "say done").await;
        assert_eq!(run.result().await.text(), "done", "without it, children start");
        let kept = [parent.id(), run.child().unwrap()];
        world.close(&kept).await;
    })
    .await;
}
