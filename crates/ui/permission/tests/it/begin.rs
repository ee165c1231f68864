//! What a new top-level session begins with.

use permission::*;
use sandbox_policy::{ModeCause, ModeSet};
use session::*;
use user_approval::PolicySet;

use crate::support::*;

#[tokio::test]
async fn the_mode_is_recorded_always_and_the_policy_where_it_differs() {
    for default in SETTINGS {
        let stage = Stage::with(default, every_setting()).await;
        for to in SETTINGS {
            let session = stage.session();
            stage.permission.begin(&session, &name_of(to)).unwrap();
            let mut want = vec![mode_by_preset(to.0)];
            if default.1 != to.1 {
                want.push(policy_by_preset(to.1));
            }
            let mut written = lines(&session);
            assert_eq!(written.remove(0), chosen(&name_of(to)));
            written.sort();
            want.sort();
            assert_eq!(written, want, "{to:?} where {default:?} is the default");
            assert_eq!((stage.setting(&session), stage.current(&session)), (to, name_of(to)));
        }
        stage.close().await;
    }
}

// D-01
#[tokio::test]
async fn later_defaults_never_alter_it_nor_its_children() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let (begun, chose) = (stage.session(), stage.session());
    stage.permission.begin(&begun, "read-only").unwrap();
    stage.permission.choose(&chose, "read-only").unwrap();
    stage.sandbox.set_default(DangerFullAccess);
    for session in [&begun, &chose] {
        assert_eq!(stage.setting(session), (ReadOnly, Ask));
        assert_eq!(stamped(&child(session, Seed::Fresh)), Some(ReadOnly));
        assert_eq!(lines(session), [chosen("read-only"), mode_by_preset(ReadOnly)], "a choice is an override");
    }
    let elsewhere = Stage::new((DangerFullAccess, Never)).await;
    let again = reopened(&elsewhere.sessions, text(&begun, begun.len()));
    assert_eq!(elsewhere.sandbox.effective(&again), ReadOnly);
    assert_eq!(again.len(), begun.len(), "a resume writes no policy");
    elsewhere.close().await;
    stage.close().await;
}

#[tokio::test]
async fn a_session_with_a_parent_begins_with_what_was_handed_down() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let parent = stage.session();
    parent.append(TurnStart { turn: 1 }).unwrap();
    parent.append(TurnEnd { turn: 1, reason: TurnReason::Completed }).unwrap();
    for seed in [Seed::Fresh, Seed::ClosedTurns] {
        // The parent is unswitched, so the child has no mode either.
        let child = child(&parent, seed);
        let before = lines(&child);
        let error = stage.permission.begin(&child, "danger-full-access").unwrap_err();
        assert_eq!(error, ChooseError::HasParent(parent.id()));
        let want = format!(
            "the session is a child of {}: it begins with the scope that was handed down to it, not with a preset",
            parent.id()
        );
        assert_eq!(error.to_string(), want);
        assert_eq!(lines(&child), before);
    }
    stage.close().await;
}

#[tokio::test]
async fn a_session_begins_once() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    for source in [None, Some(ModeCause::Initial), Some(ModeCause::Preset), Some(ModeCause::Ancestor)] {
        let session = stage.session();
        session.append(ModeSet { mode: WorkspaceWrite, source }).unwrap();
        let error = stage.permission.begin(&session, "danger-full-access").unwrap_err();
        assert_eq!(error, ChooseError::HasMode(WorkspaceWrite));
        assert_eq!(error.to_string(), "the session has begun: it runs under workspace-write already");
        assert_eq!(session.len(), 1);
    }
    let session = stage.session();
    stage.permission.begin(&session, "read-only").unwrap();
    assert_eq!(stage.permission.begin(&session, "read-only"), Err(ChooseError::HasMode(ReadOnly)));
    assert_eq!(session.len(), 2);
    // A policy alone is none.
    let session = stage.session();
    session.append(PolicySet::by_user(Never)).unwrap();
    stage.permission.begin(&session, "read-only").unwrap();
    assert_eq!(lines_from(&session, 1), [chosen("read-only"), mode_by_preset(ReadOnly), policy_by_preset(Ask)]);
    stage.close().await;
}
