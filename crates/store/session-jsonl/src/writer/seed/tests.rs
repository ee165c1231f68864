use std::sync::Arc;

use session::{Delegation, Seed, Session, SessionTitle, Sessions, TurnEnd, TurnReason, TurnStart};
use session_store::SessionStore;

use crate::JsonlStore;
use crate::disk::fake::{Failure, Fake, Left, Plan};

struct Place {
    disk: Fake,
    store: JsonlStore,
    sessions: Arc<Sessions>,
}

impl Place {
    fn new() -> Self {
        Self::on(Fake::default())
    }

    fn on(disk: Fake) -> Self {
        let store = JsonlStore::on("/fake".into(), Arc::new(disk.clone()));
        Self { disk, store, sessions: Sessions::new() }
    }

    /// A session with three closed turns and an open one, durable.
    async fn parent(&self) -> Session {
        let session = self.sessions.create("/home/me/project");
        self.store.create(&session).await.expect("nothing fails");
        (0..3).for_each(|n| turn(&session, n));
        session.append(TurnStart { turn: 3 }).expect("it is open");
        session.flush().await.expect("nothing fails");
        session
    }

    fn name(session: &Session) -> String {
        format!("{}.jsonl", session.id())
    }

    /// Keeps a fork. Its file is what it has in memory, whatever was copied; that is how many bytes.
    async fn keep(&self, fork: &Session) -> u64 {
        let before = self.disk.copied();
        self.store.create(fork).await.expect("nothing fails");
        fork.flush().await.expect("nothing fails");
        self.check(fork, &self.disk);
        self.check(fork, &self.disk.reboot(Left::Synced));
        self.disk.copied() - before
    }

    fn check(&self, session: &Session, disk: &Fake) {
        let mut expected = serde_json::to_vec(&**session.header()).expect("memory");
        for event in session.snapshot().events().iter() {
            expected.push(b'\n');
            event.write(&mut expected);
        }
        expected.push(b'\n');
        let found = disk.read(&Self::name(session)).expect("it was flushed");
        assert_eq!(String::from_utf8(found), String::from_utf8(expected));
    }
}

fn turn(session: &Session, turn: u32) {
    session.append(TurnStart { turn }).expect("it is open");
    session.append(SessionTitle { title: format!("turn {turn}").into(), source: "user".into() }).expect("it is open");
    session.append(TurnEnd { turn, reason: TurnReason::Completed }).expect("it is open");
}

fn fork(parent: &Session) -> Session {
    Session::delegated(Delegation::capture(parent).expect("no contributor panics"), Seed::ClosedTurns)
}

/// How many bytes the first `events` events take.
fn bytes(session: &Session, events: usize) -> u64 {
    session.snapshot().events().iter().take(events).map(|event| event.to_json().len() as u64 + 1).sum()
}

// D-28
#[tokio::test]
async fn the_seed_is_copied_and_its_forks_are_too() {
    let place = Place::new();
    let parent = place.parent().await;
    let child = fork(&parent);
    assert_eq!(place.keep(&child).await, bytes(&parent, 9));
    turn(&child, 7);
    let unflushed = fork(&child);
    assert_eq!(place.keep(&unflushed).await, bytes(&child, 9), "what is there, and the rest is written");
    child.flush().await.expect("nothing fails");
    assert_eq!(place.keep(&fork(&child)).await, bytes(&child, 13));
}

// D-28
#[tokio::test]
async fn a_parent_may_go_on_before_its_fork_is_kept() {
    let place = Place::new();
    let parent = place.parent().await;
    let (one, two) = (fork(&parent), fork(&parent));
    for (fork, copied) in [(one, bytes(&parent, 9)), (two, 0)] {
        turn(&parent, 4);
        parent.flush().await.expect("nothing fails");
        assert_eq!(place.keep(&fork).await, copied);
    }
}

// D-28
#[tokio::test]
async fn a_parent_that_was_opened_is_copied_whatever_its_lines_look_like() {
    let place = Place::new();
    let parent = place.parent().await;
    turn(&parent, 3);
    parent.release().await.expect("nothing fails");
    let name = Place::name(&parent);
    let text = String::from_utf8(place.disk.read(&name).expect("it was released")).expect("JSON is UTF-8");
    // Another writer's spaces, in the header and in an event, and half a line.
    let spaced = text.replacen(r#""format":1"#, r#""format" : 1"#, 1).replacen(r#""seq":1,"#, r#""seq": 1 ,"#, 1);
    assert_eq!(spaced.len(), text.len() + 4);
    place.disk.put(&name, format!("{spaced}{{\"seq\":").as_bytes());
    let opened = place.store.open(&place.sessions, parent.id()).await.expect("it is sound");
    assert_eq!(opened.repairs.len(), 1);
    opened.session.flush().await.expect("nothing fails");
    assert_eq!(place.keep(&fork(&opened.session)).await, bytes(&parent, 13) + 2);
}

// D-28
#[tokio::test]
async fn an_interrupted_parent_is_copied_once_its_turn_is_closed_on_disk() {
    let place = Place::new();
    let parent = place.parent().await;
    parent.release().await.expect("nothing fails");
    let opened = place.store.open(&place.sessions, parent.id()).await.expect("it is sound").session;
    assert_eq!(place.keep(&fork(&opened)).await, 0);
    opened.flush().await.expect("nothing fails");
    assert_eq!(place.keep(&fork(&opened)).await, bytes(&opened, opened.len() as usize));
}

#[tokio::test]
async fn what_a_failed_sync_may_have_lost_is_not_copied() {
    let place = Place::new();
    let parent = place.parent().await;
    parent.append(TurnEnd { turn: 3, reason: TurnReason::Completed }).expect("it is open");
    // Looking, two halves and more of a write, a sync: whichever fails.
    for step in 0..6 {
        turn(&parent, step);
        place.disk.plan(Plan::Once(place.disk.steps() + step as usize, Failure::Refused));
        let failed = parent.flush().await.is_err();
        place.disk.heal();
        let copied = place.keep(&fork(&parent)).await;
        assert!(copied <= bytes(&parent, parent.len() as usize - if failed { 3 } else { 0 }), "{step}");
        parent.flush().await.expect("nothing fails any more");
        assert_eq!(place.keep(&fork(&parent)).await, bytes(&parent, parent.len() as usize), "{step}");
    }
}

#[tokio::test]
async fn a_file_that_others_touched_is_not_copied() {
    type Touch = fn(&Fake, &str, Vec<u8>);
    let touches: [Touch; 5] = [
        |disk, name, bytes| disk.edit(name, &String::from_utf8_lossy(&bytes).replace("turn 1", "turn X").into_bytes()),
        |disk, name, bytes| disk.edit(name, &bytes),
        |disk, name, bytes| disk.put(name, &bytes),
        |disk, name, bytes| disk.edit(name, &[&bytes[..], b"{}\n"].concat()),
        |disk, name, bytes| disk.edit(name, &bytes[..bytes.len() / 2]),
    ];
    for (at, touch) in touches.into_iter().enumerate() {
        let place = Place::new();
        let parent = place.parent().await;
        let name = Place::name(&parent);
        touch(&place.disk, &name, place.disk.read(&name).expect("it was flushed"));
        assert_eq!(place.keep(&fork(&parent)).await, 0, "{at}");
    }
}

#[tokio::test]
async fn a_copy_that_fails_or_goes_wrong_is_written_instead() {
    let place = Place::new();
    let parent = place.parent().await;
    let text = |session: &Session| bytes(session, session.len() as usize);
    place.disk.copy_wrongly(true);
    let child = fork(&parent);
    assert!(place.keep(&child).await > 0, "it was tried");
    place.disk.copy_wrongly(false);
    assert!(text(&child) > 0);
    // Each call of a first flush is refused once; the second flush succeeds whatever that was.
    for step in 0..30 {
        let child = fork(&parent);
        place.store.create(&child).await.expect("nothing fails yet");
        place.disk.plan(Plan::Once(place.disk.steps() + step, Failure::Full));
        let first = child.flush().await;
        place.disk.heal();
        child.flush().await.unwrap_or_else(|error| panic!("{step}: {error}, after {first:?}"));
        place.check(&child, &place.disk.reboot(Left::Synced));
    }
}

/// A log may say anything of where it came from.
#[tokio::test]
async fn a_log_that_only_claims_a_parent_gets_nothing_of_it() {
    let place = Place::new();
    let parent = place.parent().await;
    let child = fork(&parent);
    let mut text = serde_json::to_string(&**child.header()).expect("memory");
    for event in child.snapshot().events().iter() {
        text.push('\n');
        text.push_str(&event.to_json().replace("turn 2", "turn Z"));
    }
    text.push('\n');
    text.push_str(&format!(r#"{{"seq":{},"time":1,"type":"turn/start","data":{{"turn":9}}}}"#, child.len()));
    let claims = place.sessions.vocabulary().decode(text).expect("it is sound");
    let claims = place.sessions.resume(claims).expect("it can be continued");
    assert_eq!(claims.header().seed_length(), 9);
    assert_eq!(place.keep(&claims).await, 0);
}

#[tokio::test]
async fn a_parent_that_was_let_go_of_is_not_copied() {
    let place = Place::new();
    let parent = place.parent().await;
    let child = fork(&parent);
    parent.release().await.expect("nothing fails");
    assert_eq!(place.keep(&child).await, 0);
}
