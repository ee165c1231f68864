//! Nobody is asked on behalf of a child.

use context::Scope;
use session::*;
use user_approval::*;

use crate::support::*;

const PIN: &str = r#"approval/policy {"policy":"never","source":"delegation"}"#;

// D-04
#[tokio::test]
async fn a_child_is_pinned_whatever_its_parents_policy() {
    let stage = Stage::new().await;
    let policies = [
        None,
        Some(PolicySet::by_user(Policy::Ask)),
        Some(PolicySet::by_user(Policy::Never)),
        Some(PolicySet { policy: Policy::Ask, source: Some(PolicyCause::Preset) }),
    ];
    for policy in policies {
        let parent = stage.session();
        if let Some(policy) = policy {
            parent.append(policy).unwrap();
        }
        let child = child(&parent, Seed::Fresh);
        assert_eq!(lines(&child), [PIN], "{policy:?}");
        assert_eq!(stage.approval.effective(&child), Policy::Never);
        assert!(Delegation::capture(&parent).unwrap().hands_down::<PolicySet>());
    }
    stage.close().await;
}

// D-05
#[tokio::test]
async fn the_pin_beats_a_switch_in_the_forked_history() {
    let stage = Stage::new().await;
    let parent = stage.session();
    parent.append(PolicySet::by_user(Policy::Ask)).unwrap();
    end_turn(&parent);
    let fork = child(&parent, Seed::ClosedTurns);
    let own: Vec<String> = lines(&fork).split_off(fork.header().seed_length() as usize);
    assert_eq!(own, ["session/end-seed {}", PIN]);
    assert_eq!(stage.approval.effective(&fork), Policy::Never);
    assert_eq!(stage.approval.effective(&reopened(&fork).unwrap()), Policy::Never, "from its own log alone");
    stage.close().await;
}

// D-04
#[tokio::test]
async fn without_the_service_no_policy_is_handed_down() {
    let parent = Sessions::new().create("/home/me/project");
    assert_eq!(lines(&child(&parent, Seed::Fresh)), [""; 0]);
    assert!(!Delegation::capture(&parent).unwrap().hands_down::<PolicySet>());

    // Nor after it is gone.
    let stage = Stage::new().await;
    let parent = stage.session();
    stage.close().await;
    assert_eq!(lines(&child(&parent, Seed::Fresh)), [""; 0]);
}

// D-09
#[tokio::test]
async fn a_childs_ask_is_rejected_before_an_answerer_that_would_have_allowed_it() {
    let stage = Stage::new().await;
    stage.generous();
    let parent = stage.session();
    assert_eq!(stage.request(&parent).await.unwrap(), Outcome::AllowedOnce, "the parent may");
    end_turn(&parent);
    let (parent_log, _) = (lines(&parent), stage.consulted.take());
    for seed in [Seed::Fresh, Seed::ClosedTurns] {
        let child = child(&parent, seed);
        child.append(TurnStart { turn: 2 }).unwrap();
        let before = child.len();
        assert_eq!(stage.request(&child).await.unwrap(), Outcome::Rejected);
        assert_eq!(stage.consulted.take(), [""; 0], "not even whose child it is");
        let own = audit(&child).split_off(if seed == Seed::Fresh { 0 } else { 2 });
        assert_eq!(own, [format!("{before}: asked {before}"), format!("{}: decided {before} Rejected", before + 1)]);
    }
    assert_eq!(lines(&parent), parent_log, "the audit is in the child's log");
    stage.close().await;
}

// D-08
#[tokio::test]
async fn a_grandchild_is_pinned_like_a_child() {
    let stage = Stage::new().await;
    stage.generous();
    let child_of = |parent| child(parent, Seed::Fresh);
    let grandchild = child_of(&child_of(&stage.session()));
    assert_eq!(lines(&grandchild), [PIN]);
    grandchild.append(TurnStart { turn: 1 }).unwrap();
    assert_eq!(stage.request(&grandchild).await.unwrap(), Outcome::Rejected);
    stage.close().await;
}

// D-07
#[tokio::test]
async fn a_later_switch_on_the_childs_own_session_beats_the_pin_and_one_on_the_parents_does_not_reach_it() {
    let stage = Stage::new().await;
    stage.generous();
    let parent = stage.session();
    let child = child(&parent, Seed::Fresh);
    child.append(TurnStart { turn: 1 }).unwrap();
    parent.append(PolicySet::by_user(Policy::Ask)).unwrap();
    assert_eq!(stage.request(&child).await.unwrap(), Outcome::Rejected);
    child.append(PolicySet::by_user(Policy::Ask)).unwrap();
    assert_eq!(stage.request(&child).await.unwrap(), Outcome::AllowedOnce);
    stage.close().await;
}

#[tokio::test]
async fn the_pin_comes_after_the_sandbox_and_before_all_others() {
    struct Noting(Rank, &'static str);
    impl Contributor for Noting {
        fn rank(&self) -> Rank {
            self.0
        }
        fn contribute(&self, _: &Snapshot, stamps: &mut Stamps) {
            stamps.add(SessionTitle { title: self.1.into(), source: "user".into() });
        }
    }
    let app = Scope::root("app");
    let sessions = Sessions::new();
    app.provide(sessions.clone()).unwrap();
    let other = sessions.register_contributor("other", std::sync::Arc::new(Noting(Rank::Other, "other"))).unwrap();
    let plugin = context::Plugins::new().with(UserApprovalPlugin, Config { default: Policy::Ask });
    plugin.start(&app).await.unwrap();
    let sandbox = sessions.register_contributor("box", std::sync::Arc::new(Noting(Rank::Sandbox, "box"))).unwrap();
    let child = child(&sessions.create("/home/me/project"), Seed::Fresh);
    let title = |title: &str| format!(r#"session/title {{"title":"{title}","source":"user"}}"#);
    assert_eq!(lines(&child), [title("box"), PIN.to_owned(), title("other")]);
    drop((other, sandbox));
    app.close().await.unwrap();
}
