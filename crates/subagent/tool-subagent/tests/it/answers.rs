//! What a model is answered.

use std::sync::Arc;

use agent::{AgentRef, AgentSetup, Inbox};
use async_trait::async_trait;
use context::BoxError;
use sandbox::Mode;
use sandbox_policy::ModeSet;
use subagent::{ChildStarted, DelegationReport, StopReason};

use crate::stage::{Stage, is_child, named, within};

// D-23, D-24
#[tokio::test]
async fn every_end_of_a_child_reads_like_this() {
    within(async {
        let stage = Stage::new().await;
        let mut all = String::new();
        for script in [
            "say I am done",
            "list",
            "say half of it & max-tokens",
            "max-tokens",
            "say I would rather not & refuse",
            "refuse",
            "fail unauthorized",
            "say half of it & fail truncated",
        ] {
            let answer = stage.answer(&format!("spawn x {{ {script} }}")).await;
            all += &format!("{script}\n  {}\n", answer.replace('\n', "\n  "));
            assert!(stage.is_alone(), "{script}");
        }
        insta::assert_snapshot!(all, @r"
        say I am done
          [ok] I am done
        list
          [ok] list: ok: [the directory is empty]
        say half of it & max-tokens
          [failed] the child's reply was cut by its token limit. Its last message:
          half of it
        max-tokens
          [failed] the child's reply was cut by its token limit
        say I would rather not & refuse
          [failed] the child's task was refused: the model declined to answer. Its last message:
          I would rather not
        refuse
          [failed] the child's task was refused: the model declined to answer
        fail unauthorized
          [failed] the child failed: the script says: fail unauthorized
        say half of it & fail truncated
          [failed] the child failed: the script says: fail truncated. Its last message:
          half of it
        ");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-23, D-25
#[tokio::test]
async fn a_child_of_a_cancelled_turn_is_cancelled() {
    within(async {
        let stage = Stage::new().await;
        let agent = stage.agent.handle().clone();
        let _cancels = stage.app.realm().on(move |_: &ChildStarted| {
            assert!(agent.cancel("the user said so", Inbox::Keep));
        });
        let answer = stage.answer("spawn x { hang }").await;
        insta::assert_snapshot!(answer, @"[cancelled] the child was cancelled");
        assert!(stage.is_alone());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-32
#[tokio::test]
async fn what_was_denied_is_told_below_the_message() {
    within(async {
        let stage = Stage::new().await;
        stage.agent.session().append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let answer = stage.answer("spawn x { write a.txt x; edit ../b.txt x y; say I did what I could }").await;
        insta::assert_snapshot!(answer, @r"
        [ok] I did what I could

        Denied to the child, by the scope that you handed down:
        - write /ws/a.txt (mode read-only)
        - edit /b.txt (mode read-only)
        ");
        let answer = stage.answer("spawn x { write a.txt x; fail protocol }").await;
        insta::assert_snapshot!(answer, @r"
        [failed] the child failed: the script says: fail protocol

        Denied to the child, by the scope that you handed down:
        - write /ws/a.txt (mode read-only)
        ");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-32
#[tokio::test]
async fn the_meta_tells_the_rest() {
    within(async {
        let stage = Stage::new().await;
        stage.answer("spawn x { write ../a.txt x; say done }").await;
        let meta = stage.results().pop().unwrap().meta.clone().unwrap();
        let report: DelegationReport = serde_json::from_str(meta.get()).unwrap();
        assert_eq!((&*report.provider, report.stop_reason), ("spawn", StopReason::Completed));
        assert_eq!(report.denials.list[0].session, report.child.unwrap());
        assert!(report.usage.total() > 0);
        let id = report.child.unwrap().to_string();
        let top = stage.agent.session().header().cwd().strip_suffix("/ws").unwrap().to_owned();
        let said = meta.get().replace(&id, "ID").replace(&top, "");
        insta::assert_snapshot!(said, @r#"{"provider":"spawn","child":"ID","stopReason":"completed","usage":{"inputTokens":27,"outputTokens":3},"denials":{"list":[{"session":"ID","operation":"write","target":"/a.txt","mode":"workspace-write"}],"total":1}}"#);
        stage.app.close().await.unwrap();
    })
    .await;
}

/// Fails children, before they are seen or when they go.
enum Bad {
    SetUp,
    WindUp,
}

#[async_trait]
impl AgentSetup for Bad {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        match self {
            _ if !is_child(agent.session()) => Ok(()),
            Self::SetUp => Err("no chair is free".into()),
            Self::WindUp => Ok(agent.ctx().on_close("coat", async || Err("it is still here".into()))?),
        }
    }
}

// D-11, D-22
#[tokio::test]
async fn what_went_wrong_around_a_child_is_told() {
    within(async {
        let setup = |bad: Bad| move |app: &context::Scope| named::<dyn AgentSetup>(app, "bad", Arc::new(bad));
        let stage = Stage::with(|plugins| plugins, setup(Bad::SetUp)).await.unwrap();
        let answer = stage.answer("spawn x { say done }").await;
        insta::assert_snapshot!(answer, @"[failed] the child was not started: the child could not be created: the agent could not be set up: no chair is free");
        assert!(stage.results()[0].meta.is_none() && stage.is_alone());
        stage.app.close().await.unwrap();

        let stage = Stage::with(|plugins| plugins, setup(Bad::WindUp)).await.unwrap();
        let answer = stage.answer("spawn x { say done }").await;
        insta::assert_snapshot!(answer, @r"
        [ok] done

        The child was not wound up cleanly: one thing failed to close: agent/coat: it is still here
        ");
        assert!(stage.is_alone());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-26
#[tokio::test]
async fn a_child_that_would_be_too_deep_is_not_started() {
    within(async {
        let stage = Stage::new().await;
        let deepest = "spawn 4 { say never }";
        let answer = stage.answer(&format!("spawn 1 {{ spawn 2 {{ spawn 3 {{ {deepest} }} }} }}")).await;
        insta::assert_snapshot!(answer, @"[ok] spawn 2: ok: spawn 3: ok: spawn 4: error: the child was not started: a child at depth 4 would pass the limit of 3");
        stage.app.close().await.unwrap();
    })
    .await;
}
