//! The chain around every call.

use async_trait::async_trait;
use context::{Around, Next};
use tools::*;

use crate::support::{Trace, app_with, failed, fake, run};

/// Notes when it is passed, and on the way back what was answered.
struct Noting(&'static str, Trace);

#[async_trait]
impl Around<ToolExecution> for Noting {
    async fn around(&self, call: Call, next: Next<'_, ToolExecution>) -> ToolOutput {
        self.1.note(format!("{} before {} {}", self.0, call.name, call.arguments));
        let output = next.run(call).await;
        self.1.note(format!("{} after {}", self.0, output.to_text()));
        output
    }
}

/// Refuses one tool.
struct Deny(&'static str);

#[async_trait]
impl Around<ToolExecution> for Deny {
    async fn around(&self, call: Call, next: Next<'_, ToolExecution>) -> ToolOutput {
        match *call.name == *self.0 {
            true => ToolOutput::error("denied", "not this one"),
            false => next.run(call).await,
        }
    }
}

/// Has other arguments run, and rewrites the answer.
struct Rewrite;

#[async_trait]
impl Around<ToolExecution> for Rewrite {
    async fn around(&self, mut call: Call, next: Next<'_, ToolExecution>) -> ToolOutput {
        call.arguments = "rewritten".into();
        let mut output = next.run(call).await;
        output.content.push(llm::Content::text("!"));
        output.then = Then::EndTurn;
        output.with_meta(&7)
    }
}

struct Twice;

#[async_trait]
impl Around<ToolExecution> for Twice {
    async fn around(&self, call: Call, next: Next<'_, ToolExecution>) -> ToolOutput {
        next.run(call.clone()).await;
        next.run(call).await
    }
}

struct Broken;

#[async_trait]
impl Around<ToolExecution> for Broken {
    async fn around(&self, _: Call, _: Next<'_, ToolExecution>) -> ToolOutput {
        panic!("a bug in a layer")
    }
}

/// An app whose one tool notes that it ran.
fn app(trace: &Trace) -> context::Scope {
    let trace = trace.clone();
    app_with([fake("echo", Concurrency::Alone, move |call: Call| {
        trace.note(format!("ran {}", call.arguments));
        async move { ToolOutput::text(format!("did {}", call.arguments)) }
    })])
}

#[tokio::test]
async fn layers_are_passed_outermost_first_and_left_in_reverse() {
    let trace = Trace::default();
    let app = app(&trace);
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    agent.own(agent.realm().around::<ToolExecution>(Noting("inner", trace.clone()))).unwrap();
    app.own(app.realm().around::<ToolExecution>(Noting("outer", trace.clone()))).unwrap();
    run(&agent, "echo", "x").await;
    let want = ["outer before echo x", "inner before echo x", "ran x", "inner after did x", "outer after did x"];
    assert_eq!(trace.take(), want);
    run(&app, "echo", "x").await;
    assert_eq!(trace.take(), ["outer before echo x", "ran x", "outer after did x"], "the agent's own is its own");
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_layer_that_denies_is_the_end_of_it() {
    let trace = Trace::default();
    let app = app(&trace);
    let mut runner = Runner::new(app.realm());
    let denied = app.realm().around::<ToolExecution>(Deny("echo"));
    let call = || crate::support::call_to(&app, "echo", "x");
    assert_eq!(failed(&runner.run(call()).await), ("denied", "not this one".to_owned()));
    assert_eq!(trace.take(), [""; 0], "the tool did not run");
    drop(denied);
    assert_eq!(runner.run(call()).await.to_text(), "did x", "a layer that was withdrawn is passed no more");
    let _denied = app.realm().around::<ToolExecution>(Deny("echo"));
    runner.run_all(vec![call()], |_, output| assert!(output.is_error())).await;
    assert_eq!(trace.take(), ["ran x"], "and holds for a whole response too");
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_layer_rewrites_what_goes_in_and_what_comes_out() {
    let trace = Trace::default();
    let app = app(&trace);
    app.own(app.realm().around::<ToolExecution>(Rewrite)).unwrap();
    let output = run(&app, "echo", "x").await;
    assert_eq!(output.to_text(), "did rewritten!");
    assert_eq!((output.then, output.meta.unwrap().get()), (Then::EndTurn, "7"));
    assert_eq!(trace.take(), ["ran rewritten"]);
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_layer_may_run_the_rest_again() {
    let trace = Trace::default();
    let app = app(&trace);
    app.own(app.realm().around::<ToolExecution>(Twice)).unwrap();
    run(&app, "echo", "x").await;
    assert_eq!(trace.take(), ["ran x", "ran x"]);
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_layer_that_panics_fails_the_call_and_the_tool_does_not_run() {
    let trace = Trace::default();
    let app = app(&trace);
    let broken = app.realm().around::<ToolExecution>(Broken);
    assert_eq!(failed(&run(&app, "echo", "x").await).0, code::PANICKED);
    assert_eq!(trace.take(), [""; 0]);
    drop(broken);
    assert_eq!(run(&app, "echo", "x").await.to_text(), "did x");
    app.close().await.unwrap();
}
