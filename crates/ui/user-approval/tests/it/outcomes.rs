//! Every policy against everything that may become of a question: outcome, who was consulted, and the pair in the log.

use session::*;
use tokio_util::sync::CancellationToken;
use user_approval::*;

use crate::support::*;

const ASK: PolicySet = PolicySet { policy: Policy::Ask, source: None };
const NEVER: PolicySet = PolicySet { policy: Policy::Never, source: None };
const PRESET: PolicySet = PolicySet { policy: Policy::Never, source: Some(PolicyCause::Preset) };

/// Deployment default, overrides, whether it is a child, and whether anyone may be asked.
const POLICIES: [(Policy, &[PolicySet], bool, Policy); 9] = [
    (Policy::Ask, &[], false, Policy::Ask),
    (Policy::Never, &[], false, Policy::Never),
    (Policy::Never, &[ASK], false, Policy::Ask),
    (Policy::Ask, &[NEVER], false, Policy::Never),
    (Policy::Ask, &[PRESET], false, Policy::Never),
    (Policy::Ask, &[NEVER, ASK], false, Policy::Ask),
    (Policy::Never, &[ASK, NEVER], false, Policy::Never),
    (Policy::Ask, &[], true, Policy::Never),
    (Policy::Ask, &[ASK], true, Policy::Never),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum World {
    Nobody,
    Says(Answer),
    Stranger,
    Absent,
    Fails,
    CancelledFirst,
    CancelledWhileAsked,
}

const WORLDS: [(World, Outcome); 8] = [
    (World::Nobody, Outcome::Unavailable),
    (World::Says(Answer::AllowOnce), Outcome::AllowedOnce),
    (World::Says(Answer::Reject), Outcome::Rejected),
    (World::Stranger, Outcome::Unavailable),
    (World::Absent, Outcome::Unavailable),
    (World::Fails, Outcome::Unavailable),
    (World::CancelledFirst, Outcome::Cancelled),
    (World::CancelledWhileAsked, Outcome::Cancelled),
];

// D-09
#[tokio::test]
async fn every_policy_against_every_answer() {
    for (default, overrides, is_child, policy) in POLICIES {
        for (world, when_asked) in WORLDS {
            let stage = Stage::with_default(default).await;
            let cancelled = CancellationToken::new();
            put(&stage, world, &cancelled);
            let mut session = stage.session();
            for set in overrides {
                session.append(*set).unwrap();
            }
            if is_child {
                session = child(&session, Seed::Fresh);
                session.append(TurnStart { turn: 1 }).unwrap();
            }
            let id = session.len();
            let outcome = in_time(stage.approval.request(&session, ask(), &cancelled)).await.unwrap();
            let said = format!("default {default:?}, {overrides:?}, child {is_child}, {world:?}");
            let (want, consulted) = match policy {
                Policy::Ask => (when_asked, !matches!(world, World::Nobody | World::CancelledFirst)),
                Policy::Never => (Outcome::Rejected, false),
            };
            assert_eq!(outcome, want, "{said}");
            assert_eq!(!stage.consulted.take().is_empty(), consulted, "{said}");
            let pair = [format!("{id}: asked {id}"), format!("{}: decided {id} {want:?}", id + 1)];
            assert_eq!(audit(&session), pair, "{said}");
            assert_eq!(session.len(), id + 2, "{said}: nothing else is written");
            stage.close().await;
        }
    }
}

fn put(stage: &Stage, world: World, cancelled: &CancellationToken) {
    match world {
        World::Nobody => {}
        World::Says(answer) => stage.answerer("says", move |_| async move { Some(answer) }),
        World::Stranger => stage.answerer_for("stranger", |_| false, async |_| Some(Answer::AllowOnce)),
        World::Absent => stage.answerer("absent", async |_| None),
        World::Fails => stage.answerer("fails", async |_| panic!("a bug")),
        World::CancelledFirst => {
            cancelled.cancel();
            stage.generous();
        }
        World::CancelledWhileAsked => {
            let cancels = cancelled.clone();
            stage.answerer("slow", move |_| {
                cancels.cancel();
                std::future::pending()
            });
        }
    }
}
