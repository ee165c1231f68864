//! The places where behaviour is added to the loop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::*;
use async_trait::async_trait;
use context::{Around, Chain, Next};
use llm::{Chunk, Finish, LlmError, LlmErrorKind, Message, replied};
use session::{MessageId, Source, TurnReason, UserMessage};
use system_prompt::RuntimeFact;
use tokio::time::Instant;

use crate::model::*;
use crate::support::*;

/// A layer made of a function that answers itself, or says what goes on.
pub(crate) struct Layer<F>(pub(crate) F);

pub(crate) enum Does<C: Chain> {
    Pass(C::Input),
    Answer(C::Output),
}

#[async_trait]
impl<C, F> Around<C> for Layer<F>
where
    C: Chain,
    F: Fn(C::Input) -> Does<C> + Send + Sync + 'static,
{
    async fn around(&self, input: C::Input, next: Next<'_, C>) -> C::Output {
        let passed = match (self.0)(input) {
            Does::Pass(input) => input,
            Does::Answer(output) => return output,
        };
        next.run(passed).await
    }
}

impl Stage {
    /// Adds a layer in the app.
    pub(crate) fn around<C: Chain>(&self, layer: impl Fn(C::Input) -> Does<C> + Send + Sync + 'static) {
        self.app.own(self.app.realm().around::<C>(Layer(layer))).unwrap();
    }
}

#[tokio::test]
async fn a_layer_before_the_step_rewrites_what_enters() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tools(&["read"]);
    let steps = Trace::default();
    let noted = steps.clone();
    stage.around::<BeforeStep>(move |mut input| {
        let texts: Vec<String> = input.messages.iter().map(|message| message.message.text()).collect();
        noted.note(format!("{} {}.{} {texts:?}", input.agent.id(), input.turn, input.step));
        for message in &mut input.messages {
            message.message = Arc::new(Message::user(message.message.text().to_uppercase()));
        }
        if input.step == 2 {
            let message = Arc::new(Message::user("and mind the step"));
            input.messages.push(UserMessage { id: MessageId(u64::MAX), message, source: Source::Notice });
        }
        Does::Pass(input)
    });
    stage.model.reply_with([calls(&["read"])]);
    agent.inject("quiet").unwrap();
    turn(&agent, "loud").await;
    let id = agent.id();
    assert_eq!(steps.take(), [format!(r#"{id} 1.1 ["quiet", "loud"]"#), format!("{id} 1.2 []")]);
    let shown = messages(agent.session());
    assert_eq!(shown[..2], ["User: QUIET", "User: LOUD"]);
    assert_eq!(shown[4], "User: and mind the step");
    let log = agent.session().snapshot();
    let ids: Vec<u64> = log.events().iter().filter_map(|event| event.get::<UserMessage>()).map(|m| m.id.0).collect();
    let added = log.events().iter().rfind(|event| event.get::<UserMessage>().is_some()).unwrap().seq();
    assert_eq!(ids, [0, 1, added], "what came by the inbox keeps its id, what did not gets its own");
    stage.close().await;
}

#[tokio::test]
async fn a_prompt_that_is_rejected_never_enters_and_blocks_the_turn() {
    let (stage, agent) = Stage::with_agent().await;
    stage.around::<BeforeStep>(|input| {
        match input.messages.iter().any(|message| message.message.text().contains("secret")) {
            true => Does::Answer(Err(Rejected("it holds a secret".into()))),
            false => Does::Pass(input),
        }
    });
    let outcome = turn(&agent, "the secret is 7").await;
    assert_eq!(outcome.reason, TurnReason::Blocked { message: Some("it holds a secret".into()) });
    assert_eq!(outcome.output, None);
    assert!(stage.model.requests().is_empty());
    assert_eq!(tags(agent.session(), 2), ["turn/start", "turn/end"]);
    assert!(messages(agent.session()).is_empty());
    assert_eq!(turn(&agent, "hello").await.reason, TurnReason::Completed);
    stage.close().await;
}

#[tokio::test]
async fn a_later_step_may_be_rejected_and_the_history_stays_valid() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tools(&["read"]);
    stage.around::<BeforeStep>(|input| match input.step {
        2 => Does::Answer(Err(Rejected("enough".into()))),
        _ => Does::Pass(input),
    });
    stage.model.reply_with([calls(&["read"])]);
    assert_eq!(turn(&agent, "go").await.reason, TurnReason::Blocked { message: Some("enough".into()) });
    assert_eq!(messages(agent.session()), ["User: go", "Assistant: [read]", "Tool: read: read ran"]);
    stage.close().await;
}

#[tokio::test]
async fn a_layer_around_the_request_changes_it_or_answers_itself() {
    let (stage, agent) = Stage::with_agent().await;
    stage.around::<ModelRequest>(|mut input| {
        input.request.sampling.max_tokens = Some(5);
        let last = input.request.messages.last().unwrap().text();
        match last.as_str() {
            "cached" => Does::Answer(Ok(replied([Chunk::Text("from the cache".into()), Chunk::End(Finish::Stop)]))),
            "refused" => Does::Answer(Err(LlmError::new(LlmErrorKind::RateLimited, "over the budget"))),
            _ => Does::Pass(input),
        }
    });
    assert_eq!(turn(&agent, "cached").await.output.unwrap().text(), "from the cache");
    assert_eq!(error_of(&turn(&agent, "refused").await), "over the budget");
    assert!(stage.model.requests().is_empty());
    assert_eq!(turn(&agent, "hello").await.output.unwrap().text(), "done");
    let request = stage.model.requests().remove(0);
    assert_eq!(request.sampling.max_tokens, Some(5));
    let header = agent.session().latest::<session::RequestHeaderEvent>().unwrap();
    assert_eq!(header.header.sampling.max_tokens, None, "the log says what the loop asked for");
    stage.close().await;
}

/// Hangs before the request is made.
struct Stuck;

#[async_trait]
impl Around<ModelRequest> for Stuck {
    async fn around(&self, input: RequestInput, _: Next<'_, ModelRequest>) -> Result<llm::Reply, LlmError> {
        input.agent.cancel("stuck", Inbox::Keep);
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_request_that_a_layer_holds_up_can_be_cancelled() {
    let (stage, agent) = Stage::with_agent().await;
    let stuck = stage.app.realm().around::<ModelRequest>(Stuck);
    assert_eq!(turn(&agent, "go").await.reason, TurnReason::Aborted { cause: Some("stuck".into()) });
    drop(stuck);
    assert_eq!(turn(&agent, "go").await.reason, TurnReason::Completed);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_is_tried_again_when_a_layer_says_so() {
    let (stage, agent) = Stage::with_agent().await;
    let failures = Trace::default();
    let noted = failures.clone();
    stage.around::<OnRequestError>(move |failed| {
        noted.note(format!("{} {}: {}", failed.agent.id(), failed.attempt, failed.error));
        match failed.error.is_transient() && failed.attempt < 4 {
            true => Does::Answer(Recourse::Retry(Duration::from_secs(u64::from(failed.attempt)))),
            false => Does::Pass(failed),
        }
    });
    let down = || vec![fails(LlmErrorKind::ProviderFailed, "503")];
    stage.model.reply_with([down(), down(), says("at last")]);
    let began = Instant::now();
    let outcome = turn(&agent, "go").await;
    assert_eq!(outcome.output.unwrap().text(), "at last");
    assert_eq!(began.elapsed().as_secs(), 1 + 2);
    let id = agent.id();
    assert_eq!(failures.take(), [format!("{id} 1: 503"), format!("{id} 2: 503")]);
    let requests = stage.model.requests();
    assert!(requests.iter().all(|request| conversation(request) == ["User: go"]) && requests.len() == 3);
    assert_eq!(count(agent.session(), "assistant/message") + count(agent.session(), "step/start"), 2, "in one step");

    // To no end.
    stage.model.reply_with([down(), down(), down(), down()]);
    assert_eq!(error_of(&turn(&agent, "again").await), "503");
    assert_eq!((stage.model.requests().len(), failures.take().len()), (4, 4));

    // Each step counts its own attempts.
    stage.model.reply_with([down()]);
    turn(&agent, "once more").await;
    assert_eq!(failures.take(), [format!("{id} 1: 503")]);
    stage.close().await;
}

#[tokio::test]
async fn a_request_that_began_to_answer_is_not_tried_again() {
    let (stage, agent) = Stage::with_agent().await;
    stage.around::<OnRequestError>(|_| Does::Answer(Recourse::Retry(Duration::ZERO)));
    stage.model.reply_with([vec![text("half"), fails(LlmErrorKind::ProviderFailed, "502")]]);
    assert_eq!(error_of(&turn(&agent, "go").await), "502");
    assert_eq!(stage.model.requests().len(), 1);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_pause_before_another_try_can_be_cancelled() {
    let (stage, agent) = Stage::with_agent().await;
    stage.around::<OnRequestError>(|failed| {
        failed.agent.cancel("the user", Inbox::Keep);
        Does::Answer(Recourse::Retry(Duration::from_secs(50)))
    });
    stage.model.reply_with([vec![fails(LlmErrorKind::ProviderFailed, "503")]]);
    let began = Instant::now();
    assert_eq!(turn(&agent, "go").await.reason, TurnReason::Aborted { cause: Some("the user".into()) });
    assert_eq!((began.elapsed(), stage.model.requests().len()), (Duration::ZERO, 1));
    stage.close().await;
}

#[tokio::test]
async fn a_layer_keeps_a_turn_going_with_notices() {
    let (stage, agent) = Stage::with_agent().await;
    let fact = Fact::default();
    fact.set(Some("tests: unknown"));
    stage.app.register::<dyn RuntimeFact>("tests", Arc::new(fact.clone())).unwrap();
    let stopping = Arc::new(Mutex::new(Vec::new()));
    let seen = stopping.clone();
    stage.around::<OnTurnStop>(move |stopping| {
        seen.lock().unwrap().push(stopping.outcome.clone());
        // Told in the same step as the notices.
        fact.set(Some("tests: red"));
        match stopping.outcome.output.as_ref().unwrap().text().as_str() {
            "finished" => Does::Pass(stopping),
            _ => {
                let notices = ["the tests fail", "mend them"].map(|text| Arc::new(Message::user(text)));
                Does::Answer(StopVerdict::Continue(notices.into()))
            }
        }
    });
    stage.model.reply_with([says("I think so"), says("finished")]);
    let outcome = turn(&agent, "go").await;
    assert_eq!((outcome.turn, outcome.output.as_ref().unwrap().text().as_str()), (1, "finished"));
    let fact = |fact: &str| format!("User: <runtime-context>\n{fact}\n</runtime-context>");
    let want = [
        fact("tests: unknown"),
        "User: go".into(),
        "Assistant: I think so".into(),
        fact("tests: red"),
        "User: the tests fail".into(),
        "User: mend them".into(),
        "Assistant: finished".into(),
    ];
    assert_eq!(messages(agent.session()), want);
    let log = agent.session().snapshot();
    let notices = log
        .events()
        .iter()
        .filter(|event| event.get::<UserMessage>().is_some_and(|message| message.source == Source::Notice));
    let ids: Vec<_> = notices.map(|event| (event.seq(), event.get::<UserMessage>().unwrap().id.0)).collect();
    assert!(ids.len() == 2 && ids.iter().all(|(seq, id)| seq == id), "a notice's id is its own: {ids:?}");
    let outcomes = std::mem::take(&mut *stopping.lock().unwrap());
    assert!(outcomes.len() == 2 && outcomes.iter().all(|outcome| outcome.reason == TurnReason::Completed));
    assert_eq!(outcomes[1].output, outcome.output);
    stage.close().await;
}

#[tokio::test]
async fn a_turn_that_does_not_complete_stops_without_asking() {
    let (stage, agent) = Stage::with_agent().await;
    stage.around::<OnTurnStop>(|_| panic!("nobody is to be asked"));
    stage.model.reply_with([
        vec![text("a"), end(Finish::MaxTokens)],
        vec![text("a"), end(Finish::Refusal)],
        vec![text("a")],
    ]);
    assert_eq!(turn(&agent, "1").await.reason, TurnReason::MaxTokens);
    assert!(matches!(turn(&agent, "2").await.reason, TurnReason::Blocked { .. }));
    error_of(&turn(&agent, "3").await);
    stage.close().await;
}

#[tokio::test]
async fn going_on_with_nothing_to_say_is_stopping() {
    let (stage, agent) = Stage::with_agent().await;
    stage.around::<OnTurnStop>(|_| Does::Answer(StopVerdict::Continue(Vec::new())));
    assert_eq!(turn(&agent, "go").await.reason, TurnReason::Completed);
    assert_eq!(stage.model.requests().len(), 1);
    stage.close().await;
}

/// A layer that never lets go meets the limit of steps, and is not asked what no step is left for.
#[tokio::test]
async fn going_on_for_ever_is_not_possible() {
    let (stage, agent) = Stage::with_agent().await;
    stage.around::<OnTurnStop>(|_| Does::Answer(StopVerdict::Continue(vec![Arc::new(Message::user("more"))])));
    assert_eq!(turn(&agent, "go").await.reason, TurnReason::Completed, "the model had stopped");
    let limit = agent_loop::STEP_LIMIT as usize;
    assert_eq!(stage.model.requests().len(), limit);
    assert_eq!(messages(agent.session()).iter().filter(|message| *message == "User: more").count(), limit - 1);
    stage.close().await;
}

#[tokio::test]
async fn an_agents_own_layers_are_its_own() {
    let (stage, agent) = Stage::with_agent().await;
    let other = stage.agent().await;
    let rejects = |input: StepInput| Does::<BeforeStep>::Answer(Err(Rejected(format!("{}", input.turn).into())));
    agent.ctx().own(agent.ctx().realm().around::<BeforeStep>(Layer(rejects))).unwrap();
    assert_eq!(turn(&agent, "go").await.reason, TurnReason::Blocked { message: Some("1".into()) });
    assert_eq!(turn(&other, "go").await.reason, TurnReason::Completed);
    stage.close().await;
}
