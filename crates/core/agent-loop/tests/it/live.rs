//! Signals while a model speaks: for those who listen, and never in the log.

use agent::{Live, Signal};
use llm::{Chunk, Finish};

use crate::model::*;
use crate::support::*;

fn heard(trace: &Trace) -> impl Fn(&Live) + Send + Sync + 'static {
    let trace = trace.clone();
    move |live| match &live.signal {
        Signal::Text(text) => trace.note(format!("text {text}")),
        Signal::Thought(thought) => trace.note(format!("thought {thought}")),
    }
}

#[tokio::test]
async fn text_and_thoughts_are_heard_as_they_come() {
    let (stage, agent) = Stage::with_agent().await;
    let (trace, ids) = (Trace::default(), Trace::default());
    let listening = stage.app.realm().on(heard(&trace));
    let noting = ids.clone();
    let own = agent.ctx().realm().on(move |live: &Live| noting.note(live.session.to_string()));
    let deaf = stage.agent().await;
    let elsewhere = Trace::default();
    let other = deaf.ctx().realm().on(heard(&elsewhere));
    stage.model.reply_with([vec![
        chunk(Chunk::Thought("h".into())),
        chunk(Chunk::ThoughtSignature("seal".into())),
        text("a"),
        call("no such tool"),
        text("b"),
        usage(1, 1),
        end(Finish::Stop),
    ]]);
    turn(&agent, "go").await;
    assert_eq!(trace.take(), ["thought h", "text a", "text b", "text done"]);
    assert_eq!(ids.take(), vec![agent.id().to_string(); 4]);
    assert_eq!(elsewhere.take(), [""; 0], "another agent's own listeners hear their own");
    drop((listening, own, other));
    turn(&agent, "go").await;
    assert_eq!(trace.take(), [""; 0]);
    stage.close().await;
}

#[tokio::test]
async fn a_listener_that_comes_in_the_middle_hears_the_rest_and_one_that_panics_harms_nobody() {
    let (stage, agent) = Stage::with_agent().await;
    let trace = Trace::default();
    let app = context::Ctx::clone(&stage.app);
    let hears = heard(&trace);
    let comes = act(move || {
        app.own(app.realm().on(|_: &Live| panic!("a bug in a front door"))).unwrap();
        app.own(app.realm().on(hears)).unwrap();
    });
    stage.model.reply_with([vec![text("a"), comes, text("b"), end(Finish::Stop)]]);
    assert_eq!(turn(&agent, "go").await.output.unwrap().text(), "ab");
    assert_eq!(trace.take(), ["text b"]);
    stage.close().await;
}
