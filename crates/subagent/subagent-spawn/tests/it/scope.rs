//! A child acts inside the scope that it was handed: the disk is the witness.

use std::sync::Arc;

use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet};
use subagent::{Request, StopReason};
use user_approval::{ApprovalAsked, ApprovalDecided, Outcome};

use crate::doubles::{Gate, Yes};
use crate::world::*;

// D-07
#[tokio::test]
async fn a_later_switch_counts_where_it_is_made_and_nowhere_else() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        switch(&parent, Mode::ReadOnly);
        let script = r#"write 1.txt x; call gate {"name":"1"}; write 2.txt x; call gate {"name":"2"}; write 3.txt x;
            write ../outside/3.txt x; call gate {"name":"3"}; write 4.txt x"#;
        let run = world.spawn(&parent, script).await;
        let (child, written) = (world.child(&run), |n: u8| world.at(&format!("ws/{n}.txt")).exists());
        gate.arrived("1").await;
        switch(&parent, Mode::DangerFullAccess);
        gate.open("1");
        gate.arrived("2").await;
        assert!(!written(1) && !written(2), "the parent's switch does not reach the child");
        switch(&child, Mode::WorkspaceWrite);
        gate.open("2");
        gate.arrived("3").await;
        assert!(written(3) && !world.at("outside/3.txt").exists(), "the child's own beats what it was handed");
        switch(&child, Mode::ReadOnly);
        gate.open("3");
        run.result().await;
        assert!(!written(4));
        tell(&parent, "write ../outside/parent.txt x").await;
        assert!(world.at("outside/parent.txt").exists(), "and the parent has kept its own");
        // Delegating again hands the new one down.
        let again = world.spawn(&parent, "write ../outside/again.txt x").await;
        again.result().await;
        assert!(world.at("outside/again.txt").exists());
        world.app.close().await.unwrap();
    })
    .await;
}

// D-08, D-26
#[tokio::test]
async fn three_deep_through_the_tool_each_has_the_scope_of_the_one_above() {
    within(async {
        // The default is wide, so whoever lost the override would show.
        let world = World::with(policies(Mode::DangerFullAccess), |plugins| plugins, |_| {}).await;
        let parent = world.parent().await;
        switch(&parent, Mode::WorkspaceWrite);
        let outcome = tell(
            &parent,
            "spawn one { write ../outside/1 x; write 1 x; spawn two { write ../outside/2 x; write 2 x; \
             spawn three { write ../outside/3 x; write 3 x } } }; write ../outside/0 x",
        )
        .await;
        assert_eq!(said(&outcome).matches("sandbox denied: write").count(), 4, "{}", said(&outcome));
        assert_eq!(std::fs::read_dir(world.at("outside")).unwrap().count(), 0);
        for name in ["1", "2", "3"] {
            assert!(world.at("ws").join(name).exists());
        }
        let children = world.news.children();
        let mut above = parent.id();
        for (id, depth) in children.iter().zip(1..) {
            let log = world.log(*id);
            let lineage = log.header().lineage().unwrap();
            assert_eq!((lineage.parent(), lineage.depth()), (above, depth));
            let stamp = ModeSet { mode: Mode::WorkspaceWrite, source: Some(ModeCause::Delegation) };
            assert_eq!(all::<ModeSet>(&log), [&stamp]);
            above = *id;
        }
        assert_eq!(children.len(), 3);
        world.news.assert_paired();
        let kept: Vec<_> = [parent.id()].into_iter().chain(children).collect();
        world.close(&kept).await;
    })
    .await;
}

// D-08
#[tokio::test]
async fn a_grandchild_is_captured_from_its_parent_and_not_from_the_root() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let root = world.parent().await;
        switch(&root, Mode::WorkspaceWrite);
        let script = r#"call gate {"name":"child"}; spawn deep { write deep.txt x }; write own.txt x"#;
        let run = world.spawn(&root, script).await;
        gate.arrived("child").await;
        switch(&root, Mode::DangerFullAccess);
        switch(&world.child(&run), Mode::ReadOnly);
        gate.open("child");
        run.result().await;
        assert!(!world.at("ws/deep.txt").exists() && !world.at("ws/own.txt").exists());
        let grandchild = *world.news.children().last().unwrap();
        let stamp = ModeSet { mode: Mode::ReadOnly, source: Some(ModeCause::Delegation) };
        assert_eq!(all::<ModeSet>(&world.log(grandchild)), [&stamp]);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-09
#[tokio::test]
async fn a_childs_ask_is_rejected_though_somebody_would_allow_it() {
    within(async {
        let world = World::new().await;
        let yes = Arc::new(Yes::default());
        world.app.own(world.approval().answer_with(yes.clone())).unwrap();
        let parent = world.parent().await;
        switch(&parent, Mode::WorkspaceWrite);
        let ask = |name: &str| format!(r#"write ../outside/{name} x with danger-full-access because "it must be""#);
        let script = format!("{}; spawn deeper {{ {} }}", ask("child"), ask("grandchild"));
        let run = world.subagents.start(&parent, "spawn", Request::new(script)).await.unwrap();
        assert_eq!(run.result().await.reason, StopReason::Completed);
        assert_eq!(std::fs::read_dir(world.at("outside")).unwrap().count(), 0);
        assert_eq!(yes.asked(), 0, "nobody was asked");
        run.dispose().await.unwrap();
        for id in world.news.children() {
            let log = world.log(id);
            let [asked] = all::<ApprovalAsked>(&log)[..] else { panic!("one ask a child") };
            let decided = ApprovalDecided { request_id: asked.request_id, outcome: Outcome::Rejected };
            assert_eq!(all::<ApprovalDecided>(&log), [&decided]);
            assert!(asked.reason.as_ref().unwrap().ends_with("under danger-full-access"));
            assert_eq!(asked.justification.as_deref(), Some("it must be"));
            assert!(answers(&log)[0].starts_with("permission rejected"), "{:?}", answers(&log));
        }
        assert_eq!(world.news.children().len(), 2);
        tell(&parent, &ask("parent")).await;
        assert!(world.at("outside/parent").exists(), "the parent may ask");
        assert_eq!(yes.asked(), 1);
        world.app.close().await.unwrap();
    })
    .await;
}
