//! Which tools there are: found from a realm, anew whenever that changes, and not before.

use std::sync::Arc;

use context::{RegisterError, Scope};
use tools::*;

use crate::support::{app_with, call_to, failed, fake, in_time, run, says};

fn names(runner: &mut Runner) -> Vec<String> {
    runner.schemas().iter().map(|schema| schema.name.to_string()).collect()
}

#[tokio::test]
async fn schemas_stay_the_same_allocation_until_a_tool_comes_or_goes() {
    let app = app_with([says("a", "A"), says("b", "B")]);
    let mut runner = Runner::new(app.realm());
    assert_eq!(names(&mut runner), ["a", "b"], "in order of registration");
    let first = runner.schemas().clone();
    assert!(Arc::ptr_eq(&first, runner.schemas()));

    app.provide(Arc::new(7_u32)).unwrap();
    assert!(Arc::ptr_eq(&first, runner.schemas()), "an unrelated change keeps them");

    let third = app.realm().register::<dyn Tool>("c", says("c", "C")).unwrap();
    assert_eq!(names(&mut runner), ["a", "b", "c"]);
    let with_third = runner.schemas().clone();
    assert!(!Arc::ptr_eq(&first, &with_third));
    drop(third);
    assert_eq!(names(&mut runner), ["a", "b"]);

    // As many as before, but another one.
    let _third = app.realm().register::<dyn Tool>("c", says("c", "C")).unwrap();
    let before = runner.schemas().clone();
    let app_again = app.child_in("agent", app.realm().nested()).unwrap();
    let mut nested = Runner::new(app_again.realm());
    assert_eq!(nested.schemas().len(), before.len());
    let kept = nested.schemas().clone();
    app_again.register::<dyn Tool>("b", says("b", "mine")).unwrap();
    assert!(!Arc::ptr_eq(&kept, nested.schemas()), "a tool that takes another's place is a change");
    assert_eq!(names(&mut nested), ["a", "b", "c"], "in its place");
    assert!(Arc::ptr_eq(&before, runner.schemas()), "and none for the others");
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_runner_runs_what_is_registered_now() {
    let app = app_with([says("a", "A")]);
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    let mut runner = Runner::new(agent.realm());
    let mut say = async |name: &str| {
        let output = in_time(runner.run(call_to(&agent, name, "{}"))).await;
        (output.error.as_deref().unwrap_or("").to_owned(), output.to_text())
    };
    assert_eq!(say("a").await.1, "A");
    let shadow = agent.realm().register::<dyn Tool>("a", says("a", "mine")).unwrap();
    assert_eq!(say("a").await.1, "mine");
    drop(shadow);
    assert_eq!(say("a").await.1, "A");
    let gone = agent.realm().register::<dyn Tool>("b", says("b", "B")).unwrap();
    assert_eq!(say("b").await.1, "B");
    drop(gone);
    let (code, text) = say("b").await;
    assert_eq!((&*code, &*text), (code::UNKNOWN_TOOL, "there is no tool named `b`; there are: a"));
    app.close().await.unwrap();
}

#[tokio::test]
async fn an_agents_own_tool_is_nobody_elses() {
    let app = Scope::root("app");
    let agents = ["one", "two"].map(|name| app.child_in(name, app.realm().nested()).unwrap());
    register(&agents[0], Greet("one's")).unwrap();
    assert_eq!(run(&agents[0], "greet", "").await.to_text(), "one's");
    assert_eq!(failed(&run(&agents[1], "greet", "").await).0, code::UNKNOWN_TOOL);
    assert_eq!(failed(&run(&app, "greet", "").await).0, code::UNKNOWN_TOOL);
    app.close().await.unwrap();
}

#[tokio::test]
async fn names_are_unique_and_a_closing_scope_takes_none() {
    let app = Scope::root("app");
    register(&app, Greet("first")).unwrap();
    let taken = register(&app, Greet("second")).unwrap_err();
    assert!(matches!(taken, RegisterError::NameTaken(_)));
    assert_eq!(taken.to_string(), "the name `greet` is taken");
    assert_eq!(run(&app, "greet", "").await.to_text(), "first");
    app.close().await.unwrap();
    assert!(matches!(register(&app, Greet("late")), Err(RegisterError::Closing(_))));
}

#[tokio::test]
async fn an_unknown_tool_is_told_the_known_ones_and_not_repeated_whole() {
    let app = app_with([says("read", ""), says("write", "")]);
    let output = run(&app, &"ü".repeat(1_000), "{}").await;
    let want = format!("there is no tool named `{}`; there are: read, write", "ü".repeat(64));
    assert_eq!(failed(&output), (code::UNKNOWN_TOOL, want));
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_next_call_works() {
    let app = app_with([
        fake("late", Concurrency::Alone, async |_| panic!("a bug behind a poll")),
        fake("early", Concurrency::Alone, |_| -> std::future::Ready<ToolOutput> { panic!("a bug at the call") }),
        says("good", "fine"),
    ]);
    for name in ["late", "early"] {
        let output = run(&app, name, "{}").await;
        let want = format!("`{name}` failed: it panicked; this is a bug in the tool");
        assert_eq!(failed(&output), (code::PANICKED, want));
    }
    assert_eq!(run(&app, "good", "{}").await.to_text(), "fine");
    app.close().await.unwrap();
}

struct Greet(&'static str);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[async_trait::async_trait]
impl TypedTool for Greet {
    type Args = Nothing;

    fn name(&self) -> &str {
        "greet"
    }

    fn description(&self) -> std::borrow::Cow<'_, str> {
        "Greets.".into()
    }

    async fn run(&self, Nothing {}: Nothing, _: &Call) -> ToolOutput {
        ToolOutput::text(self.0)
    }
}
