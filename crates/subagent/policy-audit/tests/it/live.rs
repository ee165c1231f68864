use policy_audit::{Code, Finding, check_child, check_top_level};
use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet};
use session::{Delegation, Seed, Session, Sessions, TurnStart};
use user_approval::{Policy, PolicySet};

use super::world::{delegate, in_house, turn};

fn check(parent: &Session, child: &Session) -> Vec<Finding> {
    check_child(Some(&parent.snapshot()), &child.snapshot())
}

fn codes(findings: &[Finding]) -> Vec<(Code, Option<u64>)> {
    findings.iter().map(|finding| (finding.code, finding.seq)).collect()
}

// D-01…D-05, D-07, D-08, D-71
#[tokio::test]
async fn live_sessions_are_in_order_at_every_step() {
    in_house(async |sessions| {
        let top = sessions.create("/home/me");
        let mut family = vec![(None, top.clone())];
        let modes = [None, Some(Mode::WorkspaceWrite), Some(Mode::ReadOnly), Some(Mode::DangerFullAccess)];
        for (n, mode) in modes.into_iter().enumerate() {
            // Switches of the top-level session reach those who are delegated later, and nobody else.
            if let Some(mode) = mode {
                top.append(ModeSet::by_user(mode)).unwrap();
            }
            if n == 2 {
                turn(&top, 1);
            }
            top.append(TurnStart { turn: 2 }).unwrap();
            for seed in [Seed::Fresh, Seed::ClosedTurns] {
                let child = delegate(&top, seed);
                turn(&child, 1);
                let grandchild = delegate(&child, seed);
                let narrower = ModeSet { mode: Mode::ReadOnly, source: Some(ModeCause::Ancestor) };
                if child.latest::<ModeSet>().is_none_or(|set| set.mode > Mode::ReadOnly) {
                    child.append(narrower).unwrap();
                }
                let narrowed = delegate(&child, seed);
                family.push((Some(top.clone()), child.clone()));
                family.push((Some(child.clone()), grandchild));
                family.push((Some(child), narrowed));
            }
            for (parent, session) in &family {
                let found = match parent {
                    Some(parent) => check(parent, session),
                    None => check_top_level(&session.snapshot()),
                };
                assert_eq!(found, [], "{:?}", session.snapshot().events().iter().collect::<Vec<_>>());
            }
        }
        assert_eq!(family.len(), 25);
    })
    .await;
}

// D-71
#[tokio::test]
async fn a_live_child_that_is_widened_is_found() {
    in_house(async |sessions| {
        let top = sessions.create("/home/me");
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let child = delegate(&top, Seed::Fresh);
        child.append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
        child.append(PolicySet::by_user(Policy::Ask)).unwrap();
        let found = check(&top, &child);
        assert_eq!(codes(&found), [(Code::WideningSwitch, Some(3)), (Code::WideningApproval, Some(4))]);
        // What it hands down from then on is what it has then.
        assert_eq!(check(&child, &delegate(&child, Seed::Fresh)), []);
    })
    .await;
}

// D-12, D-71
#[tokio::test]
async fn a_child_is_held_against_its_own_parent_alone() {
    in_house(async |sessions| {
        let (top, other) = (sessions.create("/home/me"), sessions.create("/home/me"));
        let child = delegate(&top, Seed::Fresh);
        let missing = [(Code::ParentMissing, None)];
        assert_eq!(codes(&check(&other, &child)), missing);
        assert_eq!(codes(&check_child(None, &child.snapshot())), missing);
        assert_eq!(check_child(None, &top.snapshot()), [], "it needs none");
        assert_eq!(codes(&check_top_level(&child.snapshot()))[0].0, Code::DelegationEventInTopLevel);
    })
    .await;
}

// D-71
#[tokio::test]
async fn a_house_without_policies_leaves_no_stamps() {
    in_house(async |sessions| {
        let bare = Sessions::new();
        bare.learn::<subagent::Descriptor>().unwrap();
        let top = bare.create("/home/me");
        let child = Session::delegated(Delegation::capture(&top).unwrap(), Seed::Fresh);
        assert_eq!(codes(&check(&top, &child)), [(Code::NoOwnEvents, None)]);
        // The same child, but for a parent whose override nobody handed down.
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let child = delegate(&top, Seed::Fresh);
        assert_eq!(codes(&check(&top, &child)), [(Code::StampMissing, None), (Code::PinMissing, None)]);
        assert_eq!(check(&sessions.create("/"), &child)[0].code, Code::ParentMissing);
    })
    .await;
}
