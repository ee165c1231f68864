use sandbox::Mode;
use sandbox_policy::ModeSet;
use serde_json::{Value, json};
use session::{Seed, Session, SessionId, TurnEnd, TurnReason, TurnStart};

use super::world::{World, answer, call, denied, in_world, named, turn};

struct Family {
    top: Session,
    child: Session,
    grandchild: Session,
    sibling: Session,
}

/// A parent under an override with two children, of which the first has one of its own.
async fn family(world: &World) -> Family {
    let top = world.top().await;
    top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
    turn(&top, 1, TurnReason::Completed);
    let child = world.child(&top, "explore", Seed::Fresh).await;
    child.append(TurnStart { turn: 1 }).unwrap();
    for n in 0..5 {
        call(&child, &format!("c{n}"), "write", "{}");
        denied(&child, &format!("c{n}"), &format!("/out/{n}\x1b"));
    }
    answer(&child, "could not", 20);
    let grandchild = world.child(&child, "dig", Seed::Fresh).await;
    turn(&grandchild, 1, TurnReason::Aborted { cause: Some("by\nhand".into()) });
    child.append(TurnEnd { turn: 1, reason: TurnReason::MaxTokens }).unwrap();
    let sibling = world.child(&top, "fork", Seed::ClosedTurns).await;
    Family { top, child, grandchild, sibling }
}

impl Family {
    async fn release(&self) {
        for session in [&self.grandchild, &self.sibling, &self.child, &self.top] {
            session.release().await.unwrap();
        }
    }

    fn named(&self, text: &str) -> String {
        let Self { top, child, grandchild, sibling } = self;
        named(text, &[(top, "TOP"), (child, "CHILD"), (grandchild, "GRANDCHILD"), (sibling, "SIBLING")])
    }
}

#[tokio::test]
async fn a_tree_tells_what_each_was_allowed_and_what_came_of_it() {
    in_world(async |world| {
        let family = family(world).await;
        family.release().await;
        let id = family.top.id().to_string();
        let text = world.tether(&["sessions", "tree", &id]).printed();
        insta::assert_snapshot!(family.named(&text), @r"
        session  TOP  read-only (user) · approval deployment default · completed · 1,001 tokens
        ├─ explore  CHILD  read-only (delegation) · approval never (delegation) · max-tokens · 21 tokens · 5 denials
        │      denied: write /out/0\u{1b} (mode read-only)
        │      denied: write /out/1\u{1b} (mode read-only)
        │      denied: write /out/2\u{1b} (mode read-only)
        │      and 2 more
        │  └─ dig  GRANDCHILD  read-only (delegation) · approval never (delegation) · aborted: by\nhand · 1,001 tokens
        └─ fork  SIBLING  read-only (delegation) · approval never (delegation) · no turn yet · 0 tokens
        ");

        let lines = world.tether(&["sessions", "tree", &id, "--json"]).json();
        let order: Vec<_> = lines.iter().map(|line| (line["session"].clone(), line["depth"].clone())).collect();
        let Family { top, child, grandchild, sibling } = &family;
        let pre_order = [(top, 0), (child, 1), (grandchild, 2), (sibling, 1)];
        assert_eq!(order, pre_order.map(|(session, depth)| (json!(session.id()), json!(depth))));
        let mut explore = lines[1].clone();
        let first = explore["firstDenials"].take();
        assert_eq!(first.as_array().map(Vec::len), Some(3));
        assert_eq!(first[2], json!({ "operation": "write", "target": "/out/2\x1b", "mode": "read-only" }));
        let want = json!({
            "session": child.id(), "depth": 1, "parent": top.id(), "label": "explore", "provider": "spawn",
            "sandbox": { "mode": "read-only", "source": "delegation" },
            "approval": { "policy": "never", "source": "delegation" },
            "outcome": "max-tokens", "usage": { "inputTokens": 20, "outputTokens": 1 }, "denials": 5,
            "firstDenials": null,
        });
        assert_eq!(explore, want);
        assert_eq!(lines[3]["outcome"], Value::Null, "the copied turn is not its own");
        assert_eq!(lines[3]["usage"]["inputTokens"], 0);

        let below = world.tether(&["sessions", "tree", &child.id().to_string(), "--json"]).json();
        assert_eq!(below.len(), 2);
        assert_eq!((&below[1]["depth"], &below[1]["outcome"]), (&json!(1), &json!("aborted")));
    })
    .await;
}

#[tokio::test]
async fn an_open_turn_runs_or_was_interrupted() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(TurnStart { turn: 1 }).unwrap();
        let child = world.child(&top, "waits", Seed::Fresh).await;
        turn(&child, 1, TurnReason::Completed);
        top.flush().await.unwrap();
        child.flush().await.unwrap();
        let id = top.id().to_string();
        let names = [(&top, "TOP"), (&child, "CHILD")];
        let held = world.tether(&["sessions", "tree", &id]).printed();
        insta::assert_snapshot!(named(&held, &names), @r"
        session  TOP  deployment default · approval deployment default · running · 0 tokens
        └─ waits  CHILD  deployment default · approval never (delegation) · completed · 1,001 tokens · open in process PID
        ");
        let lines = world.tether(&["sessions", "tree", &id, "--json"]).json();
        let outcomes: Vec<_> = lines.iter().map(|line| (&line["outcome"], &line["holder"])).collect();
        let pid = json!(std::process::id());
        assert_eq!(outcomes, [(&json!("running"), &pid), (&json!("completed"), &pid)]);

        top.release().await.unwrap();
        child.release().await.unwrap();
        let left = world.tether(&["sessions", "tree", &id, "--json"]).json();
        assert_eq!((&left[0]["outcome"], &left[0]["openTurn"]), (&json!("interrupted"), &json!(1)));
        assert_eq!(left[0].get("holder"), None);
        assert_eq!(left[0]["sandbox"], json!({ "mode": null, "source": "deployment default" }));
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_read_is_a_row() {
    in_world(async |world| {
        let family = family(world).await;
        family.release().await;
        let (child, sibling) = (family.child.id(), family.sibling.id());
        // One is damaged far behind its beginning, one in its first events, one in its header.
        let log = world.log(child);
        world.write(child, log + "what is this\n");
        let (header, _) =
            world.log(sibling).split_once('\n').map(|(header, rest)| (header.to_owned(), rest.len())).unwrap();
        let seedless = header.replace("\"seedLength\":5,", "");
        world.write(sibling, format!("{seedless}\nnor this\n"));
        let stray = SessionId::mint();
        world.write(stray, "no header\n");

        let told = world.tether(&["sessions", "tree", &family.top.id().to_string(), "--json"]);
        assert_eq!(told.status, 0);
        let lines: Vec<Value> = told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 4, "{}", told.stdout);
        let error = |line: usize| lines[line]["error"].as_str().unwrap_or_default().to_owned();
        assert!(error(1).contains(&format!("{child}.jsonl:")), "{}", told.stdout);
        assert_eq!(lines[2]["session"], json!(family.grandchild.id()), "what is below it is told all the same");
        assert!(error(3).contains(&format!("{sibling}.jsonl:2 is damaged")), "{}", told.stdout);
        assert!(told.stderr.contains(&format!("{stray}.jsonl:1 is damaged")), "{}", told.stderr);
        let text = world.tether(&["sessions", "tree", &family.top.id().to_string()]).stdout;
        assert!(text.contains(&format!("├─ {child}  unreadable: ")), "{text}");
    })
    .await;
}

#[tokio::test]
async fn a_circle_ends() {
    in_world(async |world| {
        let [first, second] = [SessionId::mint(), SessionId::mint()];
        let header = |id: SessionId, parent: SessionId| {
            json!({
                "format": 1, "id": id, "createdAt": 1, "cwd": "/x", "parentSession": parent, "parentSeq": 1,
                "origin": "subagent", "delegationDepth": 1,
            })
        };
        let stamp = r#"{"seq":0,"time":1,"type":"sandbox/mode","data":{"mode":"read-only","source":"delegation"}}"#;
        world.write(first, format!("{}\n{stamp}\n", header(first, second)));
        world.write(second, format!("{}\n{stamp}\n", header(second, first)));
        let lines = world.tether(&["sessions", "tree", &first.to_string(), "--json"]).json();
        let told: Vec<_> = lines.iter().map(|line| line["session"].clone()).collect();
        assert_eq!(told, [json!(first), json!(second), json!(first)]);
        assert!(lines[2]["error"].as_str().unwrap().contains("circle"), "{lines:?}");

        let explained = world.tether(&["policy", "explain", &first.to_string(), "--json"]).json();
        let problems = explained[0]["sandbox"]["problems"].to_string();
        assert!(problems.contains("circle"), "{explained:?}");
    })
    .await;
}
