//! A start that fails leaves nothing, wherever it fails.

use std::sync::Arc;

use agent::{AgentRef, AgentSetup, CreateError};
use async_trait::async_trait;
use context::{BoxError, Plugins};
use sandbox::Mode;
use session_store::SessionStore;
use subagent::{Request, StartError, StopReason};

use crate::doubles::{Note, Tape};
use crate::world::*;

/// How the set-up of children fails.
#[derive(Clone, Copy, Debug)]
enum Fails {
    WithAnError,
    WithAPanic,
    /// After the child's log has reached the disk.
    Late,
    LateWithAPanic,
}

#[async_trait]
impl AgentSetup for Fails {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        if agent.session().header().lineage().is_none() {
            return Ok(());
        }
        match self {
            Self::WithAnError => Err("not today".into()),
            Self::WithAPanic => panic!("on purpose"),
            Self::Late => {
                agent.session().flush().await?;
                Err("not today".into())
            }
            Self::LateWithAPanic => {
                agent.session().flush().await?;
                panic!("on purpose")
            }
        }
    }
}

/// An app whose sessions are kept on a tape.
async fn taped(tape: &Tape) -> World {
    let store: Arc<dyn SessionStore> = Arc::new(tape.clone());
    let without = |plugins: Plugins| plugins.without("session-jsonl").unwrap();
    World::with(Default::default(), without, |app| app.provide(store).unwrap()).await
}

// D-11, D-22
#[tokio::test]
async fn a_child_whose_setup_fails_never_was() {
    within(async {
        for fails in [Fails::WithAnError, Fails::WithAPanic, Fails::Late, Fails::LateWithAPanic] {
            let world = World::new().await;
            let parent = world.parent().await;
            switch(&parent, Mode::ReadOnly);
            let setup: Arc<dyn AgentSetup> = Arc::new(fails);
            let registered = world.app.realm().register("failing", setup).unwrap();
            let (before, files) = (world.news.all(), world.names());
            let error = world.subagents.start(&parent, "spawn", Request::new("say done")).await.unwrap_err();
            let said = match &error {
                StartError::Create(CreateError::Setup(why)) => format!("setup: {why}"),
                StartError::Create(CreateError::Panicked) => "panic".to_owned(),
                other => panic!("{other}"),
            };
            assert_eq!(
                said,
                if matches!(fails, Fails::WithAPanic | Fails::LateWithAPanic) { "panic" } else { "setup: not today" }
            );
            assert_eq!(world.news.all(), before, "{fails:?}");
            let flushed = [format!("{}.jsonl", parent.id()), format!("{}.lock", parent.id())];
            assert!(files.len() <= 2 && world.names() == flushed, "{:?}", world.names());
            drop(registered);
            let run = world.spawn(&parent, "say done").await;
            assert_eq!(run.result().await.text(), "done", "the parent is none the worse");
            let kept = [parent.id(), run.child().unwrap()];
            world.close(&kept).await;
        }
    })
    .await;
}

// D-11
#[tokio::test]
async fn a_child_that_cannot_be_kept_never_was() {
    within(async {
        type Breaks = fn(&Note) -> bool;
        let table: [(&str, Breaks, Breaks); 3] = [
            (
                "the parent's log could not be made durable: the session's log could not be written: the disk said no",
                |note| matches!(note, Note::Flush { child: false, .. }),
                |note| matches!(note, Note::Create(_)),
            ),
            (
                "the child could not be created: the session cannot be kept: tape:",
                |note| matches!(note, Note::Create(_)),
                |note| matches!(note, Note::Flush { child: true, .. }),
            ),
            (
                "the child could not be created: the session's log could not be written: the disk said no",
                |note| matches!(note, Note::Flush { child: true, .. }),
                |_| false,
            ),
        ];
        for (want, breaks, never) in table {
            let broken = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let is_broken = broken.clone();
            let tape = Tape::new(2, move |note| is_broken.load(std::sync::atomic::Ordering::SeqCst) && breaks(note));
            let world = taped(&tape).await;
            let parent = world.parent().await;
            switch(&parent, Mode::ReadOnly);
            let (news, begun) = (world.news.all(), tape.notes().len());
            broken.store(true, std::sync::atomic::Ordering::SeqCst);
            let error = world.subagents.start(&parent, "spawn", Request::new("say done")).await.unwrap_err();
            assert!(error.to_string().starts_with(want), "{error}");
            assert_eq!((world.news.all(), world.live()), (news, vec![parent.id()]), "{want}");
            assert!(!tape.notes()[begun..].iter().any(never), "{:?}", tape.notes());
            assert_eq!(tape.held(), [parent.id()], "nothing of the child is leased");
            broken.store(false, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(world.spawn(&parent, "say done").await.result().await.text(), "done");
            world.app.close().await.unwrap();
            assert_eq!(tape.held(), []);
        }
    })
    .await;
}

/// How a start is given up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum GivenUp {
    ParentDisposed,
    ParentDropped,
    Cancelled,
    StartDropped,
}

const WAYS: [GivenUp; 4] = [GivenUp::ParentDisposed, GivenUp::ParentDropped, GivenUp::Cancelled, GivenUp::StartDropped];

/// Starts a child, polls `polls` times, gives up, and waits until all is quiet. Says whether there was a child, and
/// checks that it is one of two: never seen by anybody, or announced, ended and kept.
async fn give_up(world: &World, way: GivenUp, polls: usize) -> bool {
    let parent = world.parent().await;
    switch(&parent, Mode::ReadOnly);
    let (request, from) = (Request::new("hang"), world.news.all().len());
    let cancelled = request.cancelled.clone();
    let mut starting = Some(world.subagents.start(&parent, "spawn", request));
    for _ in 0..polls {
        tokio::task::yield_now().await;
    }
    match way {
        GivenUp::ParentDisposed => parent.dispose().await.unwrap(),
        GivenUp::ParentDropped => drop(parent),
        GivenUp::Cancelled => cancelled.cancel(),
        GivenUp::StartDropped => drop(starting.take()),
    }
    let started = match starting {
        Some(starting) => match starting.await {
            Ok(run) => {
                assert_eq!(run.result().await.reason, StopReason::Aborted);
                run.dispose().await.unwrap();
                Some(true)
            }
            Err(StartError::Cancelled) if way == GivenUp::Cancelled => Some(false),
            Err(StartError::ParentClosing) if way != GivenUp::Cancelled => Some(false),
            Err(error) => panic!("{way:?} after {polls}: {error}"),
        },
        None => None,
    };
    if started == Some(false) {
        let known = world.news.all();
        let is_known = |id: &str| known.iter().any(|told| matches!(told, Told::Published(of) if of.to_string() == id));
        // The lock of one whose creation was given up half way goes when the store's thread is done with it.
        let logs = world.names().into_iter().filter_map(|name| Some(name.split_once(".jsonl")?.0.to_owned()));
        let stray: Vec<_> = logs.filter(|id| !is_known(id)).collect();
        assert_eq!(stray, [""; 0], "{way:?} after {polls}: the log of a child that never was");
    }
    while world.live().len() > usize::from(matches!(way, GivenUp::Cancelled | GivenUp::StartDropped)) {
        tokio::task::yield_now().await;
    }
    let news = world.news.all()[from..].to_vec();
    let published = news.iter().any(|told| matches!(told, Told::Published(_)));
    let announced = news.iter().any(|told| matches!(told, Told::Started { .. }));
    assert_eq!(published, announced, "{way:?} after {polls}: {news:?}");
    if let Some(started) = started {
        assert_eq!(started, announced, "{way:?} after {polls}: {news:?}");
    }
    announced
}

// D-11, D-22, D-25
#[tokio::test]
async fn a_start_given_up_at_any_poll_leaves_nothing_or_a_child_that_was_announced() {
    within(async {
        for way in WAYS {
            let tape = Tape::new(2, |_| false);
            let world = taped(&tape).await;
            let (mut with, mut without, mut polls) = (0, 0, 0);
            // Part of a start is work of other threads, which no number of polls is enough for.
            while polls < 60 || with == 0 {
                match give_up(&world, way, polls).await {
                    true => with += 1,
                    false => without += 1,
                }
                polls += 1 + polls / 60 * polls;
            }
            assert!(without > 0, "{way:?}: {with} children, no start without one");
            world.app.close().await.unwrap();
            world.news.assert_paired();
            assert_eq!(tape.held(), [], "{way:?}");
        }
    })
    .await;
}

// D-11
#[tokio::test]
async fn on_a_disk_there_is_a_file_for_every_child_that_was_announced_and_for_no_other() {
    within(async {
        for way in WAYS {
            let world = World::new().await;
            for polls in 0..40 {
                give_up(&world, way, polls).await;
            }
            world.app.close().await.unwrap();
            world.news.assert_paired();
            let children = world.news.children();
            let mut want: Vec<_> = children.iter().map(|id| format!("{id}.jsonl")).collect();
            let parents = world.news.all().into_iter().filter_map(|told| match told {
                Told::Published(id) if !children.contains(&id) => Some(format!("{id}.jsonl")),
                _ => None,
            });
            want.extend(parents);
            want.sort();
            assert_eq!(world.names(), want, "{way:?}");
            for child in children {
                assert_eq!(tags(&world.log(child))[..3], ["sandbox/mode", "approval/policy", "subagent/descriptor"]);
            }
        }
    })
    .await;
}

// D-11
#[tokio::test]
async fn a_parent_that_is_closed_already_delegates_nothing() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        parent.dispose().await.unwrap();
        let before = (world.news.all(), world.names());
        let error = world.subagents.start(&parent, "spawn", Request::new("say done")).await.unwrap_err();
        assert!(matches!(error, StartError::ParentClosing), "{error}");
        assert_eq!((world.news.all(), world.names()), before);
        world.app.close().await.unwrap();
    })
    .await;
}
