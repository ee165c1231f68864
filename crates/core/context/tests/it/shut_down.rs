//! A runtime that has shut down drops what it is given, inside the call.

use std::future::pending;
use std::sync::{Arc, mpsc};

use context::{Ctx, Scope, Stop};
use tokio::runtime::Builder;

use crate::{DEADLINE, Trace};

/// Runs the test on a thread of its own, so that a deadlock is a failure.
fn on_a_thread(test: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match finished.recv_timeout(DEADLINE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it waits for itself"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().expect("the test passes"),
    }
}

fn scope_of_a_runtime_that_is_gone() -> Scope {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { Scope::root("app") })
}

#[test]
fn a_task_that_owns_a_scope_of_its_scope_is_dropped_with_it() {
    on_a_thread(|| {
        let (app, trace) = (scope_of_a_runtime_that_is_gone(), Trace::default());
        for what in ["task", "work"] {
            let child = app.child("child").unwrap();
            let (ctx, gone) = (Ctx::clone(&child), trace.on_drop(what));
            match what {
                "task" => app
                    .spawn(what, Stop::Join, async move {
                        let _owned = (child, gone);
                        pending().await
                    })
                    .unwrap(),
                _ => drop(app.spawn_blocking(what, move || drop((child, gone))).unwrap()),
            }
            assert!(ctx.is_closing());
            assert_eq!(trace.take(), [what]);
        }
    });
}

#[test]
fn a_task_that_owns_its_own_scope_is_dropped_with_it() {
    on_a_thread(|| {
        for what in ["task", "work"] {
            let app = Arc::new(scope_of_a_runtime_that_is_gone());
            let ctx = Ctx::clone(&app);
            match what {
                "task" => ctx.spawn(what, Stop::Join, async move { drop(app) }).unwrap(),
                _ => drop(ctx.spawn_blocking(what, move || drop(app)).unwrap()),
            }
            assert!(ctx.is_closing() && ctx.cancelled().is_cancelled());
            assert!(ctx.spawn(what, Stop::Join, pending()).is_err());
        }
    });
}
