//! Whatever the interleaving, nothing is left and nothing is told by halves.

use std::sync::Arc;
use std::time::Duration;

use context::{Scope, Stop};
use subagent::{Request, StartError};

use crate::world::*;

const ROUNDS: usize = 200;
const AT_ONCE: usize = 16;

/// One start among many, ended in one of many ways.
async fn one(world: Arc<World>, parent: agent::AgentRef, way: usize) {
    let script = if way.is_multiple_of(3) { "hang" } else { "say done" };
    let request = Request::new(script);
    let cancelled = request.cancelled.clone();
    let starting = world.subagents.start(&parent, "spawn", request);
    let micros = |n: usize| Duration::from_micros(50 * n as u64);
    let started = match way % 6 {
        0 => return drop(starting),
        1 => match tokio::time::timeout(micros(way), starting).await {
            Ok(started) => started,
            Err(_) => return,
        },
        2 => {
            cancelled.cancel();
            starting.await
        }
        _ => starting.await,
    };
    let run = match started {
        Ok(run) => run,
        Err(StartError::ParentClosing | StartError::Cancelled) => return,
        Err(error) => panic!("{error}"),
    };
    match way % 5 {
        0 => drop(run),
        1 => cancelled.cancel(),
        2 => drop(tokio::time::timeout(micros(way), run.dispose()).await),
        _ => {
            if script == "say done" {
                run.result().await;
            }
            run.dispose().await.unwrap();
            assert!(world.news.has_ended(run.id()) && world.agents.get(run.child().unwrap()).is_none());
        }
    }
}

// D-11, D-22, D-25
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_left_whatever_the_interleaving() {
    within(async {
        let world = Arc::new(World::new().await);
        let tests = Scope::root("tests");
        for round in 0..ROUNDS {
            let parent = world.parent().await;
            let crowd = tests.child("round").unwrap();
            for n in 0..AT_ONCE {
                let work = one(world.clone(), parent.handle().clone(), n * 7 + round);
                crowd.spawn("one", Stop::Join, work).unwrap();
            }
            match round % 3 {
                0 => parent.dispose().await.unwrap(),
                1 => {
                    tokio::task::yield_now().await;
                    drop(parent);
                }
                _ => {
                    crowd.close().await.unwrap();
                    parent.dispose().await.unwrap();
                }
            }
            crowd.close().await.unwrap();
        }
        tests.close().await.unwrap();
        let world = Arc::into_inner(world).expect("nobody else has it");
        world.app.close().await.unwrap();
        assert_eq!(world.live(), []);
        world.news.assert_paired();
        let news = world.news.all();
        let published = news.iter().filter(|told| matches!(told, Told::Published(_))).count();
        let gone = news.iter().filter(|told| matches!(told, Told::Gone(_))).count();
        assert_eq!(published, gone);
        let children = world.news.children();
        assert_eq!(published, ROUNDS + children.len(), "whoever was published was announced");
        assert!(children.len() > ROUNDS, "it was about something: {} children", children.len());
        let left = world.names();
        assert!(left.iter().all(|name| name.ends_with(".jsonl")), "{left:?}");
        let logs = left.iter().filter(|name| children.iter().any(|id| name.starts_with(&id.to_string()))).count();
        assert_eq!(logs, children.len(), "each left its log");
        assert!(left.len() <= ROUNDS + children.len(), "and nobody else did");
    })
    .await;
}
