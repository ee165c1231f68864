//! A bug somewhere ends the turn, not the agent: the history stays valid and the next turn works.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::*;
use llm::LlmErrorKind;
use session::{Session, TurnEnd, TurnReason};
use system_prompt::{RuntimeFact, Section};

use crate::chains::Does;
use crate::model::*;
use crate::support::*;

/// Panics once.
#[derive(Clone, Default)]
struct Bug(Arc<AtomicUsize>);

impl Bug {
    fn bite(&self) {
        assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "a bug");
    }
}

struct BuggyFact(Bug);

impl RuntimeFact for BuggyFact {
    fn order(&self) -> i32 {
        0
    }

    fn state(&self, _: &Session) -> Option<String> {
        self.0.bite();
        None
    }
}

struct BuggySection(Bug);

impl Section for BuggySection {
    fn order(&self) -> i32 {
        0
    }

    fn text(&self) -> std::borrow::Cow<'_, str> {
        self.0.bite();
        "mended".into()
    }
}

/// Has one turn meet a bug and the next one none.
async fn check(put: impl FnOnce(&Stage, Bug), history: &[&str]) {
    let (stage, agent) = Stage::with_agent().await;
    stage.tools(&["read"]);
    put(&stage, Bug::default());
    let outcome = turn(&agent, "go").await;
    assert_eq!(error_of(&outcome), "the turn panicked; this is a bug");
    assert_eq!(agent.session().latest::<TurnEnd>().unwrap().reason, outcome.reason);
    assert_eq!(messages(agent.session()), history);
    assert_eq!(turn(&agent, "and now?").await.reason, TurnReason::Completed);
    assert!(messages(agent.session()).ends_with(&["User: and now?".into(), "Assistant: done".into()]));
    // The log is one that can be continued, too.
    let agent = stage.resumed(agent).await;
    assert_eq!(turn(&agent, "after a restart").await.turn, 3);
    stage.close().await;
}

#[tokio::test]
async fn in_a_layer_before_the_step() {
    let put = |stage: &Stage, bug: Bug| {
        stage.around::<BeforeStep>(move |input| {
            bug.bite();
            Does::Pass(input)
        });
    };
    check(put, &["User: go"]).await;
}

#[tokio::test]
async fn in_a_layer_around_the_request() {
    let put = |stage: &Stage, bug: Bug| {
        stage.around::<ModelRequest>(move |input| {
            bug.bite();
            Does::Pass(input)
        });
    };
    check(put, &["User: go"]).await;
}

#[tokio::test]
async fn in_a_layer_that_is_told_of_an_error() {
    let put = |stage: &Stage, bug: Bug| {
        stage.model.reply_with([vec![fails(LlmErrorKind::ProviderFailed, "503")]]);
        stage.around::<OnRequestError>(move |failed| {
            bug.bite();
            Does::Pass(failed)
        });
    };
    check(put, &["User: go"]).await;
}

#[tokio::test]
async fn in_a_layer_that_is_asked_whether_to_stop() {
    let put = |stage: &Stage, bug: Bug| {
        stage.model.reply_with([calls(&["read"])]);
        stage.around::<OnTurnStop>(move |stopping| {
            bug.bite();
            Does::Pass(stopping)
        });
    };
    check(put, &["User: go", "Assistant: [read]", "Tool: read: read ran", "Assistant: done"]).await;
}

#[tokio::test]
async fn in_an_adapter_when_it_is_called() {
    check(|stage, _| stage.model.panic_at_call(), &["User: go"]).await;
}

#[tokio::test]
async fn in_an_adapters_stream() {
    let put = |stage: &Stage, _: Bug| {
        stage.model.reply_with([calls(&["read"]), vec![text("half"), call("read"), Say::Panic]]);
    };
    check(put, &["User: go", "Assistant: [read]", "Tool: read: read ran"]).await;
}

#[tokio::test]
async fn in_a_fact() {
    let put = |stage: &Stage, bug: Bug| {
        stage.app.register::<dyn RuntimeFact>("buggy", Arc::new(BuggyFact(bug))).unwrap();
    };
    check(put, &["User: go"]).await;
}

#[tokio::test]
async fn in_a_section_of_the_system_prompt() {
    let put = |stage: &Stage, bug: Bug| {
        stage.app.register::<dyn Section>("buggy", Arc::new(BuggySection(bug))).unwrap();
    };
    check(put, &["User: go"]).await;
}

/// A tool's own bug is an answer, and the turn goes on.
#[tokio::test]
async fn in_a_tool_it_is_only_a_result() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tool("buggy", async |_| panic!("a bug"));
    stage.model.reply_with([calls(&["buggy"])]);
    assert_eq!(turn(&agent, "go").await.reason, TurnReason::Completed);
    let told = "Tool: buggy! `buggy` failed: it panicked; this is a bug in the tool";
    assert_eq!(messages(agent.session())[2], told);
    stage.close().await;
}
