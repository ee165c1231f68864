//! A turn that is cancelled: who may still finish, who is dropped, who never starts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep};
use tools::*;

use crate::support::{Trace, app_with, call_to, failed, fake, in_time};

/// Notes that it was dropped.
struct OnDrop(Trace);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_notice_is_dropped_after_two_seconds() {
    let trace = Trace::default();
    let deaf = {
        let trace = trace.clone();
        fake("deaf", Concurrency::Alone, move |_| {
            let dropped = OnDrop(trace.clone());
            async move {
                let _dropped = dropped;
                std::future::pending().await
            }
        })
    };
    let app = app_with([deaf]);
    let call = call_to(&app, "deaf", "{}");
    let cancelled = call.cancelled.clone();
    let began = Instant::now();
    app.spawn("person", context::Stop::Join, async move {
        sleep(Duration::from_secs(7)).await;
        cancelled.cancel();
    })
    .unwrap();
    let output = in_time(Runner::new(app.realm()).run(call)).await;
    assert_eq!(failed(&output), (code::CANCELLED, "`deaf` was cancelled".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 9, "two seconds after the cancel");
    assert_eq!(trace.take(), ["dropped"]);
    app.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_notices_has_its_say() {
    let tidy = fake("tidy", Concurrency::Alone, |call: Call| async move {
        call.cancelled.cancelled().await;
        sleep(Duration::from_millis(1_900)).await;
        ToolOutput::error(code::FAILED, "stopped half way, tidied up")
    });
    let app = app_with([tidy]);
    let call = call_to(&app, "tidy", "{}");
    let cancelled = call.cancelled.clone();
    app.spawn("person", context::Stop::Join, async move { cancelled.cancel() }).unwrap();
    let output = in_time(Runner::new(app.realm()).run(call)).await;
    assert_eq!(failed(&output), (code::FAILED, "stopped half way, tidied up".to_owned()));
    app.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_closes_cancels_the_calls_in_it() {
    let deaf = fake("deaf", Concurrency::Alone, async |_| std::future::pending().await);
    let app = app_with([deaf]);
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    let call = call_to(&agent, "deaf", "{}");
    let mut runner = Runner::new(app.realm());
    let mut running = std::pin::pin!(in_time(runner.run(call)));
    assert!((&mut running).now_or_never().is_none());
    agent.close().await.unwrap();
    assert_eq!(failed(&running.await).0, code::CANCELLED);
    app.close().await.unwrap();
}

/// Two tools: one cancels the turn that it runs in, the other notes that it ran.
fn app(trace: &Trace, concurrency: Concurrency) -> context::Scope {
    let trace = trace.clone();
    let stops = fake("stops", concurrency, |call: Call| async move {
        call.cancelled.cancel();
        ToolOutput::text("stopped")
    });
    let works = fake("works", concurrency, move |call: Call| {
        trace.note(&*call.call_id);
        async { ToolOutput::text("worked") }
    });
    app_with([stops, works])
}

/// Nothing begins in a turn that is over: neither what waits for its neighbours nor what waits for a free place.
#[tokio::test(start_paused = true)]
async fn a_call_that_has_not_begun_does_not() {
    for concurrency in [Concurrency::Alone, Concurrency::Shared] {
        let trace = Trace::default();
        let app = app(&trace, concurrency);
        let first = call_to(&app, "stops", "{}");
        let mut calls = vec![first.clone()];
        calls.resize_with(PARALLEL_LIMIT + 2, || Call { name: "works".into(), ..first.clone() });
        let mut answered = Vec::new();
        let mut runner = Runner::new(app.realm());
        in_time(runner.run_all(calls, |_, output| answered.push(output))).await;
        assert_eq!(answered.len(), PARALLEL_LIMIT + 2, "every call has an answer");
        assert_eq!(answered[0].to_text(), "stopped");
        for output in &answered[1..] {
            assert_eq!(failed(output), (code::CANCELLED, "`works` was cancelled before it ran".to_owned()));
        }
        assert_eq!(trace.take(), [""; 0], "{concurrency:?}");
        app.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_run_when_the_turn_is_cancelled_share_one_grace() {
    let deaf = fake("deaf", Concurrency::Shared, async |_| std::future::pending().await);
    let app = app_with([deaf]);
    let first = call_to(&app, "deaf", "{}");
    let calls = vec![first.clone(); 3 * PARALLEL_LIMIT];
    let (began, answers) = (Instant::now(), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    app.spawn("person", context::Stop::Join, async move { first.cancelled.cancel() }).unwrap();
    let mut runner = Runner::new(app.realm());
    let running = runner.run_all(calls, |_, output| {
        assert_eq!(failed(&output).0, code::CANCELLED);
        answers.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    });
    in_time(running).await;
    assert_eq!(answers.load(std::sync::atomic::Ordering::SeqCst), 3 * PARALLEL_LIMIT);
    assert_eq!(began.elapsed().as_secs(), 2);
    app.close().await.unwrap();
}
