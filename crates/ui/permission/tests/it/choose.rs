//! What a choice writes.

use permission::*;
use sandbox_policy::ModeSet;
use session::*;
use user_approval::PolicySet;

use crate::support::*;

/// Every setting to every setting: the selection, then only what changes.
#[tokio::test]
async fn a_choice_records_itself_and_then_only_what_changes() {
    let stage = Stage::with((ReadOnly, Ask), every_setting()).await;
    for from in SETTINGS {
        for to in SETTINGS {
            let session = stage.session_at(from);
            stage.permission.choose(&session, &name_of(to)).unwrap();
            let mut written = lines_from(&session, 2);
            assert_eq!(written.remove(0), chosen(&name_of(to)), "it comes before what it causes");
            let mut want = Vec::new();
            if from.0 != to.0 {
                want.push(mode_by_preset(to.0));
            }
            if from.1 != to.1 {
                want.push(policy_by_preset(to.1));
            }
            written.sort();
            want.sort();
            assert_eq!(written, want, "{from:?} to {to:?}");
            assert_eq!(stage.setting(&session), to);
            assert_eq!(stage.current(&session), name_of(to));
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn the_default_presets_one_after_the_other() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let session = stage.session();
    for name in ["read-only", "danger-full-access", "danger-full-access", "workspace-write", "read-only"] {
        stage.permission.choose(&session, name).unwrap();
    }
    let want = [
        chosen("read-only"),
        mode_by_preset(ReadOnly),
        chosen("danger-full-access"),
        policy_by_preset(Never),
        mode_by_preset(DangerFullAccess),
        chosen("danger-full-access"),
        chosen("workspace-write"),
        mode_by_preset(WorkspaceWrite),
        policy_by_preset(Ask),
        chosen("read-only"),
        mode_by_preset(ReadOnly),
    ];
    assert_eq!(lines(&session), want);
    stage.close().await;
}

#[tokio::test]
async fn an_unknown_name_is_told_the_known_ones_and_writes_nothing() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let session = stage.session();
    let known = "use `read-only`, `workspace-write` or `danger-full-access`";
    let long = "x".repeat(1000);
    for (name, shown) in [("yolo", "yolo"), ("custom", "custom"), ("", ""), ("a\nb", r"a\nb"), (&long, &long[..64])] {
        for error in [stage.permission.choose(&session, name), stage.permission.begin(&session, name)] {
            let error = error.unwrap_err();
            assert_eq!(error.to_string(), format!("no permission preset named `{shown}`: {known}"));
            assert!(
                matches!(error, ChooseError::UnknownPreset { name: asked, known } if asked == name && known.len() == 3)
            );
        }
    }
    assert_eq!(session.len(), 0);
    stage.close().await;

    for (names, known) in [(&["only"][..], "`only`"), (&["a", "b"], "`a` or `b`")] {
        let presets = names.iter().map(|name| Preset::new(*name, ReadOnly, Ask)).collect();
        let stage = Stage::with((ReadOnly, Ask), Presets::new(presets).unwrap()).await;
        assert_eq!(stage.permission.presets().names().collect::<Vec<_>>(), names);
        let error = stage.permission.choose(&stage.session(), "read-only").unwrap_err();
        assert_eq!(error.to_string(), format!("no permission preset named `read-only`: use {known}"));
        stage.close().await;
    }
}

#[tokio::test]
async fn a_closed_session_takes_no_choice_and_says_so() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let session = stage.session();
    session.close();
    for error in
        [stage.permission.choose(&session, "workspace-write"), stage.permission.begin(&session, "workspace-write")]
    {
        assert_eq!(error, Err(ChooseError::Closed(Closed)));
        assert_eq!(error.unwrap_err().to_string(), "the preset could not be set: the session is closed");
    }
    assert_eq!(session.len(), 0);

    // Or only a part of one.
    let session = stage.session();
    let closes = session.clone();
    let _closing = session.observe(0, move |event| {
        if event.get::<PolicySet>().is_some() {
            closes.close();
        }
    });
    let error = stage.permission.choose(&session, "danger-full-access");
    assert_eq!(error, Err(ChooseError::Closed(Closed)));
    assert_eq!(stage.setting(&session), (ReadOnly, Never), "no wider than before");
    assert_eq!(stage.current(&session), "custom");
    stage.close().await;
}

// D-07
#[tokio::test]
async fn a_choice_in_a_child_is_its_own_and_one_in_the_parent_does_not_reach_it() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let parent = stage.session();
    stage.permission.begin(&parent, "workspace-write").unwrap();
    let child = child(&parent, Seed::Fresh);
    assert_eq!(stage.setting(&child), (WorkspaceWrite, Never));
    stage.permission.choose(&parent, "danger-full-access").unwrap();
    assert_eq!(stage.setting(&child), (WorkspaceWrite, Never));
    let before = lines(&parent);
    stage.permission.choose(&child, "read-only").unwrap();
    assert_eq!(stage.setting(&child), (ReadOnly, Ask), "a switch by a person in the child's own session");
    assert_eq!(lines(&parent), before);
    stage.close().await;
}

// D-01
#[tokio::test]
async fn a_chosen_mode_is_handed_down() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let parent = stage.session();
    assert_eq!(stamped(&child(&parent, Seed::Fresh)), None);
    stage.permission.choose(&parent, "workspace-write").unwrap();
    assert_eq!(stamped(&child(&parent, Seed::Fresh)), Some(WorkspaceWrite));
    stage.close().await;
}

/// A switch that was in the log before the selection is what the selection replaces, however late it came.
#[tokio::test]
async fn what_changes_is_told_by_the_log_at_the_selection() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let session = stage.session();
    let switches = session.clone();
    let _switching = session.observe(0, move |event| {
        if event.get::<PresetChosen>().is_some() {
            switches.append(ModeSet::by_user(DangerFullAccess)).unwrap();
            switches.append(PolicySet::by_user(Never)).unwrap();
        }
    });
    stage.permission.choose(&session, "read-only").unwrap();
    assert_eq!(stage.setting(&session), (ReadOnly, Ask));
    assert_eq!(stage.current(&session), "read-only");
    stage.close().await;
}
