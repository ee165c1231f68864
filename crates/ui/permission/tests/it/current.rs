//! Which preset is in force.

use permission::*;
use sandbox_policy::{ModeCause, ModeSet};
use session::*;
use user_approval::PolicySet;

use crate::support::*;

/// Two presets that set the same.
fn twins() -> Presets {
    let presets = [("first", ReadOnly, Ask), ("second", ReadOnly, Ask), ("wide", WorkspaceWrite, Ask)];
    Presets::new(presets.map(|(name, mode, policy)| Preset::new(name, mode, policy)).into()).unwrap()
}

#[tokio::test]
async fn the_selection_while_it_fits_then_the_first_that_fits_then_custom() {
    let stage = Stage::with((ReadOnly, Ask), twins()).await;
    let session = stage.session();
    let check = |want: &str| assert_eq!(stage.current(&session), want, "{:?}", lines(&session));
    check("first");
    stage.permission.choose(&session, "second").unwrap();
    check("second");
    session.append(ModeSet::by_user(WorkspaceWrite)).unwrap();
    check("wide");
    session.append(ModeSet { mode: ReadOnly, source: Some(ModeCause::Ancestor) }).unwrap();
    check("second");
    session.append(PolicySet::by_user(Never)).unwrap();
    check("custom");
    assert_eq!(stage.permission.current(&session), Current::Custom);
    stage.permission.choose(&session, "first").unwrap();
    check("first");
    session.append(ModeSet::by_user(DangerFullAccess)).unwrap();
    check("custom");
    stage.close().await;
}

#[tokio::test]
async fn an_unswitched_session_follows_the_default_and_says_which_preset_that_is() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let session = stage.session();
    for (mode, want) in [(WorkspaceWrite, "workspace-write"), (DangerFullAccess, "custom"), (ReadOnly, "read-only")] {
        stage.sandbox.set_default(mode);
        assert_eq!(stage.current(&session), want);
    }
    assert_eq!(stage.permission.current(&session), Current::Preset("read-only".into()));
    assert_eq!(session.len(), 0, "looking writes nothing");
    stage.close().await;
    let stage = Stage::new((DangerFullAccess, Never)).await;
    assert_eq!(stage.current(&stage.session()), "danger-full-access");
    stage.close().await;
}

/// The table may have changed since, or the log may come from elsewhere.
#[tokio::test]
async fn a_selection_that_names_nothing_here_breaks_nothing() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let header = text(&stage.session(), 0);
    let datas = [r#"{"name":"gone"}"#, r#"{"name":"custom"}"#, r#"{"name":""}"#, r#"{"name":5}"#, "{}", "null"];
    for data in datas {
        let log = format!("{header}{{\"seq\":0,\"time\":1,\"type\":\"permission/preset\",\"data\":{data}}}\n");
        let session = reopened(&stage.sessions, log);
        assert_eq!(stage.current(&session), "read-only", "{data}");
        session.append(ModeSet::by_user(DangerFullAccess)).unwrap();
        assert_eq!(stage.current(&session), "custom", "{data}");
        stage.permission.choose(&session, "workspace-write").unwrap();
        assert_eq!(stage.current(&session), "workspace-write", "{data}");
    }
    stage.close().await;
}

/// A child's history may hold its parent's selection; what is in force there is what was handed down.
#[tokio::test]
async fn a_fork_is_told_by_its_own_knobs() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    for (name, want) in [("workspace-write", "custom"), ("danger-full-access", "danger-full-access")] {
        let parent = stage.session();
        stage.permission.begin(&parent, name).unwrap();
        parent.append(TurnStart { turn: 1 }).unwrap();
        parent.append(TurnEnd { turn: 1, reason: TurnReason::Completed }).unwrap();
        let fork = child(&parent, Seed::ClosedTurns);
        assert_eq!(&*fork.latest::<PresetChosen>().unwrap().name, name);
        assert_eq!(stage.current(&fork), want);
    }
    stage.close().await;
}

#[test]
fn it_is_shown_by_name() {
    assert_eq!(format!("[{:>6}]", Current::Preset("mine".into())), "[  mine]");
    assert_eq!(format!("[{:<8}]", Current::Custom), "[custom  ]");
    assert_eq!(CUSTOM, "custom");
}
