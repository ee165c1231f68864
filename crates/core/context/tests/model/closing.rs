use std::future::pending;
use std::sync::Arc;

use context::{Ctx, Scope, Stop};
use futures_util::FutureExt as _;
use shuttle::future::spawn;

use crate::{Trace, check, failures, pause};

#[test]
fn every_closer_gets_the_same_answer_and_nothing_is_closed_twice() {
    check(|| async {
        let (app, trace) = (Arc::new(Scope::root("app")), Trace::default());
        let noted = trace.clone();
        app.own(trace.guard(0)).unwrap();
        app.on_close("hook", async move || {
            pause().await;
            noted.note(1);
            Err("no".into())
        })
        .unwrap();
        let child = app.child("child").unwrap();
        child.spawn_fallible("task", Stop::Join, async { Err("nor this".into()) }).unwrap();
        child.leave();
        let closers = [0, 1, 2].map(|way| {
            let app = app.clone();
            spawn(async move {
                match way {
                    // Polled once and dropped: the closing goes on.
                    0 => drop(app.close().now_or_never()),
                    1 => app.start_closing(),
                    _ => {}
                }
                failures(app.close().await)
            })
        });
        let watching = spawn({
            let ctx = Ctx::clone(&app);
            async move { ctx.closed().await.iter().map(ToString::to_string).collect::<Vec<_>>() }
        });
        let told = ["child/task: nor this", "app/hook: no"];
        for closer in closers {
            assert_eq!(closer.await.unwrap(), told);
        }
        assert_eq!(watching.await.unwrap(), told);
        assert_eq!(failures(app.close().await), told, "also who comes late");
        assert_eq!(trace.list(), [1, 0]);
    });
}

#[test]
fn a_scope_that_is_dropped_is_cancelled_at_once_and_closed_soon() {
    check(|| async {
        let (app, trace) = (Scope::root("app"), Trace::default());
        let child = app.child("child").unwrap();
        let (below, ctx) = (child.child("below").unwrap().leave(), Ctx::clone(&child));
        let gone = trace.on_drop(0);
        below
            .spawn("abort", Stop::Abort, async move {
                let _gone = gone;
                pending::<()>().await;
            })
            .unwrap();
        let (cancelled, noted) = (below.cancelled().clone(), trace.clone());
        ctx.spawn("join", Stop::Join, async move {
            cancelled.cancelled().await;
            noted.note(1);
        })
        .unwrap();
        let dropping = spawn(async move {
            let seen = below.cancelled().clone();
            drop(child);
            assert!(seen.is_cancelled(), "the whole tree, before the drop returns");
        });
        let registering = spawn({
            let (ctx, trace) = (ctx.clone(), trace.clone());
            async move {
                let guard = trace.guard(2);
                let _ = ctx.own(guard);
            }
        });
        assert!(ctx.closed().await.is_empty());
        registering.await.unwrap();
        dropping.await.unwrap();
        let mut gone = trace.list();
        gone.sort_unstable();
        assert_eq!(gone, [0, 1, 2]);
        assert!(!app.is_closing());
        app.close().await.unwrap();
    });
}

/// Children that end by themselves while their owner begins to close are neither forgotten nor reported twice.
#[test]
fn what_a_child_failed_at_is_told_to_exactly_those_who_wait_for_it() {
    check(|| async {
        let app = Scope::root("app");
        let [one, two, three, four] = ["closed", "left", "closed", "left"].map(|name| {
            let child = app.child(name).unwrap();
            child.on_close("hook", async || Err("no".into())).unwrap();
            child
        });
        drop((two.leave(), four.leave()));
        let closing = [one, three].map(|child| spawn(async move { failures(child.close().await) }));
        pause().await;
        let of_app = failures(app.close().await);
        for child in closing {
            assert_eq!(child.await.unwrap(), ["closed/hook: no"], "its closer is always told");
        }
        let (left, closed): (Vec<_>, Vec<_>) = of_app.iter().partition(|told| *told == "left/hook: no");
        assert_eq!(left.len(), 2, "{of_app:?}");
        assert!(closed.len() <= 2 && closed.iter().all(|told| *told == "closed/hook: no"), "{of_app:?}");
    });
}

/// The task may end, and be asked to end, before the scope has its handle.
#[test]
fn a_task_is_joined_however_fast_it_ends() {
    check(|| async {
        let (app, trace) = (Scope::root("app"), Trace::default());
        let spawning = spawn({
            let (ctx, trace) = (Ctx::clone(&app), trace.clone());
            async move {
                let mut spawned = Vec::new();
                for (n, stop) in [Stop::Abort, Stop::Join, Stop::Abort].into_iter().enumerate() {
                    let (gone, began) = (trace.on_drop(n), trace.clone());
                    let task = async move {
                        let _gone = gone;
                        began.note(10 + n);
                        pause().await;
                        began.note(20 + n);
                    };
                    if ctx.spawn("task", stop, task).is_ok() {
                        spawned.push(n);
                    }
                }
                spawned
            }
        });
        app.close().await.unwrap();
        let when_closed = trace.list();
        let spawned = spawning.await.unwrap();
        let in_the_end = trace.list();
        for n in spawned {
            assert!(when_closed.contains(&n), "{n} was not joined: {when_closed:?}, then {in_the_end:?}");
            let ran = when_closed.iter().filter(|noted| [10 + n, 20 + n].contains(noted)).count();
            assert!(n != 1 || ran == 2, "one that ends by itself is not cut off");
        }
        for began in 10..13 {
            assert_eq!(when_closed.contains(&began), in_the_end.contains(&began), "nothing runs in a closed scope");
        }
    });
}
