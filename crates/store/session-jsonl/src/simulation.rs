//! Every call to the disk is made to fail, and the machine to stop before every one of them, one run each: what was
//! acknowledged is there, nothing is there by half, and what is there can be written on.

use std::sync::Arc;

use futures_util::FutureExt;
use session::{
    Contributor, Delegation, Seed, Session, SessionTitle, Sessions, Snapshot, Stamps, TurnEnd, TurnReason, TurnStart,
};
use session_store::{OpenError, ReadError, Repair, SessionStore};

use crate::JsonlStore;
use crate::disk::fake::{Failure, Fake, Left, Plan};

/// What became of one session, as its user knows it.
struct Tale {
    session: Session,
    /// How many events it was told are durable.
    kept: u64,
    /// Whether any flush came to its end.
    acknowledged: bool,
    /// How many events it had when its first flush began; `None` before that.
    first_batch: Option<u64>,
    discarded: bool,
}

/// Fails the test instead of hanging.
async fn in_time(test: impl Future<Output = ()>) {
    let limit = std::time::Duration::from_secs(600);
    tokio::time::timeout(limit, test).await.expect("a waiter was never answered");
}

struct Stamp;

impl Contributor for Stamp {
    fn contribute(&self, _: &Snapshot, stamps: &mut Stamps) {
        stamps.add(SessionTitle { title: "stamp one".into(), source: "prompt".into() });
        stamps.add(SessionTitle { title: "stamp two".into(), source: "prompt".into() });
    }
}

fn house() -> Arc<Sessions> {
    let house = Sessions::new();
    std::mem::forget(house.register_contributor("stamp", Arc::new(Stamp)));
    house
}

fn store_on(disk: &Fake) -> JsonlStore {
    JsonlStore::on("/fake".into(), Arc::new(disk.clone()))
}

fn lines(log: &Snapshot) -> Vec<String> {
    log.events().iter().map(|event| event.to_json()).collect()
}

fn turns(session: &Session, count: u32) {
    for turn in 0..count {
        session.append(TurnStart { turn }).expect("the session is open");
        session.append(TurnEnd { turn, reason: TurnReason::Completed }).expect("the session is open");
    }
}

impl Tale {
    async fn begin(store: &JsonlStore, session: Session) -> Option<Self> {
        store.create(&session).await.ok()?;
        Some(Self { session, kept: 0, acknowledged: false, first_batch: None, discarded: false })
    }

    async fn flush(&mut self) {
        let len = self.session.len();
        self.first_batch.get_or_insert(len);
        if self.session.flush().await.is_ok() {
            self.kept = len;
            self.acknowledged = true;
        }
    }

    fn may_be_gone(&self) -> bool {
        self.discarded || !self.acknowledged
    }

    async fn release(&mut self) -> bool {
        let len = self.session.len();
        let released = self.session.release().await.is_ok();
        if released {
            self.kept = len;
            self.acknowledged = true;
        }
        released
    }
}

/// Everything that a process does with a store, going on whatever fails.
async fn workload(store: &JsonlStore, sessions: &Arc<Sessions>) -> Vec<Tale> {
    let mut tales = Vec::new();
    if let Some(mut tale) = Tale::begin(store, sessions.create("/home/me/project")).await {
        turns(&tale.session, 3);
        tale.flush().await;
        turns(&tale.session, 2);
        tale.flush().await;
        let delegation = Delegation::capture(&tale.session).expect("no contributor panics");
        if let Some(mut child) = Tale::begin(store, Session::delegated(delegation, Seed::ClosedTurns)).await {
            child.flush().await;
            turns(&child.session, 1);
            child.flush().await;
            tales.push(child);
        }
        turns(&tale.session, 1);
        if tale.release().await
            && let Ok(opened) = store.open(sessions, tale.session.id()).await
        {
            tale.session = opened.session;
            turns(&tale.session, 2);
            tale.flush().await;
            turns(&tale.session, 1);
            tale.flush().await;
        }
        tales.push(tale);
    }
    if let Some(mut tale) = Tale::begin(store, sessions.create("/home/me/long")).await {
        tale.flush().await;
        // Enough for a hint.
        turns(&tale.session, 260);
        tale.flush().await;
        tales.push(tale);
    }
    if let Some(mut tale) = Tale::begin(store, sessions.create("/home/me/other")).await {
        turns(&tale.session, 1);
        tale.flush().await;
        tale.session.discard().await;
        tale.discarded = true;
        tale.kept = 0;
        tales.push(tale);
    }
    tales
}

/// What the next process finds on `disk`.
async fn check(disk: &Fake, sessions: &Arc<Sessions>, tales: &[Tale], run: &str) {
    let store = store_on(disk);
    for tale in tales {
        let (id, all) = (tale.session.id(), lines(&tale.session.snapshot()));
        let read = match store.read(&sessions.vocabulary(), id).await {
            Ok(read) => read,
            Err(ReadError::NotFound(_)) if tale.may_be_gone() => {
                assert!(matches!(store.open(sessions, id).await, Err(OpenError::NotFound(_))), "{run}");
                continue;
            }
            Err(error) => panic!("{run}: {error}"),
        };
        let found = lines(read.decoded.log());
        assert!(found.len() as u64 >= tale.kept, "{run}: {} of {} acknowledged events", found.len(), tale.kept);
        let first_batch = tale.first_batch.expect("nothing is written before the first flush");
        assert!(found.len() as u64 >= first_batch, "{run}: half of a first batch");
        assert_eq!(found, all[..found.len().min(all.len())], "{run}");

        let opened = store.open(sessions, id).await.unwrap_or_else(|error| panic!("{run}: {error}"));
        let torn = opened.repairs.iter().map(|repair| match repair {
            Repair::TornTail { bytes, .. } => *bytes,
            Repair::InterruptedTurn { .. } => 0,
        });
        assert_eq!(torn.sum::<u64>(), read.torn, "{run}");
        opened.session.flush().await.unwrap_or_else(|error| panic!("{run}: {error}"));
        let power_cut = disk.reboot(Left::Synced);
        for repair in &opened.repairs {
            if let Repair::TornTail { bytes, moved_to } = repair {
                let name = moved_to.strip_prefix("/fake/").expect("beside the log");
                let aside = power_cut.read(name).map(|aside| aside.len() as u64);
                assert_eq!(aside, Some(*bytes), "{run}: {moved_to}");
            }
        }
        let read = store_on(&power_cut)
            .read(&sessions.vocabulary(), id)
            .await
            .unwrap_or_else(|error| panic!("{run}: {error}"));
        assert_eq!(lines(read.decoded.log()), lines(&opened.session.snapshot()), "{run}: durable, as the flush said");

        turns(&opened.session, 1);
        opened.session.release().await.unwrap_or_else(|error| panic!("{run}: {error}"));
        let again = store.open(sessions, id).await.unwrap_or_else(|error| panic!("{run}: {error}"));
        assert_eq!(lines(&again.session.snapshot()), lines(&opened.session.snapshot()), "{run}");
    }
    let rows = store.list(&sessions.vocabulary()).await.unwrap_or_else(|error| panic!("{run}: {error}"));
    assert!(rows.iter().all(|row| row.found.is_ok()), "{run}: {rows:?}");
    store.close().await;
}

/// With files that have no name until they are whole; and with such that always have one, where that can make a
/// difference.
fn disks(plan: Plan) -> Vec<Fake> {
    let mut disks = vec![Fake::planned(plan)];
    if matches!(plan, Plan::Stop(_) | Plan::Once(_, Failure::Refused)) {
        disks.push(Fake::planned(plan).naming_all());
    }
    disks
}

async fn steps_of_a_good_run() -> usize {
    let (disk, sessions) = (Fake::default(), house());
    let store = store_on(&disk);
    let tales = workload(&store, &sessions).await;
    store.close().await;
    assert!(tales.iter().all(|tale| tale.kept == tale.session.len() || tale.discarded));
    assert_eq!(tales.len(), 4);
    check(&disk.reboot(Left::Synced), &sessions, &tales, "a good run").await;
    // How much is written ahead is a matter of timing.
    disk.steps() + 40
}

#[tokio::test]
async fn a_machine_that_stops_keeps_what_it_acknowledged() {
    in_time(async {
        for step in 0..steps_of_a_good_run().await {
            for left in [Left::Synced, Left::Half, Left::All] {
                for disk in disks(Plan::Stop(step)) {
                    let sessions = house();
                    let store = store_on(&disk);
                    let tales = workload(&store, &sessions).await;
                    store.close().await;
                    let run = format!("stopped before step {step}, {left:?}");
                    check(&disk.reboot(left), &sessions, &tales, &run).await;
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_that_fails_loses_nothing() {
    in_time(async {
        for step in 0..steps_of_a_good_run().await {
            for plan in [Failure::Refused, Failure::Full].map(|failure| Plan::Once(step, failure)) {
                survive(plan).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_disk_that_fails_for_a_while_loses_nothing() {
    in_time(async {
        for step in 0..steps_of_a_good_run().await {
            for plan in [Failure::Refused, Failure::Full].map(|failure| Plan::From(step, failure)) {
                survive(plan).await;
            }
        }
    })
    .await;
}

/// The disk fails as planned, then works again: the next flush makes everything durable.
async fn survive(plan: Plan) {
    for disk in disks(plan) {
        survive_on(disk, &format!("{plan:?}")).await;
    }
}

async fn survive_on(disk: Fake, run: &str) {
    let sessions = house();
    let store = store_on(&disk);
    let mut tales = workload(&store, &sessions).await;
    let before = disk.reboot(Left::Half);
    check(&before, &sessions, &tales, run).await;
    disk.heal();
    for tale in tales.iter_mut().filter(|tale| !tale.discarded) {
        tale.session.flush().await.unwrap_or_else(|error| panic!("{run}: {error}"));
        tale.kept = tale.session.len();
    }
    for left in [Left::Synced, Left::All] {
        check(&disk.reboot(left), &sessions, &tales, run).await;
    }
    store.close().await;
}

#[tokio::test]
async fn a_full_disk_is_named_as_such() {
    in_time(async {
        let (disk, sessions) = (Fake::default(), Sessions::new());
        let store = store_on(&disk);
        let session = sessions.create("/");
        store.create(&session).await.expect("nothing fails yet");
        disk.plan(Plan::From(0, Failure::Full));
        let error = session.flush().await.expect_err("the disk is full");
        assert!(error.full, "{error}");
        assert!(error.to_string().contains(&store.place(session.id())), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
        disk.heal();
        session.flush().await.expect("there is room again");
    })
    .await;
}

#[tokio::test]
async fn flushes_that_wait_together_share_one_sync() {
    in_time(async {
        let (disk, sessions) = (Fake::default(), Sessions::new());
        let store = store_on(&disk);
        let session = sessions.create("/");
        store.create(&session).await.expect("nothing fails");
        session.flush().await.expect("nothing fails");
        let before = disk.syncs();
        // Every thread of the store is busy until all flushes wait.
        let gate = Arc::new(std::sync::Barrier::new(crate::pool::THREADS + 1));
        for _ in 0..crate::pool::THREADS {
            let gate = gate.clone();
            store.occupy(move || _ = gate.wait());
        }
        let flushes = (0..100).map(|_| {
            turns(&session, 1);
            Box::pin(session.flush())
        });
        let mut flushes: Vec<_> = flushes.collect();
        for flush in &mut flushes {
            assert!(flush.now_or_never().is_none(), "no thread is free");
        }
        gate.wait();
        futures_util::future::join_all(flushes).await.into_iter().for_each(|flushed| flushed.expect("nothing fails"));
        assert_eq!(disk.syncs(), (before.0 + 1, before.1));
        let read = store.read(&sessions.vocabulary(), session.id()).await.expect("it was flushed");
        assert_eq!(read.decoded.log().len(), session.len());
    })
    .await;
}

#[tokio::test]
async fn letting_go_of_what_is_durable_waits_for_nobody() {
    in_time(async {
        let (disk, sessions) = (Fake::default(), Sessions::new());
        let store = store_on(&disk);
        let session = sessions.create("/");
        store.create(&session).await.expect("nothing fails");
        turns(&session, 1);
        session.flush().await.expect("nothing fails");
        let gate = Arc::new(std::sync::Barrier::new(crate::pool::THREADS + 1));
        for _ in 0..crate::pool::THREADS {
            let gate = gate.clone();
            store.occupy(move || _ = gate.wait());
        }
        session.release().now_or_never().expect("at once").expect("nothing fails");
        gate.wait();
        store.open(&sessions, session.id()).await.expect("it was let go of");
    })
    .await;
}
