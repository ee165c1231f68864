use serde_json::json;
use session::{Seed, SessionId, SessionTitle, TurnReason};

use super::world::{in_world, named, prompt, turn};

#[tokio::test]
async fn a_home_without_sessions_is_an_empty_list() {
    in_world(async |world| {
        let listed = world.tether(&["sessions", "list"]);
        assert_eq!((listed.status, &*listed.stdout), (0, ""));
        assert_eq!(listed.stderr, "tether: no sessions are kept here yet\n");
        assert_eq!(world.tether(&["sessions", "list", "--json"]).printed(), "");
        assert!(!world.dir.path().join("home").exists(), "reading makes no directory");
    })
    .await;
}

#[tokio::test]
async fn sessions_are_listed_newest_first() {
    in_world(async |world| {
        let top = world.top().await;
        prompt(&top, "find the\nbug");
        let child = world.child(&top, "look around", Seed::Fresh).await;
        let held = world.top().await;
        held.append(SessionTitle { title: "a \x1b[2Jtitle".into(), source: "user".into() }).unwrap();
        held.flush().await.unwrap();
        top.release().await.unwrap();
        child.release().await.unwrap();
        let broken = SessionId::mint();
        world.write(broken, "{\"format\":9}\n");

        let listed = world.tether(&["sessions", "list", "--json"]).json();
        let ids: Vec<&str> = listed.iter().map(|line| line["session"].as_str().unwrap()).collect();
        let newest_first = [broken, held.id(), child.id(), top.id()].map(|id| id.to_string());
        assert_eq!(ids, newest_first);
        let path = world.path(child.id());
        let bytes = std::fs::metadata(&path).unwrap().len();
        let child_line = json!({
            "session": child.id(), "createdAt": 1_790_000_000_000_u64, "cwd": "/home/me/project", "parent": top.id(),
            "depth": 1, "label": "look around", "bytes": bytes, "modified": listed[2]["modified"],
        });
        assert_eq!(listed[2], child_line);
        assert_eq!(listed[1]["holder"], std::process::id());
        assert_eq!(listed[1]["label"], "a \x1b[2Jtitle");
        assert_eq!(listed[3].get("parent").or(listed[3].get("label")), None);
        assert_eq!(listed[0].as_object().unwrap().len(), 2);
        assert!(
            listed[0]["error"].as_str().unwrap().contains(&format!("{broken}.jsonl:1 is damaged")),
            "{:?}",
            listed[0]
        );

        let text = world.tether(&["sessions", "list"]).printed();
        let text = named(&text, &[(&top, "TOP"), (&child, "CHILD"), (&held, "HELD")]);
        let (first, others) = text.split_once('\n').unwrap();
        assert!(first.starts_with(&format!("{broken}  unreadable: ")), "{first}");
        insta::assert_snapshot!(others, @r"
        HELD  2026-09-21 14:13:20      214 B  a \u{1b}[2Jtitle  /home/me/project  open in process PID
        CHILD  2026-09-21 14:13:20      461 B  look around  /home/me/project  depth 1, child of TOP
        TOP  2026-09-21 14:13:20      255 B  find the\nbug  /home/me/project
        ");
    })
    .await;
}

#[tokio::test]
async fn a_listing_costs_the_beginning_of_a_log() {
    in_world(async |world| {
        let top = world.top().await;
        turn(&top, 1, TurnReason::Completed);
        prompt(&top, &"a long line\n".repeat(4_000));
        top.release().await.unwrap();
        let mut log = world.log(top.id());
        log.push_str("what no reader could make sense of\n");
        world.write(top.id(), &log);
        let listed = world.tether(&["sessions", "list", "--json"]).json();
        assert_eq!(listed[0]["bytes"], log.len());
        assert!(world.tether(&["sessions", "show", &top.id().to_string()]).refused(1).contains("is damaged"));
    })
    .await;
}
