use sandbox::Mode;
use sandbox_policy::ModeSet;
use serde_json::{Value, json};
use session::{Seed, Session, SessionTitle, TurnReason};
use user_approval::{Policy, PolicySet};

use super::world::{World, in_world, named, turn};

fn explained(world: &World, session: &Session) -> Value {
    let mut lines = world.tether(&["policy", "explain", &session.id().to_string(), "--json"]).json();
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

/// The only thing that is wrong.
fn problem(ruling: &Value) -> &str {
    match ruling["problems"].as_array().map(Vec::as_slice) {
        Some([only]) => only.as_str().unwrap(),
        _ => panic!("not one problem: {ruling}"),
    }
}

async fn release(sessions: &[&Session]) {
    for session in sessions {
        session.release().await.unwrap();
    }
}

// D-70
#[tokio::test]
async fn a_stamp_is_followed_to_the_root() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        top.append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
        let child = world.child(&top, "child", Seed::Fresh).await;
        // Later switches of the parent reach nobody, and explain nothing.
        top.append(ModeSet::by_user(Mode::DangerFullAccess)).unwrap();
        let grandchild = world.child(&child, "grandchild", Seed::Fresh).await;
        release(&[&top, &child, &grandchild]).await;

        let want = json!({
            "session": grandchild.id(),
            "sandbox": { "mode": "workspace-write", "decidedBy": [
                { "session": grandchild.id(), "seq": 0, "source": "delegation", "mode": "workspace-write" },
                { "session": child.id(), "seq": 0, "source": "delegation", "mode": "workspace-write" },
                { "session": top.id(), "seq": 1, "source": "user", "mode": "workspace-write" },
            ] },
            "approval": { "policy": "never", "decidedBy": [
                { "session": grandchild.id(), "seq": 1, "source": "delegation", "policy": "never" },
            ] },
        });
        assert_eq!(explained(world, &grandchild), want);
        let text = world.tether(&["policy", "explain", &grandchild.id().to_string()]).printed();
        insta::assert_snapshot!(named(&text, &[(&top, "TOP"), (&child, "CHILD"), (&grandchild, "GRANDCHILD")]), @r"
        session   GRANDCHILD
        sandbox   workspace-write
          decided by GRANDCHILD seq 0 (delegation)
          copied from CHILD seq 0 (delegation)
          copied from TOP seq 1 (user)
        approval  never
          decided by GRANDCHILD seq 1 (delegation)
          the delegation by CHILD pinned it, whatever applied there
        ");
    })
    .await;
}

// D-02
// D-70
#[tokio::test]
async fn where_no_event_decides_the_deployment_default_does() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(SessionTitle { title: "t".into(), source: "user".into() }).unwrap();
        let child = world.child(&top, "child", Seed::Fresh).await;
        // Too late for the child.
        top.append(ModeSet::by_user(Mode::DangerFullAccess)).unwrap();
        let plain = world.top().await;
        plain.append(SessionTitle { title: "t".into(), source: "user".into() }).unwrap();
        release(&[&top, &child, &plain]).await;

        let default = json!({ "mode": null, "decidedBy": "deployment default" });
        assert_eq!(explained(world, &child)["sandbox"], default);
        let nothing = json!({
            "session": plain.id(), "sandbox": default,
            "approval": { "policy": null, "decidedBy": "deployment default" },
        });
        assert_eq!(explained(world, &plain), nothing);
        let text = world.tether(&["policy", "explain", &child.id().to_string()]).printed();
        insta::assert_snapshot!(named(&text, &[(&top, "TOP"), (&child, "CHILD")]), @r"
        session   CHILD
        sandbox   deployment default
          no event decides
          TOP had no override either when it delegated (at seq 1)
        approval  never
          decided by CHILD seq 0 (delegation)
          the delegation by TOP pinned it, whatever applied there
        ");
    })
    .await;
}

#[tokio::test]
async fn a_switch_in_the_childs_own_log_decides_alone() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let child = world.child(&top, "child", Seed::Fresh).await;
        child.append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
        child.append(PolicySet::by_user(Policy::Ask)).unwrap();
        release(&[&top, &child]).await;
        let told = explained(world, &child);
        let decider = json!([{ "session": child.id(), "seq": 3, "source": "user", "mode": "workspace-write" }]);
        assert_eq!(told["sandbox"], json!({ "mode": "workspace-write", "decidedBy": decider }));
        assert_eq!((&told["approval"]["policy"], &told["approval"]["decidedBy"][0]["seq"]), (&json!("ask"), &json!(4)));
    })
    .await;
}

#[tokio::test]
async fn a_parent_that_is_gone_is_told() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let stamped = world.child(&top, "child", Seed::Fresh).await;
        release(&[&top, &stamped]).await;
        std::fs::remove_file(world.path(top.id())).unwrap();
        let told = explained(world, &stamped);
        assert_eq!(told["sandbox"]["mode"], "read-only");
        assert_eq!(told["sandbox"]["decidedBy"].as_array().unwrap().len(), 1);
        assert!(problem(&told["sandbox"]).contains(&format!("no session {}", top.id())), "{told}");
        let text = world.tether(&["policy", "explain", &stamped.id().to_string()]).printed();
        assert!(text.contains("✗ where "), "{text}");

        world.write(top.id(), "rubbish\n");
        let told = explained(world, &stamped);
        assert!(problem(&told["sandbox"]).contains(".jsonl:1 is damaged"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_chain_that_does_not_hold_is_told() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let child = world.child(&top, "child", Seed::Fresh).await;
        release(&[&top, &child]).await;
        let (parents, childs) = (world.log(top.id()), world.log(child.id()));
        let (top_id, child_id) = (top.id(), child.id());

        // The stamp is wider than what the parent had.
        world.write(child_id, childs.replace("read-only", "danger-full-access"));
        let told = explained(world, &child);
        assert_eq!(told["sandbox"]["mode"], "danger-full-access");
        let want = format!(
            "{child_id} seq 0 says danger-full-access, and {top_id} had read-only (seq 0) when it delegated (at seq 1)"
        );
        assert_eq!(problem(&told["sandbox"]), want);

        // The stamps are gone.
        let title = r#"{"seq":0,"time":1,"type":"session/title","data":{"title":"t","source":"user"}}"#;
        let header = childs.lines().next().unwrap();
        world.write(child_id, format!("{header}\n{title}\n"));
        let told = explained(world, &child);
        assert_eq!(told["sandbox"]["decidedBy"], "deployment default");
        assert!(problem(&told["sandbox"]).starts_with(&format!("{top_id} had read-only (seq 0)")), "{told}");
        assert!(problem(&told["approval"]).contains("no pin"), "{told}");

        // The pin is none.
        world.write(child_id, childs.replace("\"never\"", "\"ask\""));
        let told = explained(world, &child);
        assert_eq!(problem(&told["approval"]), "a delegation pins a child to never; seq 1 says ask");

        // The parent had nothing to hand down, and is shorter than the child says.
        world.write(child_id, &childs);
        world.write(top_id, format!("{}\n", parents.lines().next().unwrap()));
        let told = explained(world, &child);
        let problems = told["sandbox"]["problems"].as_array().unwrap();
        assert!(problems[0].as_str().unwrap().contains("which has only 0 events"), "{told}");
        assert!(problems[1].as_str().unwrap().contains("had no override when it delegated"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn what_came_with_copied_history_is_followed_into_it() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        turn(&top, 1, TurnReason::Completed);
        let fork = world.child(&top, "fork", Seed::ClosedTurns).await;
        release(&[&top, &fork]).await;
        // Stamped as it is, the stamp decides, not the copy.
        let stamp = fork.header().seed_length() + 1;
        assert_eq!(explained(world, &fork)["sandbox"]["decidedBy"][0]["seq"], stamp);

        // As a composition without any policy would have left it.
        let log = world.log(fork.id());
        let seeded: Vec<&str> = log.lines().take(stamp as usize + 1).collect();
        world.write(fork.id(), seeded.join("\n") + "\n");
        let told = explained(world, &fork);
        let want = json!([
            { "session": fork.id(), "seq": 0, "source": "user", "mode": "read-only", "seeded": true },
            { "session": top.id(), "seq": 0, "source": "user", "mode": "read-only" },
        ]);
        assert_eq!(told["sandbox"], json!({ "mode": "read-only", "decidedBy": want }));

        // A copy that is none.
        world.write(fork.id(), (seeded.join("\n") + "\n").replace("read-only", "danger-full-access"));
        let told = explained(world, &fork);
        assert!(problem(&told["sandbox"]).contains("is not what"), "{told}");
    })
    .await;
}
