//! `request/header`: written when it changes, so that every request can be rebuilt, and only then.

use std::sync::Arc;

use agent::{Profile, Spec};
use llm::{LlmAdapter, Sampling};
use llm_script::Fixed;
use session::{Delegation, HeaderReason, RequestHeaderEvent, Seed, Session};
use system_prompt::{Section, Text};
use tools::Tool;

use crate::model::*;
use crate::support::*;

fn headers(session: &Session) -> Vec<(HeaderReason, Vec<String>)> {
    let log = session.snapshot();
    let header = |event: &RequestHeaderEvent| {
        let tools = event.header.tools.iter().map(|tool| tool.name.to_string());
        (event.reason, [event.header.system.to_string()].into_iter().chain(tools).collect())
    };
    log.events().iter().filter_map(|event| event.get()).map(header).collect()
}

#[tokio::test]
async fn it_is_written_once_and_again_when_something_in_it_changes() {
    let (stage, agent) = Stage::with_agent().await;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    turn(&agent, "1").await;
    turn(&agent, "2").await;
    let mut want = vec![(HeaderReason::Initial, words(&[""]))];
    assert_eq!(headers(agent.session()), want);

    stage.app.register::<dyn Section>("tone", Text::new(0, "Be brief.")).unwrap();
    turn(&agent, "3").await;
    want.push((HeaderReason::Changed, words(&["Be brief."])));
    assert_eq!(headers(agent.session()), want);

    let read = fake("read", async |_| unreachable!("nobody calls it"));
    let reads = agent.ctx().realm().register::<dyn Tool>("read", read.clone()).unwrap();
    turn(&agent, "4").await;
    want.push((HeaderReason::Changed, words(&["Be brief.", "read"])));
    assert_eq!(headers(agent.session()), want);

    // Something else changed; the same things in other allocations.
    stage.app.provide(Arc::new(1_u8)).unwrap();
    drop(reads);
    stage.app.register::<dyn Tool>("read", fake("read", async |_| unreachable!())).unwrap();
    turn(&agent, "5").await;
    assert_eq!(headers(agent.session()), want);
    stage.close().await;
}

#[tokio::test]
async fn a_change_in_the_middle_of_a_turn_counts_from_the_next_request_on() {
    let (stage, agent) = Stage::with_agent().await;
    let app = context::Ctx::clone(&stage.app);
    stage.tool("learn", move |_| {
        let _ = app.register::<dyn Tool>("new", fake("new", async |_| tools::ToolOutput::text("new ran")));
        async { tools::ToolOutput::text("learnt") }
    });
    stage.model.reply_with([calls(&["learn"]), calls(&["new"])]);
    turn(&agent, "go").await;
    let offered: Vec<usize> = stage.model.requests().iter().map(|request| request.tools.len()).collect();
    assert_eq!(offered, [1, 2, 2]);
    assert_eq!(headers(agent.session()).len(), 2);
    assert!(messages(agent.session()).contains(&"Tool: new: new ran".to_owned()));
    stage.close().await;
}

#[tokio::test]
async fn it_says_what_is_asked_and_requests_share_it() {
    let stage = Stage::new().await;
    stage.app.register::<dyn Section>("tone", Text::new(0, "Be brief.")).unwrap();
    stage.tools(&["read"]);
    let sampling = Sampling { max_tokens: Some(99), temperature: Some(0.5) };
    let profile = Profile { route: "test/deep/thought".parse().unwrap(), sampling: sampling.clone() };
    let spec = Spec::new(stage.sessions.create("/home/me/project"), profile);
    let agent = in_time(stage.agents.create(&stage.app, spec)).await.unwrap();
    turn(&agent, "1").await;
    turn(&agent, "2").await;
    let [first, second] = &stage.model.requests()[..] else { panic!("two requests") };
    let written = agent.session().latest::<RequestHeaderEvent>().unwrap();
    let header = &written.header;
    assert_eq!((&*header.provider, &*header.model, &header.sampling), ("test", "deep/thought", &sampling));
    assert_eq!(header.route(), agent.profile().route);
    for request in [first, second] {
        assert_eq!((&*request.model, &request.sampling), ("deep/thought", &sampling));
        assert!(Arc::ptr_eq(&request.system, &header.system) && Arc::ptr_eq(&request.tools, &header.tools));
    }
    stage.close().await;
}

#[tokio::test]
async fn a_log_that_is_continued_has_its_header_already() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tools(&["read"]);
    turn(&agent, "1").await;
    let agent = stage.resumed(agent).await;
    turn(&agent, "2").await;
    assert_eq!(headers(agent.session()).len(), 1);
    stage.tools(&["write"]);
    let agent = stage.resumed(agent).await;
    turn(&agent, "3").await;
    let reasons: Vec<_> = headers(agent.session()).into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons, [HeaderReason::Initial, HeaderReason::Changed]);
    // So has a fork.
    let fork = Session::delegated(Delegation::capture(agent.session()).unwrap(), Seed::ClosedTurns);
    let child = stage.agent_of(fork).await;
    turn(&child, "4").await;
    assert_eq!(headers(child.session()).len(), 2);
    stage.close().await;
}

#[tokio::test]
async fn the_adapter_that_is_registered_now_serves() {
    let (stage, agent) = Stage::with_agent().await;
    turn(&agent, "1").await;
    let shadow = agent.ctx().realm().register::<dyn LlmAdapter>("test", Arc::new(Fixed::letters("mine"))).unwrap();
    assert_eq!(turn(&agent, "2").await.output.unwrap().text(), "mine");
    drop(shadow);
    assert_eq!(turn(&agent, "3").await.output.unwrap().text(), "done");
    assert_eq!(stage.model.requests().len(), 2);
    stage.close().await;
}

#[tokio::test]
async fn a_route_that_nobody_serves_ends_the_turn_and_says_who_does() {
    let stage = Stage::new().await;
    let session = stage.sessions.create("/home/me/project");
    let spec = Spec::new(session, Profile::of("openai/gpt".parse().unwrap()));
    let agent = in_time(stage.agents.create(&stage.app, spec)).await.unwrap();
    let outcome = turn(&agent, "hi").await;
    assert_eq!(error_of(&outcome), "no model provider named `openai`; there are: test");
    stage.app.register::<dyn LlmAdapter>("openai", Arc::new(Fixed::letters("now"))).unwrap();
    assert_eq!(turn(&agent, "and now?").await.output.unwrap().text(), "now");
    stage.close().await;
}
