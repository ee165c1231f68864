use policy_audit::{Branch, Code, Scope, audit, explain_tree};
use sandbox::Mode;
use sandbox_policy::ModeSet;
use serde_json::json;
use session::{Seed, SessionId};

use super::world::{Texts, delegate, in_house, turn};

// D-71
#[tokio::test]
async fn a_parent_is_read_once_for_all_of_its_children() {
    in_house(async |sessions| {
        let parent = sessions.create("/home/me");
        parent.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        turn(&parent, 1);
        let mut logs = Texts::new(sessions);
        let mut children = Vec::new();
        for n in 0..10_000 {
            let child = delegate(&parent, if n % 2 == 0 { Seed::Fresh } else { Seed::ClosedTurns });
            if n == 5_000 {
                child.append(ModeSet::by_user(Mode::DangerFullAccess)).unwrap();
            }
            logs.keep(&child);
            children.push(child.id());
        }
        logs.keep(&parent);
        for scope in [Scope::All, Scope::Below(parent.id())] {
            let before = logs.reads(parent.id());
            let report = audit(&logs, scope).await.unwrap();
            assert_eq!((report.sessions.len(), report.violations()), (10_001, 1));
            assert_eq!(report.sessions[5_001].findings[0].code, Code::WideningSwitch);
            let order: Vec<SessionId> = report.sessions[1..].iter().map(|audited| audited.session).collect();
            assert_eq!(order, children, "older before younger");
            assert_eq!(logs.reads(parent.id()) - before, 1);
        }
        assert!(children.iter().all(|child| logs.reads(*child) == 2), "once an audit");

        let before = logs.reads(parent.id());
        let branches = branches(&logs, parent.id()).await;
        assert_eq!(branches.len(), 10_001);
        assert_eq!(logs.reads(parent.id()) - before, 1);
    })
    .await;
}

async fn branches(logs: &Texts, root: SessionId) -> Vec<Branch> {
    let mut walk = explain_tree(logs, root).await.unwrap();
    let mut branches = Vec::new();
    while let Some(branch) = walk.next().await {
        branches.push(branch);
    }
    branches
}

/// Logs by hand: the program itself stops far above this.
fn chain(logs: &mut Texts, length: u64, root: Option<SessionId>) -> Vec<SessionId> {
    let id = |n: u64| format!("01997f3c-6d1e-7c53-a5fa-{n:012x}").parse::<SessionId>().unwrap();
    let stamps = concat!(
        r#"{"seq":0,"time":1,"type":"sandbox/mode","data":{"mode":"read-only","source":"delegation"}}"#,
        "\n",
        r#"{"seq":1,"time":1,"type":"approval/policy","data":{"policy":"never","source":"delegation"}}"#,
        "\n",
        r#"{"seq":2,"time":1,"type":"subagent/descriptor","data":{"version":1,"mode":"one-shot","provider":"spawn"}}"#,
        "\n",
    );
    let mut parent = root;
    for n in 1..=length {
        let parent_id = parent.unwrap_or_else(|| id(length));
        let header = json!({
            "format": 1, "id": id(n), "createdAt": 1, "cwd": "/home/me", "parentSession": parent_id, "parentSeq": 1,
            "origin": "subagent", "delegationDepth": n,
        });
        logs.insert(id(n), format!("{header}\n{stamps}"));
        parent = Some(id(n));
    }
    (1..=length).map(id).collect()
}

// D-70, D-71
#[tokio::test]
async fn a_lineage_is_followed_however_deep_it_is() {
    in_house(async |sessions| {
        let top = sessions.create("/home/me");
        top.append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let mut logs = Texts::new(sessions);
        let ids = chain(&mut logs, 20_000, Some(top.id()));
        logs.keep(&top);
        let report = audit(&logs, Scope::All).await.unwrap();
        assert_eq!((report.sessions.len(), report.violations()), (20_001, 0));
        assert_eq!(report.sessions.last().unwrap().depth, 20_000);
        assert!(ids.iter().all(|id| logs.reads(*id) <= 2), "as a child and as a parent");

        let deepest = policy_audit::explain(&logs, *ids.last().unwrap()).await.unwrap();
        assert_eq!(deepest.sandbox.links.len(), 20_001, "up to the root");
        assert_eq!(deepest.sandbox.problems, Vec::<String>::new());
        let branches = branches(&logs, top.id()).await;
        assert_eq!(branches.len(), 20_001);
        let last = branches.last().unwrap().found.as_ref().unwrap();
        assert!(last.sandbox.is_cut && last.sandbox.links.len() < 100);
    })
    .await;
}

// D-71
#[tokio::test]
async fn a_circle_ends_however_long_it_is() {
    in_house(async |sessions| {
        let mut logs = Texts::new(sessions);
        let ids = chain(&mut logs, 10_000, None);
        for scope in [Scope::All, Scope::Below(ids[5_000])] {
            let report = audit(&logs, scope).await.unwrap();
            assert_eq!(report.sessions.len(), 10_000);
            assert!(report.sessions.iter().all(|audited| audited.findings[0].code == Code::LineageCircle));
        }
        let explained = policy_audit::explain(&logs, ids[0]).await.unwrap();
        assert!(explained.sandbox.problems[0].contains("circle"), "{:?}", explained.sandbox.problems);
        assert_eq!(branches(&logs, ids[0]).await.len(), 10_000);
    })
    .await;
}
