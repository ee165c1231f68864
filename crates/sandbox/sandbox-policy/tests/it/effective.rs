//! `last sandbox/mode event ?? deployment default`.

use sandbox::Mode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
use sandbox_policy::*;

use crate::support::*;

// D-02
#[tokio::test]
async fn an_unswitched_session_follows_the_deployment_default_live() {
    let stage = Stage::new(ReadOnly).await;
    let session = stage.session();
    let source = stage.policy.source_for(&session);
    for mode in [ReadOnly, DangerFullAccess, WorkspaceWrite] {
        stage.policy.set_default(mode);
        assert_eq!((stage.policy.default_mode(), stage.policy.effective(&session), source.mode()), (mode, mode, mode));
    }
    assert!(matches!(decision(&session.snapshot()), Decision::Default));
    assert!(session.is_empty(), "asking writes nothing");
    stage.close().await;
}

#[tokio::test]
async fn the_last_override_wins_whatever_its_source_and_the_default_no_longer_matters() {
    let stage = Stage::new(WorkspaceWrite).await;
    let session = stage.session();
    let source = stage.policy.source_for(&session);
    let switches = [
        (ReadOnly, Some(ModeCause::Initial)),
        (DangerFullAccess, None),
        (WorkspaceWrite, Some(ModeCause::Preset)),
        (DangerFullAccess, Some(ModeCause::Delegation)),
        (ReadOnly, Some(ModeCause::Ancestor)),
        (WorkspaceWrite, None),
    ];
    for (mode, cause) in switches {
        set(&session, mode, cause);
        end_turn(&session);
        for default in [ReadOnly, DangerFullAccess] {
            stage.policy.set_default(default);
            assert_eq!((stage.policy.effective(&session), source.mode()), (mode, mode), "{cause:?}");
        }
    }
    assert_eq!(stage.policy.effective(&stage.session()), DangerFullAccess, "another session is another session");
    stage.close().await;
}

#[tokio::test]
async fn a_decision_names_the_event_that_made_it() {
    let stage = Stage::new(ReadOnly).await;
    let session = stage.session();
    end_turn(&session);
    set(&session, WorkspaceWrite, Some(ModeCause::Initial));
    let before = session.snapshot();
    end_turn(&session);
    set(&session, DangerFullAccess, None);
    end_turn(&session);
    let told = |log: &session::Snapshot| match decision(log) {
        Decision::Override(set, event) => (set, event.seq(), event.tag().to_owned()),
        Decision::Default => panic!("there is an override"),
    };
    let tag = || "sandbox/mode".to_owned();
    assert_eq!(told(&session.snapshot()), (ModeSet::by_user(DangerFullAccess), 5, tag()));
    let initial = ModeSet { mode: WorkspaceWrite, source: Some(ModeCause::Initial) };
    assert_eq!(told(&before), (initial, 2, tag()), "as of then");
    // By someone who has only the file.
    let decoded = stage.sessions.vocabulary().decode(text(&session)).unwrap();
    assert_eq!(told(decoded.log()), (ModeSet::by_user(DangerFullAccess), 5, tag()));
    stage.close().await;
}
