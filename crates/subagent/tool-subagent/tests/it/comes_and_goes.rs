//! A tool is there while its provider is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use async_trait::async_trait;
use context::{Plugins, Registration, Scope};
use subagent::{Limits, Start, StartError, Started, SubagentProvider, Subagents};
use tokio::sync::oneshot;
use tool_subagent::{Config, SubagentTool, SubagentTools, check_served};
use tools::Tool;

use crate::doubles::{Panics, Slow, Stranger};
use crate::stage::{Stage, within};

fn stranger(inherits: bool) -> Arc<Stranger> {
    Arc::new(Stranger { inherits })
}

// D-20
#[tokio::test]
async fn a_tool_appears_and_goes_with_its_provider_and_says_what_it_says() {
    within(async {
        let stage = Stage::with_tools([Config::new("ask", "late")], |_| {}).await;
        let subagents = stage.app.get::<Subagents>().unwrap();
        assert!(stage.offered("ask").is_none());
        stage.tell("spawn via ask { one }").await;
        assert!(!stage.shown_to(stage.agent.id()).contains(&"ask".to_owned()));

        let registered = subagents.register("late", stranger(false)).unwrap();
        assert_eq!(stage.answer("spawn via ask { two }").await, "[ok] You said: two");
        let fresh = stage.offered("ask").unwrap().description;
        assert_eq!(fresh, stage.offered("subagent").unwrap().description);
        drop(registered);
        assert!(stage.offered("ask").is_none());

        let registered = subagents.register("late", stranger(true)).unwrap();
        let knowing = stage.offered("ask").unwrap().description;
        assert_eq!(knowing, stage.offered("subagent_fork").unwrap().description);
        assert_eq!(stage.answer("spawn via ask { three }").await, "[ok] You said: three");
        let told = stage.header(stage.agent.id());
        assert!(told.tools.iter().any(|tool| &*tool.name == "ask" && tool.description == knowing));
        drop(registered);
        assert!(stage.offered("subagent").is_some(), "the others stay");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-20
#[tokio::test]
async fn an_accepted_run_goes_on_without_its_provider() {
    within(async {
        let stage = Stage::with_tools([Config::new("ask", "slow")], |_| {}).await;
        let subagents = stage.app.get::<Subagents>().unwrap();
        let (end, ends) = oneshot::channel();
        let registered = subagents.register("slow", Arc::new(Slow(std::sync::Mutex::new(Some(ends))))).unwrap();
        let (started, starts) = oneshot::channel();
        let started = std::sync::Mutex::new(Some(started));
        let _told = stage.app.realm().on(move |_: &subagent::ChildStarted| {
            if let Some(started) = started.lock().unwrap().take() {
                started.send(()).unwrap();
            }
        });
        let receipt = stage.agent.followup("spawn via ask { go }").unwrap();
        starts.await.unwrap();
        drop(registered);
        assert!(stage.offered("ask").is_none());
        end.send(()).unwrap();
        receipt.outcome().await;
        assert_eq!(stage.shown(&stage.results()[0]), "[ok] at last");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-20
#[tokio::test]
async fn two_tools_of_one_name_are_refused() {
    within(async {
        for taken in ["subagent", "read"] {
            let refused = Stage::built(vec![Config::new(taken, "nobody")], |plugins| plugins, |_| {}).await;
            let error = refused.err().unwrap();
            let source = std::error::Error::source(&error).unwrap().to_string();
            let told = format!("there is a tool named `{taken}` already: each delegation tool needs a name of its own");
            assert_eq!((error.to_string(), source), ("the plugin `tool-subagent` could not start".into(), told));
        }
        for wrong in ["", "two words", "ünder", &"x".repeat(65)] {
            let refused = Stage::built(vec![Config::new(wrong, "spawn")], |plugins| plugins, |_| {}).await;
            let error = refused.err().unwrap();
            let source = std::error::Error::source(&error).unwrap().to_string();
            let told = format!("`{wrong}` cannot be a tool's name: it takes 1 to 64 letters, digits, `_` or `-`");
            assert_eq!(source, told);
        }
        assert!(Stage::built(vec![Config::new("x".repeat(64), "spawn")], |plugins| plugins, |_| {}).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn who_begins_can_ask_which_tools_have_no_provider() {
    let app = Scope::root("app");
    let subagents = Subagents::new(&app, Limits::default());
    let configs = [Config::new("a", "one"), Config::new("b", "two"), Config::new("c", "one")];
    let told = |configs: &[Config]| check_served(&subagents, configs).map_err(|unserved| unserved.to_string());
    assert_eq!(told(&[]), Ok(()));
    let none = "the tool `a` delegates to `one` and the tool `b` to `two` and the tool `c` to `one`, which are no \
                providers; there are none";
    assert_eq!(told(&configs), Err(none.into()));
    let one = subagents.register("one", stranger(false)).unwrap();
    let some = "the tool `b` delegates to `two`, which is no provider; there are: one";
    assert_eq!(told(&configs), Err(some.into()));
    let two = subagents.register("two", stranger(false)).unwrap();
    assert_eq!(told(&configs), Ok(()));
    drop((one, two));
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_provider_that_panics_is_not_offered_and_holds_nobody_up() {
    within(async {
        let tools = [Config::new("ask", "bad"), Config::new("other", "good")];
        let stage = Stage::with_tools(tools, |_| {}).await;
        let subagents = stage.app.get::<Subagents>().unwrap();
        let bad = subagents.register("bad", Arc::new(Panics)).unwrap();
        let good = subagents.register("good", stranger(false)).unwrap();
        assert!(stage.offered("ask").is_none() && stage.offered("other").is_some());
        drop(bad);
        let mended = subagents.register("bad", stranger(false)).unwrap();
        assert!(stage.offered("ask").is_some());
        drop((good, mended));
        stage.app.close().await.unwrap();
    })
    .await;
}

/// An app without agents that work.
async fn app() -> (Scope, Arc<Subagents>) {
    let app = Scope::root("app");
    let plugins = Plugins::new().with(session::SessionsPlugin, ()).with(agent::AgentsPlugin, ());
    plugins.with(subagent::SubagentPlugin, subagent::Config::default()).start(&app).await.unwrap();
    let subagents = app.get().unwrap();
    (app, subagents)
}

fn is_offered(app: &Scope) -> bool {
    app.realm().named::<dyn Tool>("ask").is_some()
}

// D-20
#[tokio::test]
async fn a_tool_goes_with_whoever_offers_it() {
    within(async {
        let (app, subagents) = app().await;
        let inner = app.child("inner").unwrap();
        Plugins::new().with(SubagentTool, Config::new("ask", "p")).start(&inner).await.unwrap();
        let registered = subagents.register("p", stranger(false)).unwrap();
        assert!(is_offered(&app));
        inner.close().await.unwrap();
        assert!(!is_offered(&app));
        drop(registered);
        let registered = subagents.register("p", stranger(false)).unwrap();
        assert!(!is_offered(&app), "nobody follows any more");
        Plugins::new().with(SubagentTools, vec![Config::new("ask", "p")]).start(&app).await.unwrap();
        assert!(is_offered(&app), "its name is free again");
        drop(registered);
        app.close().await.unwrap();
    })
    .await;
}

/// Has a scope close while it says what it is, and waits until all of that is withdrawn.
struct Closes(Scope, std::sync::Mutex<mpsc::Receiver<()>>);

#[async_trait]
impl SubagentProvider for Closes {
    fn inherits_parent_context(&self) -> bool {
        self.0.start_closing();
        self.1.lock().unwrap().recv_timeout(Duration::from_secs(60)).expect("it closes");
        true
    }

    async fn start(&self, _: Start) -> Result<Started, StartError> {
        unreachable!("nobody offers it")
    }
}

// D-20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_comes_while_its_scope_closes_does_not_stay() {
    within(async {
        let (app, subagents) = app().await;
        let inner = app.child("inner").unwrap();
        let (closed, closes) = mpsc::channel();
        // The oldest of the scope, and so the last that is withdrawn.
        inner.own(Registration::new(move || closed.send(()).unwrap())).unwrap();
        Plugins::new().with(SubagentTool, Config::new("ask", "p")).start(&inner).await.unwrap();
        let registered = subagents.register("p", Arc::new(Closes(inner, std::sync::Mutex::new(closes)))).unwrap();
        assert!(!is_offered(&app));
        drop(registered);
        app.close().await.unwrap();
    })
    .await;
}

// D-20
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_comes_at_the_same_time_the_tool_follows() {
    within(async {
        for round in 0..200 {
            let (app, subagents) = app().await;
            let inner = app.child("inner").unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let toggling: Vec<_> = (0..2)
                .map(|_| {
                    let (subagents, stop) = (subagents.clone(), stop.clone());
                    std::thread::spawn(move || {
                        let mut inherits = false;
                        while !stop.load(Ordering::Relaxed) {
                            inherits = !inherits;
                            drop(subagents.register("p", stranger(inherits)));
                        }
                    })
                })
                .collect();
            Plugins::new().with(SubagentTool, Config::new("ask", "p")).start(&inner).await.unwrap();
            if round % 2 == 0 {
                inner.close().await.unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            toggling.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(!is_offered(&app), "its provider is gone");
            let registered = subagents.register("p", stranger(false)).unwrap();
            assert_eq!(is_offered(&app), round % 2 == 1);
            drop(registered);
            app.close().await.unwrap();
        }
    })
    .await;
}
