use std::future::pending;
use std::sync::{Arc, Mutex};

use context::{Closing, Ctx, Scope, Stop};
use futures_util::FutureExt as _;
use shuttle::future::spawn;

use crate::{OnDrop, Trace, check, pause};

const KINDS: usize = 9;
const REGISTRARS: usize = 2;

/// Registers one thing, which lives in what is registered and in nothing else.
fn register(ctx: &Ctx, kind: usize, thing: OnDrop) -> Result<(), Closing> {
    match kind {
        0 => ctx.own(context::Registration::new({
            let thing = Mutex::new(Some(thing));
            move || drop(thing.lock().unwrap().take())
        })),
        1 => ctx.spawn("abort", Stop::Abort, async move {
            let _thing = thing;
            pending::<()>().await;
        }),
        2 => {
            let cancelled = ctx.cancelled().clone();
            ctx.spawn("join", Stop::Join, async move {
                cancelled.cancelled().await;
                pause().await;
                drop(thing);
            })
        }
        3 => ctx.spawn("short", Stop::Join, async move {
            pause().await;
            drop(thing);
        }),
        4 => ctx.on_close("hook", async move || {
            pause().await;
            drop(thing);
            Ok(())
        }),
        5 => ctx
            .spawn_blocking("work", move || {
                shuttle::thread::yield_now();
                drop(thing);
            })
            .map(drop),
        // Dropped at once: its closing goes on in the background.
        6 => register(&*ctx.child("dropped")?, 1, thing).or(Ok(())),
        7 => register(&ctx.child("left")?.leave(), 2, thing).or(Ok(())),
        _ => register(&ctx.child_in("outer", ctx.realm().nested())?.leave(), 6, thing).or(Ok(())),
    }
}

/// Whatever a scope took on is gone when it is closed; whatever it refuses is an error, and is gone when that is told.
#[test]
fn what_is_registered_while_a_scope_closes_is_refused_or_gone() {
    check(|| async {
        let (app, gone) = (Scope::root("app"), Trace::default());
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let registrars: Vec<_> = (0..REGISTRARS)
            .map(|registrar| {
                let (ctx, gone, accepted) = (Ctx::clone(&app), gone.clone(), accepted.clone());
                spawn(async move {
                    for n in 0..KINDS {
                        let kind = (n + registrar * KINDS / REGISTRARS) % KINDS;
                        let thing = registrar * KINDS + kind;
                        match register(&ctx, kind, gone.on_drop(thing)) {
                            Ok(()) => accepted.lock().unwrap().push(thing),
                            Err(Closing) => {
                                assert!(gone.list().contains(&thing), "what is refused is not kept");
                                assert!(ctx.is_closing());
                            }
                        }
                    }
                })
            })
            .collect();
        let closing = spawn({
            let (gone, accepted) = (gone.clone(), accepted.clone());
            async move {
                app.close().await.unwrap();
                let gone = gone.list();
                for thing in accepted.lock().unwrap().iter() {
                    assert!(gone.contains(thing), "{thing} outlived its scope");
                }
            }
        });
        for registrar in registrars {
            registrar.await.unwrap();
        }
        closing.await.unwrap();
        let mut gone = gone.list();
        gone.sort_unstable();
        assert_eq!(gone, (0..KINDS * REGISTRARS).collect::<Vec<_>>(), "everything, once");
    });
}

/// A child that closes by itself while its owner does, too, and others are made next to it and in it.
#[test]
fn no_child_is_left_however_it_is_made_while_its_owner_closes() {
    check(|| async {
        let (app, gone) = (Scope::root("app"), Trace::default());
        let children = Arc::new(Mutex::new(Vec::new()));
        let makers = [0, 3].map(|first| {
            let (ctx, gone, children) = (Ctx::clone(&app), gone.clone(), children.clone());
            spawn(async move {
                for way in 0..3 {
                    let thing = gone.on_drop(first + way);
                    let Ok(child) = ctx.child("child") else { continue };
                    children.lock().unwrap().push(Ctx::clone(&child));
                    let grandchild = child.child("grandchild").map(Scope::leave);
                    let took = grandchild.is_ok_and(|grandchild| register(&grandchild, 1, thing).is_ok());
                    match way {
                        0 => drop(child),
                        1 => drop(child.leave()),
                        _ => {
                            child.close().await.unwrap();
                            assert!(!took || gone.list().contains(&(first + way)), "closed means that it is gone");
                        }
                    }
                }
            })
        });
        pause().await;
        app.close().await.unwrap();
        let made: Vec<Ctx> = children.lock().unwrap().clone();
        for child in made {
            let failed = child.closed().now_or_never().expect("its owner is closed, and so is it");
            assert!(failed.is_empty() && child.is_closing() && child.cancelled().is_cancelled());
            assert_eq!(child.child("late").err(), Some(Closing));
        }
        for maker in makers {
            maker.await.unwrap();
        }
        assert_eq!(gone.list().len(), 6);
    });
}
