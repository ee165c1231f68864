//! What is told, of what, and with which status.

use sandbox::Mode;
use sandbox_policy::ModeSet;
use serde_json::json;
use session::{Seed, SessionId, TurnReason, TurnStart};

use super::forge::{Forge, event, mode};
use crate::read::world::{in_world, named, turn};

// D-71
#[test]
fn a_report_for_people() {
    let forge = Forge::family();
    let intact = forge.audit(&[]).ended(0);
    insta::assert_snapshot!(forge.named(&intact.stdout), @r"
    TOP  ok
      A  A  ok
        B  B  ok
    logs are compared with each other: rewriting all of them consistently is out of scope
    audited 3 sessions: no violation
    ");
    assert_eq!(intact.stderr, "");

    forge.events("B", |events| {
        events.remove(1);
        events.push(event("theirs/thing", json!({ "x": 1 })));
        events.push(event("theirs/thing", json!({ "x": 2 })));
        events.push(mode("danger-full-access", "user"));
    });
    insta::assert_snapshot!(forge.named(&forge.audit(&[]).ended(1).stdout), @r"
    TOP  ok
      A  A  ok
        B  B  2 violations  2 events of the unknown type theirs/thing, from seq 12 on
          ✗ pin-missing: no approval pin, and the descriptor does not say that no approval service was composed
          ✗ seq 14 widening-switch: switched from workspace-write to the wider danger-full-access
    logs are compared with each other: rewriting all of them consistently is out of scope
    audited 3 sessions: 2 violations
    ");
}

// D-71
#[test]
fn a_report_for_programs() {
    let forge = Forge::family();
    let end = forge.len("B");
    forge.events("B", |events| {
        events.push(event("theirs/thing", json!({})));
        events.push(mode("danger-full-access", "user"));
    });
    let message = "switched from workspace-write to the wider danger-full-access";
    let want = [
        json!({ "session": forge.id("TOP"), "findings": [] }),
        json!({ "session": forge.id("A"), "parent": forge.id("TOP"), "findings": [] }),
        json!({
            "session": forge.id("B"), "parent": forge.id("A"),
            "findings": [{ "code": "widening-switch", "seq": end + 1, "message": message }],
            "unknown": [{ "type": "theirs/thing", "seq": end, "events": 1 }],
        }),
        json!({ "type": "result", "sessions": 3, "violations": 1 }),
    ];
    assert_eq!(forge.audit(&["--json"]).ended(1).json(), want);
}

// D-71
#[test]
fn help_says_what_is_out_of_scope() {
    let help = Forge::family().audit(&["--help"]).ended(0).stdout;
    for said in ["rewrites all of them consistently", "out of scope", r#"{"type": "result""#, "Exit status"] {
        assert!(help.contains(said), "{help}");
    }
}

// D-71
#[test]
fn an_audit_goes_down_from_where_it_begins() {
    let forge = Forge::family();
    let end = forge.len("TOP");
    forge.events("TOP", |events| events.push(mode("read-only", "delegation")));
    forge.check_below(&[forge.id("TOP")], &[("TOP", "delegation-event-in-top-level", Some(end))]);
    // A session is held against its parent; what else the parent did is not asked.
    forge.check_below(&[forge.id("A")], &[]);
    forge.header("A", |header| header["delegationDepth"] = json!(2));
    forge.check_below(&[forge.id("A")], &[("A", "depth-wrong", None), ("B", "depth-wrong", None)]);
    forge.check_below(&[forge.id("B")], &[("B", "depth-wrong", None)]);

    let nobody = SessionId::mint().to_string();
    assert!(forge.audit(&[&nobody]).refused(2).contains(&format!("no session {nobody}")));
    assert!(forge.audit(&["what"]).refused(2).contains("is not a session id"));
}

// D-71
#[test]
fn a_log_that_belongs_nowhere_is_told() {
    let mut forge = Forge::family();
    let stray = SessionId::mint().to_string();
    forge.add(&stray, "no header\n");
    forge.check(&[("C", "log-unreadable", None)]);
    let below = forge.audit(&[forge.id("TOP")]).ended(0);
    assert!(below.complaint(&stray).contains("belongs is not known"), "{}", below.stderr);
    forge.check_below(&[&stray], &[("C", "log-unreadable", None)]);
}

// D-71
#[test]
fn a_line_that_is_being_written_is_no_violation() {
    let forge = Forge::family();
    for name in ["TOP", "A", "B"] {
        forge.write(name, forge.log(name) + r#"{"seq":99,"time":17"#);
    }
    forge.check(&[]);
}

// D-71
#[test]
fn there_is_an_end_to_findings() {
    let forge = Forge::family();
    forge.events("B", |events| {
        for _ in 0..5_000 {
            events.push(mode("danger-full-access", "user"));
            events.push(mode("read-only", "user"));
        }
    });
    let lines = forge.audit(&["--json"]).ended(1).json();
    assert_eq!((lines[2]["findings"].as_array().unwrap().len(), &lines[2]["more"]), (100, &json!(4_900)));
    assert_eq!(lines[3]["violations"], 5_000);
    let told = forge.audit(&[]).ended(1).stdout;
    assert!(told.contains("5,000 violations") && told.contains("✗ and 4,900 more"), "{told}");
}

#[tokio::test]
async fn nothing_is_kept_here_yet() {
    in_world(async |world| {
        let told = world.tether(&["policy", "audit"]).printed();
        assert!(told.ends_with("audited 0 sessions: no violation\n"), "{told}");
        assert!(!world.dir.path().join("home").exists(), "reading makes no directory");
    })
    .await;
}

// D-06, D-71
#[tokio::test]
async fn sessions_that_are_being_written_are_audited() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        turn(&top, 1, TurnReason::Completed);
        top.append(TurnStart { turn: 2 }).unwrap();
        let child = world.child(&top, "child", Seed::ClosedTurns).await;
        top.append(ModeSet::by_user(Mode::DangerFullAccess)).unwrap();
        top.flush().await.unwrap();
        child.flush().await.unwrap();
        let lines = world.tether(&["policy", "audit", "--json"]).json();
        assert_eq!(lines[2], json!({ "type": "result", "sessions": 2, "violations": 0 }));
    })
    .await;
}

// D-70
#[tokio::test]
async fn a_whole_tree_is_explained() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
        let child = world.child(&top, "child", Seed::Fresh).await;
        child.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let grandchild = world.child(&child, "grandchild", Seed::Fresh).await;
        let sibling = world.child(&top, "sibling", Seed::Fresh).await;
        let names = [(&top, "TOP"), (&child, "CHILD"), (&grandchild, "GRANDCHILD"), (&sibling, "SIBLING")];
        for (session, _) in names.iter().rev() {
            session.release().await.unwrap();
        }
        let id = top.id().to_string();
        let told = world.tether(&["policy", "explain", "--tree", &id]).printed();
        insta::assert_snapshot!(named(&told, &names), @r"
        session   TOP
        sandbox   workspace-write
          decided by TOP seq 0 (user)
        approval  deployment default
          no event decides

          session   CHILD
          parent    TOP
          sandbox   read-only
            decided by CHILD seq 3 (user)
          approval  never
            decided by CHILD seq 1 (delegation)
            the delegation by TOP pinned it, whatever applied there

            session   GRANDCHILD
            parent    CHILD
            sandbox   read-only
              decided by GRANDCHILD seq 0 (delegation)
              copied from CHILD seq 3 (user)
            approval  never
              decided by GRANDCHILD seq 1 (delegation)
              the delegation by CHILD pinned it, whatever applied there

          session   SIBLING
          parent    TOP
          sandbox   workspace-write
            decided by SIBLING seq 0 (delegation)
            copied from TOP seq 0 (user)
          approval  never
            decided by SIBLING seq 1 (delegation)
            the delegation by TOP pinned it, whatever applied there
        ");

        let lines = world.tether(&["policy", "explain", "--tree", &id, "--json"]).json();
        for (line, (session, _)) in lines.iter().zip(&names) {
            let mut alone = world.tether(&["policy", "explain", &session.id().to_string(), "--json"]).json().remove(0);
            alone["depth"] = line["depth"].clone();
            if let Some(lineage) = session.header().lineage() {
                alone["parent"] = json!(lineage.parent());
            }
            assert_eq!(line, &alone);
        }
        let order: Vec<_> = lines.iter().map(|line| line["depth"].clone()).collect();
        assert_eq!(order, [0, 1, 2, 1].map(|depth| json!(depth)));

        // What cannot be read has a line of its own.
        world.write(grandchild.id(), world.log(grandchild.id()) + "rubbish\n");
        let lines = world.tether(&["policy", "explain", "--tree", &id, "--json"]).json();
        assert!(lines[2]["error"].as_str().unwrap().contains("is damaged"), "{lines:?}");
        let told = world.tether(&["policy", "explain", "--tree", &id]).printed();
        assert!(told.contains("    ✗ ") && told.contains("is damaged"), "{told}");
        let nobody = SessionId::mint().to_string();
        assert!(world.tether(&["policy", "explain", "--tree", &nobody]).refused(2).contains("no session"));
    })
    .await;
}
