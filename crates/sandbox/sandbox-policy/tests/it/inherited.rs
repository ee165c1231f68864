//! What a child is handed.

use std::sync::Arc;

use sandbox::Mode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
use sandbox_policy::*;
use session::*;

use crate::support::*;

fn stamp(mode: &str) -> String {
    format!(r#"sandbox/mode {{"mode":"{mode}","source":"delegation"}}"#)
}

// D-01, D-02 (an initial override is an override)
#[tokio::test]
async fn an_override_is_copied_whatever_its_source() {
    let stage = Stage::new(DangerFullAccess).await;
    let causes = [
        None,
        Some(ModeCause::Initial),
        Some(ModeCause::Preset),
        Some(ModeCause::Delegation),
        Some(ModeCause::Ancestor),
    ];
    for cause in causes {
        for mode in sandbox::Mode::ALL {
            let parent = stage.session();
            set(&parent, ReadOnly, None);
            set(&parent, mode, cause);
            let child = child(&parent, Seed::Fresh);
            assert_eq!(lines(&child.snapshot()), [stamp(mode.as_str())], "{cause:?}");
            assert_eq!(stage.policy.effective(&child), mode);
            assert!(Delegation::capture(&parent).unwrap().hands_down::<ModeSet>());
        }
    }
    stage.close().await;
}

// D-02
#[tokio::test]
async fn an_unswitched_parent_copies_nothing_and_the_child_follows_the_default() {
    let stage = Stage::new(WorkspaceWrite).await;
    let parent = stage.session();
    end_turn(&parent);
    for seed in [Seed::Fresh, Seed::ClosedTurns] {
        let child = child(&parent, seed);
        assert!(child.latest::<ModeSet>().is_none());
        stage.policy.set_default(ReadOnly);
        assert_eq!(stage.policy.effective(&child), ReadOnly, "live");
        stage.policy.set_default(WorkspaceWrite);
        assert_eq!(stage.policy.effective(&child), WorkspaceWrite);
    }
    assert!(!Delegation::capture(&parent).unwrap().hands_down::<ModeSet>());
    stage.close().await;
}

// D-03, D-07
#[tokio::test]
async fn the_instant_of_the_capture_counts() {
    let stage = Stage::new(DangerFullAccess).await;
    let parent = stage.session();
    set(&parent, ReadOnly, None);
    let captured = Delegation::capture(&parent).unwrap();
    set(&parent, DangerFullAccess, None);
    let child = Session::delegated(captured, Seed::Fresh);
    assert_eq!(stage.policy.effective(&child), ReadOnly);
    set(&parent, WorkspaceWrite, None);
    assert_eq!(stage.policy.effective(&child), ReadOnly, "a later switch of the parent's does not reach it");
    set(&child, WorkspaceWrite, None);
    assert_eq!(stage.policy.effective(&child), WorkspaceWrite, "one of its own does");
    stage.close().await;
}

// D-05
#[tokio::test]
async fn the_stamp_beats_a_switch_in_the_forked_history() {
    let stage = Stage::new(DangerFullAccess).await;
    let parent = stage.session();
    set(&parent, DangerFullAccess, None);
    end_turn(&parent);
    set(&parent, ReadOnly, None);
    let fork = child(&parent, Seed::ClosedTurns);
    assert_eq!(stage.policy.effective(&fork), ReadOnly);
    let own = lines(&fork.snapshot()).split_off(fork.header().seed_length() as usize);
    assert_eq!(own, ["session/end-seed {}".to_owned(), stamp("read-only")]);
    // D-06
    let Decision::Override(set, event) = decision(stage.sessions.vocabulary().decode(text(&fork)).unwrap().log())
    else {
        panic!("the file alone says so")
    };
    assert_eq!((set.mode, event.seq()), (ReadOnly, fork.header().seed_length() + 1));
    stage.close().await;
}

// D-08
#[tokio::test]
async fn a_grandchild_is_handed_its_parents_mode_not_its_grandparents() {
    let stage = Stage::new(DangerFullAccess).await;
    let top = stage.session();
    set(&top, WorkspaceWrite, Some(ModeCause::Initial));
    let middle = child(&top, Seed::Fresh);
    let same = child(&middle, Seed::Fresh);
    assert_eq!(lines(&same.snapshot()), [stamp("workspace-write")]);
    set(&middle, ReadOnly, Some(ModeCause::Ancestor));
    let narrower = child(&middle, Seed::Fresh);
    assert_eq!(lines(&narrower.snapshot()), [stamp("read-only")]);
    assert_eq!(stage.policy.effective(&top), WorkspaceWrite);
    stage.close().await;
}

// D-04
#[tokio::test]
async fn the_mode_is_the_first_stamp_and_without_the_policy_there_is_none() {
    struct Other;
    impl Contributor for Other {
        fn rank(&self) -> Rank {
            Rank::Approval
        }
        fn contribute(&self, _: &Snapshot, stamps: &mut Stamps) {
            stamps.add(SessionTitle { title: "t".into(), source: "user".into() });
        }
    }
    let sessions = Sessions::new();
    let other = sessions.register_contributor("other", Arc::new(Other)).unwrap();
    let app = context::Scope::root("app");
    app.provide(sessions.clone()).unwrap();
    let plugin = context::Plugins::new().with(SandboxPolicyPlugin, Config { default: ReadOnly });
    plugin.start(&app).await.unwrap();
    let parent = sessions.create("/home/me/project");
    set(&parent, WorkspaceWrite, None);
    let title = r#"session/title {"title":"t","source":"user"}"#.to_owned();
    assert_eq!(lines(&child(&parent, Seed::Fresh).snapshot()), [stamp("workspace-write"), title.clone()]);
    app.close().await.unwrap();
    assert_eq!(lines(&child(&parent, Seed::Fresh).snapshot()), [title]);
    drop(other);
}
