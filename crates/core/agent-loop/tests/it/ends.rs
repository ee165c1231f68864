//! How turns end when the model does not simply stop.

use std::time::Duration;

use agent::{Inbox, OnRequestError, Recourse};
use llm::{Finish, LlmErrorKind};
use session::{AssistantMessage, TurnEnd, TurnReason};

use crate::chains::Does;
use crate::model::*;
use crate::support::*;

/// A reply that was whole in its way: what it said is kept, what it asked for does not run.
#[tokio::test]
async fn a_reply_that_is_cut_or_declined_keeps_its_text_and_runs_no_tool() {
    let declined = TurnReason::Blocked { message: Some("the model declined to answer".into()) };
    for (finish, reason) in [(Finish::MaxTokens, TurnReason::MaxTokens), (Finish::Refusal, declined)] {
        let (stage, agent) = Stage::with_agent().await;
        stage.tool("read", async |_| panic!("it must not run"));
        stage.model.reply_with([vec![text("so far"), call("read"), usage(3, 4), end(finish)]]);
        let outcome = turn(&agent, "go").await;
        assert_eq!(outcome.reason, reason);
        assert_eq!((outcome.output.unwrap().text().as_str(), outcome.usage.total()), ("so far", 7));
        assert_eq!(agent.session().latest::<TurnEnd>().unwrap().reason, reason);
        assert_eq!(messages(agent.session()), ["User: go", "Assistant: so far"]);
        assert!(!agent.session().latest::<AssistantMessage>().unwrap().interrupted);
        assert_eq!(count(agent.session(), "tool/call"), 0);
        assert_eq!(turn(&agent, "and now?").await.reason, TurnReason::Completed);
        stage.close().await;
    }
}

#[tokio::test]
async fn an_error_keeps_what_had_arrived_and_ends_the_turn_in_one_line() {
    let cases = [
        (vec![text("half"), call("read"), usage(3, 4), fails(LlmErrorKind::ProviderFailed, "502")], "502"),
        (vec![text("half"), call("read"), usage(3, 4)], "the model's reply was cut off before its end"),
        (vec![text("half"), usage(3, 4), fails(LlmErrorKind::TimedOut, "silence for 90 s")], "silence for 90 s"),
    ];
    for (reply, told) in cases {
        let (stage, agent) = Stage::with_agent().await;
        stage.tool("read", async |_| panic!("it must not run"));
        stage.model.reply_with([reply]);
        let outcome = turn(&agent, "go").await;
        assert_eq!(error_of(&outcome), told);
        assert_eq!((outcome.output.as_ref().unwrap().text().as_str(), outcome.usage.total()), ("half", 7));
        assert_eq!(messages(agent.session()), ["User: go", "Assistant: half"]);
        assert!(agent.session().latest::<AssistantMessage>().unwrap().interrupted);
        assert_eq!(stage.model.requests().len(), 1);
        assert_eq!(turn(&agent, "and now?").await.reason, TurnReason::Completed);
        stage.close().await;
    }
}

#[tokio::test]
async fn an_error_before_anything_leaves_no_reply() {
    let error = || vec![fails(LlmErrorKind::Unauthorized, "401: the key is wrong")];
    for reply in [error(), vec![], vec![call("read"), fails(LlmErrorKind::Protocol, "what is this")]] {
        let (stage, agent) = Stage::with_agent().await;
        stage.tools(&["read"]);
        stage.model.reply_with([reply]);
        let outcome = turn(&agent, "go").await;
        error_of(&outcome);
        assert_eq!(outcome.output, None);
        assert_eq!(messages(agent.session()), ["User: go"]);
        assert_eq!(count(agent.session(), "assistant/message"), 0);
        turn(&agent, "again").await;
        assert_eq!(messages(agent.session()), ["User: go", "User: again", "Assistant: done"]);
        stage.close().await;
    }
}

#[tokio::test]
async fn chunks_behind_the_end_are_not_read() {
    let (stage, agent) = Stage::with_agent().await;
    stage.model.reply_with([vec![text("all"), end(Finish::Stop), text(" and more"), Say::Panic]]);
    assert_eq!(turn(&agent, "go").await.output.unwrap().text(), "all");
    stage.close().await;
}

/// A model that goes in circles.
#[tokio::test]
async fn a_turn_has_a_limited_number_of_steps() {
    let (stage, agent) = Stage::with_agent().await;
    let limit = agent_loop::STEP_LIMIT as usize;
    let (calls_left, asked) = (std::sync::atomic::AtomicUsize::new(limit), agent.handle().clone());
    stage.tool("read", move |_| {
        if calls_left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            asked.steer("try something else").unwrap();
        }
        async { tools::ToolOutput::text("read") }
    });
    stage.model.reply_with((0..limit).map(|_| calls(&["read"])));
    let outcome = in_time(agent.followup("go").unwrap().outcome()).await;
    assert_eq!(error_of(&outcome), "stopped after 500 steps: the model kept asking for tools");
    in_time(agent.when_idle()).await;
    assert_eq!(count(agent.session(), "tool/result"), limit, "the last call has its result");
    assert_eq!(stage.model.requests().len(), limit + 1, "and what came in with it has a turn of its own");
    assert!(messages(agent.session()).ends_with(&["User: try something else".into(), "Assistant: done".into()]));
    check_log(agent.session());
    stage.close().await;
}

/// The model stopped, so the turn did what it was to do; and nothing is claimed that no step is left for.
#[tokio::test]
async fn what_comes_in_at_the_last_step_has_a_turn_of_its_own() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tools(&["read"]);
    let (limit, asked) = (agent_loop::STEP_LIMIT as usize, agent.handle().clone());
    let steer = act(move || drop(asked.steer("one more thing").unwrap()));
    stage.model.reply_with((1..limit).map(|_| calls(&["read"])));
    stage.model.reply_with([vec![text("finished"), steer, end(Finish::Stop)]]);
    let outcome = in_time(agent.followup("go").unwrap().outcome()).await;
    assert_eq!((outcome.reason, outcome.output.unwrap().text().as_str()), (TurnReason::Completed, "finished"));
    in_time(agent.when_idle()).await;
    assert_eq!(stage.model.requests().len(), limit + 1);
    let want = ["Assistant: finished", "User: one more thing", "Assistant: done"].map(str::to_owned);
    assert!(messages(agent.session()).ends_with(&want));
    check_log(agent.session());
    stage.close().await;
}

/// Budgets and tallies read the log.
#[tokio::test]
async fn what_was_paid_for_nothing_is_in_the_log() {
    let down = |input, output| vec![usage(input, output), fails(LlmErrorKind::ProviderFailed, "503")];
    let whole = || vec![text("at last"), usage(100, 200), end(Finish::Stop)];
    let silent = || vec![fails(LlmErrorKind::ProviderFailed, "503")];
    let cases = [
        (vec![down(1, 2), silent(), down(10, 20), whole()], 333, false),
        (vec![down(1, 2), silent(), down(10, 20), silent()], 33, true),
        (vec![vec![call("read"), usage(3, 4), fails(LlmErrorKind::ProviderFailed, "502")]], 7, true),
        (vec![down(1, 2), vec![act(|| ())]], 3, true),
    ];
    for (replies, total, interrupted) in cases {
        let (stage, agent) = Stage::with_agent().await;
        stage.tool("read", async |_| panic!("it must not run"));
        stage.around::<OnRequestError>(|failed| match failed.attempt {
            4.. => Does::Pass(failed),
            2 if failed.error.kind == LlmErrorKind::Truncated => {
                failed.agent.cancel("enough", Inbox::Keep);
                Does::Answer(Recourse::Retry(Duration::from_secs(50)))
            }
            _ => Does::Answer(Recourse::Retry(Duration::ZERO)),
        });
        stage.model.reply_with(replies);
        assert_eq!(turn(&agent, "go").await.usage.total(), total);
        let log = agent.session().snapshot();
        let replies: Vec<&AssistantMessage> = log.events().iter().filter_map(|event| event.get()).collect();
        assert_eq!((replies.len(), replies[0].interrupted), (1, interrupted), "one a step");
        assert_eq!(replies[0].usage.unwrap().total(), total);
        assert_eq!(messages(agent.session()).len(), if interrupted { 1 } else { 2 }, "nothing empty is shown");
        stage.close().await;
    }
}

/// What cannot be read cannot be asked about.
#[tokio::test]
async fn a_damaged_history_ends_the_turn_and_names_the_event() {
    let (stage, agent) = Stage::with_agent().await;
    turn(&agent, "hi").await;
    in_time(agent.dispose()).await.unwrap();
    let whole = log_text(&agent.session().snapshot());
    let damaged = whole.replace(r#"{"turn":1,"step":1,"message""#, r#"{"turn":"one","step":1,"message""#);
    assert_ne!(whole, damaged);
    let decoded = stage.sessions.vocabulary().decode(damaged).unwrap();
    let agent = stage.agent_of(stage.sessions.resume(decoded).unwrap()).await;
    let outcome = in_time(agent.followup("still there?").unwrap().outcome()).await;
    let told = error_of(&outcome);
    assert!(told.starts_with("event 6 (assistant/message) is damaged: invalid type"), "{told}");
    assert_eq!(stage.model.requests().len(), 1, "it is not asked");
    stage.close().await;
}
