//! A cancelled turn ends, wherever it is held, and keeps what it was asked.

use agent::{AgentRef, BeforeStep, Inbox, OnRequestError, OnTurnStop};
use futures_util::stream;
use llm::{LlmAdapter, LlmError, LlmErrorKind, Reply, Request};
use session::{InboxClaimed, TurnReason};

use crate::support::{App, Held, conversation, inbox, within};

fn aborted() -> TurnReason {
    TurnReason::Aborted { cause: Some("user".into()) }
}

/// Cancels a turn when a layer holds it.
async fn check_held(agent: &AgentRef, held: &Held) {
    let receipt = agent.followup("go").unwrap();
    held.arrived.notified().await;
    assert!(agent.cancel("user", Inbox::Keep));
    assert_eq!(receipt.outcome().await.reason, aborted());
    assert!(conversation(agent.session()).iter().any(|said| said == "go"));
    agent.when_idle().await;
}

// D-25
#[tokio::test]
async fn a_turn_that_is_held_before_its_step_can_be_cancelled() {
    within(async {
        let (app, held) = (App::new().await, Held::default());
        let _layer = app.scope.realm().around::<BeforeStep>(held.clone());
        check_held(app.agent().await.handle(), &held).await;
        app.close().await;
    })
    .await;
}

// D-25
#[tokio::test]
async fn a_turn_that_is_held_at_its_end_can_be_cancelled() {
    within(async {
        let (app, held) = (App::new().await, Held::default());
        let _layer = app.scope.realm().around::<OnTurnStop>(held.clone());
        check_held(app.agent().await.handle(), &held).await;
        app.close().await;
    })
    .await;
}

/// Fails at once.
struct Broken;

impl LlmAdapter for Broken {
    fn reply(&self, _: Request) -> Reply {
        Box::pin(stream::iter([Err(LlmError::new(LlmErrorKind::Protocol, "no reply"))]))
    }
}

// D-25
#[tokio::test]
async fn a_turn_that_is_held_after_a_failed_request_can_be_cancelled() {
    within(async {
        let (app, held) = (App::new().await, Held::default());
        let _layer = app.scope.realm().around::<OnRequestError>(held.clone());
        check_held(app.agent_with(Broken).await.handle(), &held).await;
        app.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_before_its_first_step_keeps_its_prompt() {
    within(async {
        let app = App::new().await;
        let agent = app.agent().await;
        let canceller = agent.handle().clone();
        let _claimed = agent.session().observe(0, move |event| {
            if event.get::<InboxClaimed>().is_some() {
                canceller.cancel("user", Inbox::Keep);
            }
        });
        let outcome = agent.followup("remember me").unwrap().outcome().await;
        assert_eq!(outcome.reason, aborted());
        assert_eq!(conversation(agent.session()), ["remember me"]);
        assert!(inbox(agent.session()).is_empty());
        app.close().await;
    })
    .await;
}
