//! A run from its start to its end: who holds it, who hears of it, who ends it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use agent::{AgentRef, AgentSetup};
use async_trait::async_trait;
use context::{BoxError, CloseError, Plugins};
use futures_util::future::join_all;
use llm::ToolSchema;
use session::{TurnEnd, TurnReason};
use session_store::SessionStore;
use subagent::{ChildEnded, ChildStarted, Request, Run, StartError, StopReason};
use tokio::sync::{Semaphore, SetOnce};
use tools::{Call, Tool, ToolOutput};

use crate::doubles::{Gate, Note, Tape, schema};
use crate::world::*;

// D-22
#[tokio::test]
async fn a_start_and_its_end_are_told_once_each_with_what_they_belong_to() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let news = Arc::new(Mutex::new(Vec::new()));
        let (one, other) = (news.clone(), news.clone());
        let _deaf = world.app.realm().on(|_: &ChildStarted| panic!("on purpose"));
        let _started = world.app.realm().on(move |ChildStarted { run, provider, label, parent, child, .. }| {
            let label = label.as_deref().unwrap_or("-");
            one.lock().unwrap().push((format!("start {run} {provider} {label}"), *parent, *child));
        });
        let _ended = world.app.realm().on(move |ChildEnded { run, provider, parent, child, result }| {
            let told = format!("end {run} {provider} {} {}", result.reason.as_str(), result.text());
            other.lock().unwrap().push((told, *parent, *child));
        });
        let before = parent.session().len();
        let request = Request { label: Some("a little task".into()), ..Request::new("say done") };
        let run = world.subagents.start(&parent, "spawn", request).await.unwrap();
        run.result().await;
        let again = world.spawn(&parent, "refuse").await;
        again.result().await;
        run.dispose().await.unwrap();
        again.dispose().await.unwrap();
        assert_ne!(run.id(), again.id());
        let want = [
            (format!("start {} spawn a little task", run.id()), parent.id(), run.child()),
            (format!("end {} spawn completed done", run.id()), parent.id(), run.child()),
            (format!("start {} spawn -", again.id()), parent.id(), again.child()),
            (format!("end {} spawn refusal ", again.id()), parent.id(), again.child()),
        ];
        assert_eq!(*news.lock().unwrap(), want);
        assert_eq!(parent.session().len(), before, "the parent's log is not the run's to write");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-22, D-25
#[tokio::test]
async fn a_finished_child_stays_until_its_run_is_disposed() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let run = world.spawn(&parent, "say done").await;
        run.result().await;
        let child = world.child(&run);
        assert_eq!(said(&tell(&child, "say more").await), "more", "it is there to talk to");
        assert_eq!(world.live(), [parent.id(), child.id()]);
        assert_eq!(run.result().await.text(), "done", "which changes nothing of the result");
        run.dispose().await.unwrap();
        assert_eq!(world.live(), [parent.id()]);
        assert!(child.followup("say nothing").is_err());
        let (parent, child) = (parent.id(), child.id());
        world.close(&[parent, child]).await;
    })
    .await;
}

// D-25
#[tokio::test]
async fn disposing_waits_until_the_child_is_quiet_gone_and_let_go_of() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        let run = world.spawn(&parent, r#"call gate {"name":"never"}; write ../never x"#).await;
        gate.arrived("never").await;
        let child = world.child(&run);
        let before = world.news.all().len();
        for disposed in join_all((0..8).map(|_| run.dispose())).await {
            disposed.unwrap();
            assert!(world.news.has_ended(run.id()) && world.agents.get(child.id()).is_none());
            assert!(!world.names().contains(&format!("{}.lock", child.id())), "somebody else may have its log");
        }
        run.dispose().await.unwrap();
        assert_eq!(run.result().await.reason, StopReason::Aborted);
        let log = world.log(child.id());
        assert_eq!(log.latest::<TurnEnd>().unwrap().reason, TurnReason::Aborted { cause: None });
        assert_eq!(log.events().last().unwrap().tag(), "turn/end", "and its turn is closed on the disk");
        let news = &world.news.all()[before..];
        assert_eq!(news.iter().filter(|told| matches!(told, Told::Ended { .. })).count(), 1);
        assert_eq!(news.iter().filter(|told| matches!(told, Told::Gone(_))).count(), 1);
        assert!(parent.is_idle(), "the parent is none the worse");
        assert_eq!(said(&tell(&parent, "say still here").await), "still here");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-25
#[tokio::test]
async fn a_dropped_run_begins_to_go() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        for script in ["hang", "say done"] {
            let run = world.spawn(&parent, script).await;
            let (id, child) = (run.id(), run.child().unwrap());
            if script == "say done" {
                run.result().await;
            }
            drop(run);
            world.news.ended(id).await;
            world.news.until(|all| all.contains(&Told::Gone(child))).await;
        }
        world.news.assert_paired();
        assert_eq!(world.live(), [parent.id()]);
        world.app.close().await.unwrap();
    })
    .await;
}

/// Holds the set-up of children until it is let go on.
struct Held {
    begun: tokio::sync::Notify,
    go: Semaphore,
}

#[async_trait]
impl AgentSetup for Held {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        if agent.session().header().lineage().is_some() {
            self.begun.notify_one();
            self.go.acquire().await?.forget();
        }
        Ok(())
    }
}

// D-25
#[tokio::test]
async fn one_token_cancels_before_and_after_the_child_is_seen() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let held = Arc::new(Held { begun: tokio::sync::Notify::new(), go: Semaphore::new(0) });
        let setup: Arc<dyn AgentSetup> = held.clone();
        world.app.register("held", setup).unwrap();
        let (before, request) = (world.news.all(), Request::new("hang"));
        let cancelled = request.cancelled.clone();
        let starting = world.subagents.start(&parent, "spawn", request);
        held.begun.notified().await;
        cancelled.cancel();
        assert!(matches!(starting.await, Err(StartError::Cancelled)));
        assert_eq!((world.news.all(), world.live()), (before, vec![parent.id()]));

        let request = Request::new("hang");
        let cancelled = request.cancelled.clone();
        held.go.add_permits(1);
        let run = world.subagents.start(&parent, "spawn", request).await.unwrap();
        cancelled.cancel();
        assert_eq!(run.result().await.reason, StopReason::Aborted);
        run.dispose().await.unwrap();
        assert_eq!(world.live(), [parent.id()]);
        world.app.close().await.unwrap();
    })
    .await;
}

/// Disposes the run that it is called in.
struct Disposes {
    schema: ToolSchema,
    run: SetOnce<Arc<Run>>,
}

#[async_trait]
impl Tool for Disposes {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    async fn call(&self, _: &Call) -> ToolOutput {
        match self.run.wait().await.dispose().await {
            Err(CloseError::FromWithin(scope)) => ToolOutput::text(format!("`{scope}` is where I am")),
            other => ToolOutput::text(format!("{other:?}")),
        }
    }
}

// D-25
#[tokio::test]
async fn a_child_cannot_wait_for_its_own_end() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let tool = Arc::new(Disposes { schema: schema("dispose"), run: SetOnce::new() });
        world.app.register::<dyn Tool>("dispose", tool.clone()).unwrap();
        let run = Arc::new(world.spawn(&parent, "call dispose {}; say done").await);
        assert!(tool.run.set(run.clone()).is_ok());
        assert_eq!(run.result().await.text(), "done", "and goes on");
        run.dispose().await.unwrap();
        assert_eq!(answers(&world.log(run.child().unwrap())), ["`run` is where I am"]);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-22
#[tokio::test]
async fn what_fails_after_the_child_was_seen_is_its_result() {
    within(async {
        let full = Arc::new(AtomicBool::new(false));
        let is_full = full.clone();
        let breaks =
            move |note: &Note| is_full.load(Ordering::SeqCst) && matches!(note, Note::Flush { child: true, .. });
        let tape = Tape::new(0, breaks);
        let store: Arc<dyn SessionStore> = Arc::new(tape.clone());
        let without = |plugins: Plugins| plugins.without("session-jsonl").unwrap();
        let world = World::with(Default::default(), without, |app| app.provide(store).unwrap()).await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        let run = world.spawn(&parent, r#"call gate {"name":"1"}; say done"#).await;
        gate.arrived("1").await;
        full.store(true, Ordering::SeqCst);
        gate.open("1");
        let result = run.result().await;
        assert_eq!(result.reason, StopReason::Error);
        assert_eq!(result.message.as_deref(), Some("the session's log could not be written: the disk said no"));
        full.store(false, Ordering::SeqCst);
        run.dispose().await.unwrap();
        world.news.assert_paired();
        world.app.close().await.unwrap();
    })
    .await;
}

// D-25, D-22
#[tokio::test]
async fn when_the_parent_goes_its_children_go_first() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let run = world.spawn(&parent, "spawn deeper { hang }").await;
        world.news.until(|all| all.iter().filter(|told| matches!(told, Told::Started { .. })).count() == 2).await;
        let children = world.news.children();
        parent.dispose().await.unwrap();
        assert_eq!((run.result().await.reason, world.live()), (StopReason::Aborted, vec![]));
        world.news.assert_paired();
        let kept: Vec<_> = [parent.id()].into_iter().chain(children).collect();
        world.close(&kept).await;
    })
    .await;
}
