use std::future::pending;
use std::sync::{Arc, Mutex};

use context::{Closing, Ctx, Scope, Stop};
use shuttle::future::spawn;

use crate::{Trace, check, pause};

/// When the thing notes that it is gone.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    InItsTurn,
    /// It watches the cancellation, or ends by itself.
    InItsTurnOrBefore,
}

const THINGS: usize = 8;

fn register(ctx: &Ctx, thing: usize, trace: &Trace) -> Result<Ends, Closing> {
    let noted = trace.clone();
    match thing {
        0 | 4 | 7 => ctx.own(trace.guard(thing)).map(|()| Ends::InItsTurn),
        1 => {
            let gone = trace.on_drop(thing);
            let task = async move {
                let _gone = gone;
                pending::<()>().await;
            };
            ctx.spawn("abort", Stop::Abort, task).map(|()| Ends::InItsTurn)
        }
        2 => {
            let cancelled = ctx.cancelled().clone();
            let task = async move {
                cancelled.cancelled().await;
                pause().await;
                pause().await;
                noted.note(thing);
            };
            ctx.spawn("join", Stop::Join, task).map(|()| Ends::InItsTurnOrBefore)
        }
        3 => ctx
            .on_close("hook", async move || {
                pause().await;
                noted.note(thing);
                Ok(())
            })
            .map(|()| Ends::InItsTurn),
        5 => {
            let child = ctx.child("child")?.leave();
            // The child may be refused things before its owner is; then there is nothing to note.
            child.own(trace.guard(thing)).map(|()| Ends::InItsTurn)
        }
        _ => ctx.spawn_blocking("work", move || noted.note(thing)).map(|_| Ends::InItsTurnOrBefore),
    }
}

#[test]
fn withdrawal_goes_newest_first_and_waits_for_each() {
    check(|| async {
        let (app, trace) = (Scope::root("app"), Trace::default());
        let (ctx, noted) = (Ctx::clone(&app), trace.clone());
        let registering = spawn(async move {
            let register = |thing| Some((thing, register(&ctx, thing, &noted).ok()?));
            (0..THINGS).filter_map(register).collect::<Vec<_>>()
        });
        pause().await;
        app.close().await.unwrap();
        let registered = registering.await.unwrap();
        let gone = trace.list();
        let when = |thing| gone.iter().position(|other| *other == thing).expect("it is gone");
        for (n, (older, ends)) in registered.iter().enumerate() {
            for (newer, _) in &registered[n + 1..] {
                let in_order = *ends == Ends::InItsTurnOrBefore || when(*newer) < when(*older);
                assert!(in_order, "{newer} is newer than {older}: {gone:?}");
            }
        }
    });
}

/// Two who register take turns in the list as the locks have it, and each of them sees the order reversed.
#[test]
fn several_that_register_are_withdrawn_newest_first() {
    check(|| async {
        let (app, trace) = (Scope::root("app"), Trace::default());
        let accepted = Arc::new(Mutex::new(0));
        let registering = [0, 10, 20].map(|first| {
            let (ctx, trace, accepted) = (Ctx::clone(&app), trace.clone(), accepted.clone());
            spawn(async move {
                for thing in first..first + 4 {
                    if ctx.own(trace.guard(thing)).is_ok() {
                        *accepted.lock().unwrap() += 1;
                    } else {
                        // Refused, and so noted at once: not a withdrawal.
                        break;
                    }
                }
            })
        });
        for registrar in registering {
            registrar.await.unwrap();
        }
        app.close().await.unwrap();
        let gone = trace.list();
        assert_eq!((gone.len(), *accepted.lock().unwrap()), (12, 12));
        for first in [0, 10, 20] {
            let own: Vec<_> = gone.iter().copied().filter(|thing| (first..first + 4).contains(thing)).collect();
            assert_eq!(own, (first..first + 4).rev().collect::<Vec<_>>());
        }
    });
}
