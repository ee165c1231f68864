//! What a filter does not admit is neither shown nor run.

use std::sync::Arc;

use tools::*;

use crate::support::{Trace, app_with, call_to, failed, fake, in_time};

fn names(runner: &mut Runner) -> Vec<String> {
    runner.schemas().iter().map(|schema| schema.name.to_string()).collect()
}

/// A tool that leaves a trace of every call that reaches it.
fn traced(name: &'static str, trace: &Trace) -> Arc<dyn Tool> {
    let trace = trace.clone();
    fake(name, Concurrency::Alone, move |_| {
        trace.note(name);
        async { ToolOutput::text("ran") }
    })
}

// D-29
#[tokio::test]
async fn what_is_filtered_out_is_neither_shown_nor_run() {
    let trace = Trace::default();
    let app = app_with(["read", "write", "bash"].map(|name| traced(name, &trace)));
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    agent.register::<ToolFilter>("mine", Arc::new(ToolFilter::denying(["write"]))).unwrap();
    let (mut filtered, mut other) = (Runner::new(agent.realm()), Runner::new(app.realm()));
    assert_eq!(names(&mut filtered), ["read", "bash"]);
    let refused = in_time(filtered.run(call_to(&agent, "write", "{}"))).await;
    let told = (code::UNKNOWN_TOOL, "there is no tool named `write`; there are: read, bash".to_owned());
    assert_eq!(failed(&refused), told);
    assert_eq!(trace.take(), [""; 0]);
    assert_eq!(names(&mut other), ["read", "write", "bash"], "for nobody else");
    assert_eq!(in_time(other.run(call_to(&app, "write", "{}"))).await.to_text(), "ran");
    app.close().await.unwrap();
}

// D-29
#[tokio::test]
async fn all_filters_that_can_be_found_apply() {
    let trace = Trace::default();
    let app = app_with(["read", "write", "bash"].map(|name| traced(name, &trace)));
    app.register::<ToolFilter>("everyone's", Arc::new(ToolFilter::denying(["bash"]))).unwrap();
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    let mut runner = Runner::new(agent.realm());
    assert_eq!(names(&mut runner), ["read", "write"]);
    let narrower = agent.realm().register("mine", Arc::new(ToolFilter::allowing(["write", "bash"]))).unwrap();
    assert_eq!(names(&mut runner), ["write"], "one only takes away from another");
    drop(narrower);
    assert_eq!(names(&mut runner), ["read", "write"], "what changes is noticed");
    app.close().await.unwrap();
}

// D-29
#[tokio::test]
async fn a_filter_is_not_shed_by_registering_another_under_its_name() {
    let trace = Trace::default();
    let app = app_with(["read", "write", "bash"].map(|name| traced(name, &trace)));
    app.register::<ToolFilter>("tools", Arc::new(ToolFilter::denying(["bash"]))).unwrap();
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    agent.register::<ToolFilter>("tools", Arc::new(ToolFilter::denying(["write"]))).unwrap();
    assert_eq!(names(&mut Runner::new(agent.realm())), ["read"]);
    app.close().await.unwrap();
}

// D-29, D-30
#[tokio::test]
async fn no_filter_takes_the_tool_that_hands_a_result_in() {
    let trace = Trace::default();
    let app = app_with(["hand_in", "read", "write"].map(|name| traced(name, &trace)));
    app.register::<ToolFilter>("everyone's", Arc::new(ToolFilter::allowing(["read"]))).unwrap();
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    agent.register::<ToolFilter>("mine", Arc::new(ToolFilter::denying(["hand_in"]))).unwrap();
    let tool = fake("hand_in", Concurrency::Alone, |call| async move {
        if *call.arguments == *"{}" { ToolOutput::text("taken") } else { ToolOutput::error(code::FAILED, "no") }
    });
    agent.provide(Arc::new(HandIn(tool))).unwrap();
    let (mut own, mut other) = (Runner::new(agent.realm()), Runner::new(app.realm()));
    assert_eq!((names(&mut own), names(&mut other)), (vec!["read".into(), "hand_in".into()], vec!["read".to_owned()]));
    let taken = in_time(own.run(call_to(&agent, "hand_in", "{}"))).await;
    assert_eq!((taken.to_text().as_str(), taken.then), ("taken", Then::EndTurn), "it can do nothing else");
    let refused = in_time(own.run(call_to(&agent, "hand_in", "x"))).await;
    assert_eq!((failed(&refused), refused.then), ((code::FAILED, "no".to_owned()), Then::Continue));
    let read = in_time(own.run(call_to(&agent, "read", "{}"))).await;
    assert_eq!((trace.take(), read.then), (vec!["read".to_owned()], Then::Continue));
    app.close().await.unwrap();
}
