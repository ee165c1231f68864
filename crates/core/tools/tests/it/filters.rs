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
