//! The calls of one response: what overlaps, how many, and in which order they are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use context::{Ctx, Scope};
use futures_util::FutureExt as _;
use tokio::sync::{Barrier, Notify};
use tools::*;

use crate::support::{Trace, app_with, call_to, fake, in_time, says};

/// Runs calls, `tool#id` each, and notes which were answered.
async fn run_all(ctx: &Ctx, calls: &[&str], mut done: impl FnMut(&str)) -> Vec<String> {
    let calls = calls.iter().map(|id| {
        let mut call = call_to(ctx, id.split('#').next().unwrap(), "{}");
        call.call_id = (*id).into();
        call
    });
    let mut answered = Vec::new();
    let mut runner = Runner::new(ctx.realm());
    let running = runner.run_all(calls.collect(), |call, output| {
        done(&call.call_id);
        answered.push(format!("{}: {}", call.call_id, output.to_text()));
    });
    in_time(running).await;
    answered
}

/// A tool that notes its beginning and its end and gives others a chance between.
fn slow(name: &str, concurrency: Concurrency, trace: &Trace) -> Arc<dyn Tool> {
    let trace = trace.clone();
    fake(name, concurrency, move |call: Call| {
        let trace = trace.clone();
        async move {
            trace.note(format!("+{}", call.call_id));
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            trace.note(format!("-{}", call.call_id));
            ToolOutput::text("done")
        }
    })
}

#[tokio::test]
async fn a_tool_that_runs_alone_waits_for_those_before_it_and_holds_up_those_behind_it() {
    let trace = Trace::default();
    let app = app_with([slow("s", Concurrency::Shared, &trace), slow("a", Concurrency::Alone, &trace)]);
    let calls = ["s#1", "s#2", "a#3", "a#4", "s#5", "s#6"];
    let answered = run_all(&app, &calls, |_| ()).await;
    assert_eq!(answered, calls.map(|id| format!("{id}: done")));
    let mut noted = trace.take();
    // Neighbours that overlap may end in any order.
    noted[2..4].sort();
    noted[10..12].sort();
    let want = "+s#1 +s#2 -s#1 -s#2  +a#3 -a#3  +a#4 -a#4  +s#5 +s#6 -s#5 -s#6";
    assert_eq!(noted, want.split_whitespace().collect::<Vec<_>>());
    app.close().await.unwrap();
}

/// Too few at once and the barrier is never full; too many and the count says so.
#[tokio::test]
async fn exactly_the_limit_runs_at_once() {
    let (barrier, running, most) = (Arc::new(Barrier::new(PARALLEL_LIMIT)), Arc::default(), Arc::default());
    let meet = {
        let (running, most): (Arc<AtomicUsize>, Arc<AtomicUsize>) = (Arc::clone(&running), Arc::clone(&most));
        fake("meet", Concurrency::Shared, move |_| {
            let (barrier, running, most) = (barrier.clone(), running.clone(), most.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // All that may start have started before any goes on.
                for _ in 0..4 * PARALLEL_LIMIT {
                    tokio::task::yield_now().await;
                }
                barrier.wait().await;
                running.fetch_sub(1, Ordering::SeqCst);
                ToolOutput::text("met")
            }
        })
    };
    let app = app_with([meet]);
    let ids: Vec<String> = (0..3 * PARALLEL_LIMIT).map(|n| format!("meet#{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let answered = run_all(&app, &ids, |_| ()).await;
    assert!(answered.iter().zip(&ids).all(|(answer, id)| *answer == format!("{id}: met")), "{answered:?}");
    assert_eq!((most.load(Ordering::SeqCst), running.load(Ordering::SeqCst)), (PARALLEL_LIMIT, 0));
    app.close().await.unwrap();
}

/// Three shared tools: the second waits until somebody says so, the third for nothing.
fn first_second_third(go: &Arc<Notify>, trace: &Trace) -> Scope {
    let (go, trace) = (go.clone(), trace.clone());
    let waits = fake("waits", Concurrency::Shared, move |_| {
        let go = go.clone();
        async move {
            go.notified().await;
            ToolOutput::text("waited")
        }
    });
    let quick = fake("quick", Concurrency::Shared, move |call: Call| {
        trace.note(&*call.call_id);
        async { ToolOutput::text("quick") }
    });
    app_with([waits, quick])
}

#[tokio::test]
async fn a_result_is_told_as_soon_as_those_before_it_are_there() {
    let (go, trace) = (Arc::new(Notify::new()), Trace::default());
    let app = first_second_third(&go, &trace);
    // Only the answer of the first lets the second go on.
    let answered = run_all(&app, &["quick#1", "waits#2", "quick#3"], |id| {
        if id == "quick#1" {
            go.notify_one();
        }
    });
    assert_eq!(answered.await, ["quick#1: quick", "waits#2: waited", "quick#3: quick"]);
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_result_is_not_told_before_those_before_it() {
    let (go, trace) = (Arc::new(Notify::new()), Trace::default());
    let app = first_second_third(&go, &trace);
    let calls = ["waits#1", "quick#2"].map(|id| {
        let mut call = call_to(&app, id.split('#').next().unwrap(), "{}");
        call.call_id = id.into();
        call
    });
    let told = Trace::default();
    let mut runner = Runner::new(app.realm());
    let running = runner.run_all(calls.into(), |call, _| told.note(&*call.call_id));
    let mut running = std::pin::pin!(in_time(running));
    assert!((&mut running).now_or_never().is_none());
    assert_eq!(trace.take(), ["quick#2"], "the second has run");
    assert_eq!(told.take(), [""; 0], "and is not told");
    go.notify_one();
    running.await;
    assert_eq!(told.take(), ["waits#1", "quick#2"]);
    app.close().await.unwrap();
}

#[tokio::test]
async fn an_unknown_tool_among_others_is_answered_in_its_place() {
    let trace = Trace::default();
    let app = app_with([slow("a", Concurrency::Alone, &trace), says("b", "B")]);
    let answered = run_all(&app, &["a#1", "no#2", "b#3"], |_| ()).await;
    let unknown = "no#2: there is no tool named `no`; there are: a, b";
    assert_eq!(answered, ["a#1: done", unknown, "b#3: B"]);
    assert!(run_all(&app, &[], |_| ()).await.is_empty());
    app.close().await.unwrap();
}

#[tokio::test]
async fn one_that_panics_does_not_take_its_neighbours() {
    let trace = Trace::default();
    let bad = fake("bad", Concurrency::Shared, async |_| panic!("a bug"));
    let app = app_with([slow("s", Concurrency::Shared, &trace), bad]);
    let answered = run_all(&app, &["s#1", "bad#2", "s#3"], |_| ()).await;
    let panicked = "bad#2: `bad` failed: it panicked; this is a bug in the tool";
    assert_eq!(answered, ["s#1: done", panicked, "s#3: done"]);
    app.close().await.unwrap();
}

#[tokio::test]
async fn progress_is_heard_in_the_agents_realm_and_further_out() {
    let shows = fake("shows", Concurrency::Alone, |call: Call| async move {
        call.progress("half");
        call.progress("whole");
        ToolOutput::text("done")
    });
    let app = app_with([shows]);
    let [agent, other] = ["agent", "other"].map(|name| app.child_in(name, app.realm().nested()).unwrap());
    let trace = Trace::default();
    for (who, ctx) in [("app", &*app), ("agent", &*agent), ("other", &*other)] {
        let trace = trace.clone();
        let heard = move |progress: &ToolProgress| trace.note(format!("{who} {} {}", progress.call_id, progress.text));
        ctx.own(ctx.realm().on(heard)).unwrap();
    }
    let call = call_to(&agent, "shows", "{}");
    let session = call.session.id();
    let ids = Trace::default();
    let seen = ids.clone();
    agent.own(agent.realm().on(move |progress: &ToolProgress| seen.note(progress.session.to_string()))).unwrap();
    in_time(Runner::new(agent.realm()).run(call)).await;
    assert_eq!(trace.take(), ["agent call half", "app call half", "agent call whole", "app call whole"]);
    assert_eq!(ids.take(), [session.to_string(), session.to_string()]);
    app.close().await.unwrap();
}
