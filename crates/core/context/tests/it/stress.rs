use std::future::pending;
use std::sync::Arc;

use context::{Closing, Ctx, Registration, Scope, Stop};
use tokio::sync::Notify;

use crate::{Count, in_time};

const ROUNDS: usize = 200;
const DRIVERS: usize = 4;
/// Things that a driver makes before it lets the closing begin.
const BEFORE: usize = 8;

/// Makes one thing that holds on to a `live` one for as long as it exists.
async fn make(ctx: &Ctx, kind: usize, live: &Count) -> Result<(), Closing> {
    let one = live.one();
    match kind % 8 {
        0 => ctx.spawn("abort", Stop::Abort, async move {
            let _one = one;
            pending::<()>().await;
        }),
        1 => {
            let cancelled = ctx.cancelled().clone();
            ctx.spawn("join", Stop::Join, async move {
                let _one = one;
                cancelled.cancelled().await;
            })
        }
        2 => ctx.spawn("short", Stop::Join, async move { drop(one) }),
        3 => ctx.own(Registration::new({
            let one = std::sync::Mutex::new(Some(one));
            move || drop(one.lock().unwrap().take())
        })),
        4 => ctx.on_close("hook", async move || {
            drop(one);
            Ok(())
        }),
        5 => ctx.spawn_blocking("work", move || drop(one)).map(drop),
        6 => {
            let child = ctx.child_in("dropped", ctx.realm().nested())?;
            Box::pin(make(&child, 0, live)).await.or(Ok(()))
        }
        _ => {
            let child = ctx.child("closed")?;
            let made = Box::pin(make(&child, 1, live)).await;
            child.close().await.expect("nothing in it fails");
            made.or(Ok(()))
        }
    }
}

/// Makes things until the scope takes no more.
async fn drive(ctx: Ctx, first: usize, live: Count, warm: Arc<Notify>) {
    for n in 0.. {
        if n == BEFORE {
            warm.notify_one();
        }
        let child = match ctx.child("left") {
            Ok(child) => child.leave(),
            Err(Closing) => break,
        };
        if make(&ctx, first + n, &live).await.is_err() {
            break;
        }
        // A child may be refused before its owner is: siblings begin to close before their turn.
        let _ = make(&child, first + n + 1, &live).await;
        tokio::task::yield_now().await;
    }
    warm.notify_one();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_left_however_a_closing_meets_those_who_register() {
    for round in 0..ROUNDS {
        let live = Count::default();
        let app = Scope::root("app");
        let drivers = Scope::root("drivers");
        let warm = Arc::new(Notify::new());
        for driver in 0..DRIVERS {
            let driving = drive((*app).clone(), round + driver, live.clone(), warm.clone());
            drivers.spawn("driver", Stop::Join, driving).unwrap();
        }
        in_time(warm.notified()).await;
        in_time(app.close()).await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        in_time(drivers.close()).await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(live.now(), 0, "round {round}");
    }
}
