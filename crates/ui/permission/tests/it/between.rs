//! The instants between the events of a choice: who looks, delegates, crashes or chooses there.

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use permission::*;
use proptest::prelude::*;
use sandbox_policy::ModeSet;
use session::*;
use user_approval::PolicySet;

use crate::support::*;

/// Whether `inner` allows nothing that `outer` does not. Where one may ask, one may be allowed.
fn within(inner: Setting, outer: Setting) -> bool {
    inner.0 <= outer.0 && (inner.1 == Never || outer.1 == Ask)
}

/// What everybody saw who looked at an event of the session, and what a child delegated there was handed.
type Seen = Arc<Mutex<Vec<(Setting, Option<sandbox::Mode>)>>>;

fn watch(stage: &Stage, session: &Session) -> (Seen, context::Registration) {
    let seen = Seen::default();
    let (notes, watched) = (seen.clone(), session.clone());
    let (sandbox, approval) = (stage.sandbox.clone(), stage.approval.clone());
    let watching = session.observe(session.len(), move |_| {
        let setting = (sandbox.effective(&watched), approval.effective(&watched));
        let child = child(&watched, Seed::Fresh);
        assert_eq!(approval.effective(&child), Never);
        notes.lock().unwrap().push((setting, stamped(&child)));
    });
    (seen, watching)
}

// D-01, D-04
#[tokio::test]
async fn between_two_events_nothing_is_wider_than_both_ends() {
    let stage = Stage::with((ReadOnly, Ask), every_setting()).await;
    for from in SETTINGS {
        for to in SETTINGS {
            let session = stage.session_at(from);
            let (seen, _watching) = watch(&stage, &session);
            stage.permission.choose(&session, &name_of(to)).unwrap();
            let seen = seen.lock().unwrap().clone();
            assert_eq!(seen.len() as u64, session.len() - 2, "after every event");
            for (setting, handed_down) in &seen {
                assert!(within(*setting, from) || within(*setting, to), "{from:?} to {to:?}: {setting:?}");
                assert!([Some(from.0), Some(to.0)].contains(handed_down), "{handed_down:?}");
            }
            assert_eq!(seen[0], (from, Some(from.0)), "the selection alone changes nothing");
            assert_eq!(seen.last().unwrap(), &(to, Some(to.0)));
        }
    }
    stage.close().await;
}

// D-01
#[tokio::test]
async fn a_delegation_before_the_mode_is_widened_hands_down_the_old_one() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let session = stage.session();
    stage.permission.begin(&session, "workspace-write").unwrap();
    let (seen, watching) = watch(&stage, &session);
    stage.permission.choose(&session, "danger-full-access").unwrap();
    let want = [
        ((WorkspaceWrite, Ask), Some(WorkspaceWrite)),
        ((WorkspaceWrite, Never), Some(WorkspaceWrite)),
        ((DangerFullAccess, Never), Some(DangerFullAccess)),
    ];
    assert_eq!(*seen.lock().unwrap(), want, "nobody can be asked before everything is allowed");
    drop(watching);
    let (seen, _watching) = watch(&stage, &session);
    stage.permission.choose(&session, "read-only").unwrap();
    let want = [
        ((DangerFullAccess, Never), Some(DangerFullAccess)),
        ((ReadOnly, Never), Some(ReadOnly)),
        ((ReadOnly, Ask), Some(ReadOnly)),
    ];
    assert_eq!(*seen.lock().unwrap(), want, "the mode is narrow before anybody can be asked");
    stage.close().await;
}

#[tokio::test]
async fn a_beginning_is_never_wider_than_the_default_or_the_preset() {
    for default in SETTINGS {
        let stage = Stage::with(default, every_setting()).await;
        for to in SETTINGS {
            let session = stage.session();
            let (seen, _watching) = watch(&stage, &session);
            stage.permission.begin(&session, &name_of(to)).unwrap();
            let seen = seen.lock().unwrap();
            assert_eq!(seen.len() as u64, session.len(), "after every event");
            for (setting, _) in &*seen {
                assert!(within(*setting, default) || within(*setting, to), "{default:?} to {to:?}: {setting:?}");
            }
        }
        stage.close().await;
    }
}

/// The process died behind any event of a choice: what is on disk is no wider than both ends, and has a name.
#[tokio::test]
async fn a_choice_that_was_torn_is_no_wider_than_both_ends() {
    let stage = Stage::with((ReadOnly, Ask), every_setting()).await;
    for from in SETTINGS {
        for to in SETTINGS {
            let session = stage.session_at(from);
            stage.permission.choose(&session, &name_of(to)).unwrap();
            for length in 2..=session.len() {
                let again = reopened(&stage.sessions, text(&session, length));
                let setting = stage.setting(&again);
                assert!(within(setting, from) || within(setting, to), "{from:?} to {to:?}, {length} events");
                assert_eq!(stage.current(&again), name_of(setting));
            }
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn a_choice_within_a_choice_is_refused() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let (session, other) = (stage.session(), stage.session());
    let errors: Arc<Mutex<Vec<_>>> = Arc::default();
    let (permission, nested, notes) = (stage.permission.clone(), session.clone(), errors.clone());
    let others = other.clone();
    let watching = session.observe(0, move |event| {
        if event.get::<ModeSet>().is_some() {
            let choose = permission.choose(&nested, "read-only");
            notes.lock().unwrap().push((choose, permission.choose(&others, "workspace-write")));
        }
    });
    stage.permission.choose(&session, "workspace-write").unwrap();
    assert_eq!(*errors.lock().unwrap(), [(Err(ChooseError::Underway), Ok(()))], "in this session, not in others");
    let want = "another choice of a permission preset is under way in this session: choose again";
    assert_eq!(ChooseError::Underway.to_string(), want);
    assert_eq!(stage.setting(&session), (WorkspaceWrite, Ask));
    drop(watching);
    stage.permission.choose(&session, "read-only").unwrap();
    assert_eq!(stage.current(&session), "read-only", "when the one is done, the next may begin");
    stage.close().await;
}

/// Many choose at once, each until it may: the last selection in the log is what is in force, and at no event in
/// between does anything stand that no two neighbouring selections allow.
#[tokio::test]
async fn choices_that_race_never_mix() {
    let stage = Stage::with((ReadOnly, Ask), every_setting()).await;
    let session = stage.session_at((ReadOnly, Never));
    // Whoever is behind the first event of a choice lets the others in.
    let _watching = session.observe(0, |_| std::thread::yield_now());
    let (start, began) = (Barrier::new(4), Instant::now());
    std::thread::scope(|threads| {
        for offset in 0..4 {
            let (session, permission, start) = (&session, &stage.permission, &start);
            threads.spawn(move || {
                start.wait();
                for round in 0..50 {
                    let name = name_of(SETTINGS[(offset + round) % SETTINGS.len()]);
                    while let Err(error) = permission.choose(session, &name) {
                        assert_eq!(error, ChooseError::Underway);
                        assert!(began.elapsed() < Duration::from_secs(60), "it should not hang");
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    let (mut setting, mut ends) = ((ReadOnly, Never), [(ReadOnly, Never); 2]);
    let mut choices = 0;
    for event in session.snapshot().events().iter() {
        if let Some(PresetChosen { name }) = event.get() {
            assert_eq!(setting, ends[1], "the selection before it was carried out");
            let next = SETTINGS.into_iter().find(|setting| name_of(*setting) == **name).unwrap();
            (ends, choices) = ([setting, next], choices + 1);
        } else if let Some(ModeSet { mode, .. }) = event.get() {
            setting.0 = *mode;
        } else if let Some(PolicySet { policy, .. }) = event.get() {
            setting.1 = *policy;
        }
        assert!(ends.iter().any(|end| within(setting, *end)), "{setting:?} between {ends:?}");
    }
    assert_eq!((choices, setting), (200, ends[1]));
    stage.close().await;
}

/// What a session may go through.
#[derive(Clone, Copy, Debug)]
enum Step {
    Choose(usize),
    Mode(usize),
    Policy(usize),
    Default(usize),
    Resume,
}

fn step() -> impl Strategy<Value = Step> {
    let setting = 0..SETTINGS.len();
    prop_oneof![
        setting.clone().prop_map(Step::Choose),
        setting.clone().prop_map(Step::Mode),
        setting.clone().prop_map(Step::Policy),
        setting.prop_map(Step::Default),
        Just(Step::Resume),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a model of three variables.
    #[test]
    fn whatever_happens_current_is_what_is_in_force(steps in proptest::collection::vec(step(), 0..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let presets: Vec<_> = every_setting().iter().cloned().collect();
            // Two settings have no preset, and one has two.
            let mut table = presets[..4].to_vec();
            table.push(Preset { name: "again".into(), ..presets[2].clone() });
            let stage = Stage::with((ReadOnly, Ask), Presets::new(table.clone()).unwrap()).await;
            let mut session = stage.session();
            let (mut default, mut mode, mut policy, mut chosen) = (ReadOnly, None, None, None);
            for step in steps {
                match step {
                    Step::Choose(index) => {
                        let preset = &table[index % table.len()];
                        stage.permission.choose(&session, &preset.name).unwrap();
                        chosen = Some(preset.clone());
                        mode = Some(preset.sandbox);
                        policy = if policy.unwrap_or(Ask) == preset.approval { policy } else { Some(preset.approval) };
                    }
                    Step::Mode(index) => {
                        mode = Some(SETTINGS[index].0);
                        session.append(ModeSet::by_user(SETTINGS[index].0)).unwrap();
                    }
                    Step::Policy(index) => {
                        policy = Some(SETTINGS[index].1);
                        session.append(PolicySet::by_user(SETTINGS[index].1)).unwrap();
                    }
                    Step::Default(index) => {
                        default = SETTINGS[index].0;
                        stage.sandbox.set_default(default);
                    }
                    Step::Resume => session = reopened(&stage.sessions, text(&session, session.len())),
                }
                let setting = (mode.unwrap_or(default), policy.unwrap_or(Ask));
                assert_eq!(stage.setting(&session), setting);
                assert_eq!(session.latest::<ModeSet>().map(|set| set.mode), mode);
                let fits = |preset: &&Preset| (preset.sandbox, preset.approval) == setting;
                let want = chosen.as_ref().filter(fits).or_else(|| table.iter().find(fits));
                let want = want.map_or("custom", |preset| &preset.name);
                assert_eq!(stage.current(&session), want);
            }
            stage.close().await;
        });
    }
}
