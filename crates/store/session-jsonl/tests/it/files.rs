use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use session::{Delegation, Seed, Session, TurnEnd, TurnReason, TurnStart};
use session_store::{OpenError, ReadError, Repair, SessionStore};

use super::{Place, lines, title};

fn add(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(path).expect("the log is there");
    file.write_all(bytes).expect("it can be written");
}

async fn refusal(place: &Place, session: &Session) -> String {
    match place.store.open(&place.sessions, session.id()).await {
        Err(error) => error.to_string(),
        Ok(opened) => panic!("it was opened: {:?}", opened.repairs),
    }
}

#[tokio::test]
async fn the_format_is_as_documented() {
    let place = Place::new();
    let session = place.released().await;
    let text = fs::read_to_string(place.store.path(session.id())).expect("it was written");
    let (id, at) = (session.id(), session.header().created_at());
    let header = format!(r#"{{"format":1,"id":"{id}","createdAt":{at},"cwd":"/home/me/project"}}"#);
    let mut expected = vec![header];
    expected.extend(lines(&session.snapshot()));
    assert_eq!(text, expected.join("\n") + "\n");
    assert!(expected[2].starts_with(r#"{"seq":1,"time":"#), "{}", expected[2]);
}

#[tokio::test]
async fn only_the_owner_may_look() {
    let place = Place::new();
    let session = place.begin().await;
    session.flush().await.expect("it can be written");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let log = place.store.path(session.id());
    assert_eq!(mode(&log), 0o600);
    assert_eq!(mode(&log.with_extension("lock")), 0o600);
    assert_eq!(mode(log.parent().expect("it is in a directory")), 0o700);
}

#[tokio::test]
async fn the_lock_is_there_before_the_log_and_goes_with_the_session() {
    let place = Place::new();
    let session = place.begin().await;
    let (log, lock) = (format!("{}.jsonl", session.id()), format!("{}.lock", session.id()));
    assert_eq!(place.names(), std::slice::from_ref(&lock));
    let pid = fs::read_to_string(place.home.path().join("sessions").join(&lock)).expect("it can be read");
    assert_eq!(pid, format!("{}\n", std::process::id()));
    session.flush().await.expect("it can be written");
    assert_eq!(place.names(), [log.clone(), lock]);
    session.release().await.expect("it can be written");
    assert_eq!(place.names(), [log]);
}

#[tokio::test]
async fn the_directory_may_be_removed_between_sessions() {
    let place = Place::new();
    place.released().await;
    fs::remove_dir_all(place.home.path().join("sessions")).expect("it is there");
    assert!(place.store.list(&place.sessions.vocabulary()).await.expect("nothing is there").is_empty());
    let session = place.released().await;
    assert_eq!(place.names(), [format!("{}.jsonl", session.id())]);
}

// D-28
#[tokio::test]
async fn the_file_of_a_fork_is_complete() {
    let place = Place::new();
    let parent = place.begin().await;
    for turn in 0..5_000 {
        parent.append(TurnStart { turn }).expect("the session is open");
        title(&parent, 7);
        parent.append(TurnEnd { turn, reason: TurnReason::Completed }).expect("the session is open");
    }
    parent.flush().await.expect("it can be written");
    title(&parent, 8);
    let delegation = Delegation::capture(&parent).expect("nobody contributes");
    let child = Session::delegated(delegation, Seed::ClosedTurns);
    place.store.create(&child).await.expect("a new session can be kept");
    child.flush().await.expect("it can be written");
    child.release().await.expect("it can be written");
    fs::remove_file(place.store.path(parent.id())).expect("it is there");

    let text = fs::read_to_string(place.store.path(child.id())).expect("it was written");
    let (header, events) = text.split_once('\n').expect("a header");
    assert!(header.contains(r#""seedLength":15000"#), "{header}");
    assert_eq!(events.lines().collect::<Vec<_>>(), lines(&child.snapshot()));
    assert_eq!(place.store.open(&place.sessions, child.id()).await.expect("it is whole").session.len(), 15_001);
}

#[tokio::test]
async fn a_torn_tail_is_put_aside() {
    let place = Place::new();
    let session = place.released().await;
    let log = place.store.path(session.id());
    let whole = fs::read(&log).expect("it was written");
    // Half a line, of bytes that are not UTF-8 and look like nothing.
    let torn = b"{\"seq\":3,\xff\0\0\0";
    add(&log, torn);

    let read = place.store.read(&place.sessions.vocabulary(), session.id()).await.expect("a reader ignores it");
    assert_eq!((read.torn, read.decoded.log().len()), (torn.len() as u64, 3));
    assert!(place.store.list(&place.sessions.vocabulary()).await.expect("it can be listed")[0].found.is_ok());
    assert_eq!(place.names().len(), 1, "readers repair nothing");

    let opened = place.store.open(&place.sessions, session.id()).await.expect("it can be repaired");
    let [Repair::TornTail { bytes, moved_to }] = &opened.repairs[..] else { panic!("{:?}", opened.repairs) };
    assert_eq!(*bytes, torn.len() as u64);
    assert_eq!(fs::read(moved_to).expect("it was moved there"), torn);
    assert!(moved_to.contains(".jsonl.torn-"), "{moved_to}");
    assert_eq!(fs::read(&log).expect("it is there"), whole);
    title(&opened.session, 3);
    opened.session.release().await.expect("it can be written");
    let again = place.store.open(&place.sessions, session.id()).await.expect("it is whole");
    assert_eq!((again.session.len(), again.repairs.len()), (4, 0));
}

#[tokio::test]
async fn torn_tails_of_one_instant_do_not_overwrite_each_other() {
    struct Still;
    impl session::Clock for Still {
        fn now(&self) -> u64 {
            1_790_000_000_000
        }
    }
    let place = Place::new();
    let session = place.released().await;
    let sessions = session::Sessions::with_clock(std::sync::Arc::new(Still));
    for torn in ["one", "two", "three"] {
        add(&place.store.path(session.id()), torn.as_bytes());
        let opened = place.store.open(&sessions, session.id()).await.expect("it can be repaired");
        let [Repair::TornTail { moved_to, .. }] = &opened.repairs[..] else { panic!("{:?}", opened.repairs) };
        assert_eq!(fs::read_to_string(moved_to).expect("it was moved there"), torn);
    }
    assert_eq!(place.names().len(), 4);
}

#[tokio::test]
async fn damage_before_the_tail_is_refused_and_nothing_is_changed() {
    let place = Place::new();
    let session = place.released().await;
    let log = place.store.path(session.id());
    let whole = fs::read_to_string(&log).expect("it was written");
    let lines: Vec<&str> = whole.lines().collect();
    let other = place.released().await.id().to_string();
    let cases: &[(Vec<u8>, &str)] = &[
        (b"".to_vec(), ":1 is damaged: it is empty"),
        (lines[0].into(), ":1 is damaged: the header is torn"),
        (b"{}\n".to_vec(), ":1 is damaged: not a header"),
        (whole.replace(&session.id().to_string(), &other).into(), ":1 is damaged: the header is that of session"),
        (whole.replace("\"format\":1", "\"format\":9").into(), ":1 is damaged: not a header: format 9"),
        (format!("{}\n{}\nhalf\n{}\n", lines[0], lines[1], lines[2]).into(), ":3 is damaged: expected"),
        (format!("{}\n{}\n{}\n", lines[0], lines[1], lines[3]).into(), ":3 is damaged: has seq 2 where 1 belongs"),
        (format!("{}\n{}\n\n{}\n", lines[0], lines[1], lines[2]).into(), ":3 is damaged: EOF"),
        (
            [lines[0].as_bytes(), b"\n", lines[1].as_bytes(), b"\n\"\xff\"\n{"].concat(),
            ":3 is damaged: it is not UTF-8",
        ),
    ];
    for (bytes, expected) in cases {
        fs::write(&log, bytes).expect("it can be written");
        let names = place.names();
        let message = refusal(&place, &session).await;
        assert!(message.starts_with(&format!("{}{expected}", log.display())), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        match place.store.read(&place.sessions.vocabulary(), session.id()).await {
            Err(ReadError::Damaged(damage)) => assert_eq!(damage.to_string(), message),
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read(&log).expect("it is there"), *bytes, "nothing is changed");
        assert_eq!(place.names(), names, "and nothing is left");
        let rows = place.store.list(&place.sessions.vocabulary()).await.expect("it can be listed");
        assert_eq!(rows.len(), 2);
        let row = rows.iter().find(|row| row.id == session.id()).expect("a row all the same");
        if !expected.contains("header is torn") {
            assert!(row.found.is_err(), "{expected}");
        }
    }
}

#[tokio::test]
async fn what_is_not_a_file_of_its_own_is_refused() {
    let place = Place::new();
    let session = place.released().await;
    let log = place.store.path(session.id());
    let elsewhere = place.home.path().join("elsewhere");
    fs::rename(&log, &elsewhere).expect("it can be moved");
    symlink(&elsewhere, &log).expect("it can be linked");
    let message = refusal(&place, &session).await;
    assert!(message.contains("symbolic link") && message.contains(&log.display().to_string()), "{message}");

    fs::remove_file(&log).expect("it is there");
    rustix::fs::mknodat(rustix::fs::CWD, &log, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe can be made");
    assert!(refusal(&place, &session).await.contains("not a regular file"));
    let read = place.store.read(&place.sessions.vocabulary(), session.id()).await;
    assert!(matches!(read, Err(ReadError::Io(_))), "{read:?}");

    fs::remove_file(&log).expect("it is there");
    fs::create_dir(&log).expect("it can be made");
    assert!(matches!(place.store.open(&place.sessions, session.id()).await, Err(OpenError::Io(_))));
    assert_eq!(place.names().len(), 1, "no lock is left");
}

#[tokio::test]
async fn a_huge_file_is_refused_unread() {
    let place = Place::new();
    let session = place.released().await;
    let file = OpenOptions::new().write(true).open(place.store.path(session.id())).expect("it is there");
    file.set_len((4 << 30) + 1).expect("a file may have holes");
    let message = refusal(&place, &session).await;
    assert!(message.contains("a log has at most 4294967296"), "{message}");
}

#[tokio::test]
async fn a_log_that_others_meddle_with_is_not_written() {
    type Meddle = fn(&Path);
    let meddlings: [(Meddle, &str); 4] = [
        (|log| fs::remove_file(log).expect("it is there"), "it was removed"),
        (
            |log| {
                fs::rename(log, log.with_extension("old")).expect("it is there");
                fs::copy(log.with_extension("old"), log).expect("it can be copied");
            },
            "it was replaced",
        ),
        (|log| add(log, b"{}\n"), "someone else changed its length"),
        (
            |log| OpenOptions::new().write(true).open(log).and_then(|file| file.set_len(9)).expect("it is there"),
            "someone else changed its length",
        ),
    ];
    for (meddle, expected) in meddlings {
        let place = Place::new();
        let session = place.begin().await;
        session.flush().await.expect("it can be written");
        let log = place.store.path(session.id());
        meddle(&log);
        let before = fs::read(&log).ok();
        title(&session, 1);
        let error = session.flush().await.expect_err("it is not ours any more").to_string();
        assert!(error.contains(&log.display().to_string()) && error.contains(expected), "{error}");
        assert_eq!(fs::read(&log).ok(), before, "nothing is made worse");
    }
}

#[tokio::test]
async fn what_killed_processes_left_is_swept_up() {
    let place = Place::new();
    let kept = place.released().await;
    let folder = place.home.path().join("sessions");
    let (old, young) = (place.sessions.create("/").id(), place.sessions.create("/").id());
    for orphan in [format!("{old}.lock"), format!("{old}.jsonl.new"), format!("{young}.lock")] {
        fs::write(folder.join(orphan), "1\n").expect("it can be written");
    }
    for not_ours in ["notes.lock", "spare-notes.lock", "spare-1.lock.txt"] {
        fs::write(folder.join(not_ours), "not ours").expect("it can be written");
    }
    fs::write(folder.join("spare-4000000000.lock"), "4000000000\n").expect("it can be written");
    fs::write(folder.join(format!("{}.lock", kept.id())), "1\n").expect("it can be written");
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    for name in place.names().iter().filter(|name| !name.contains(&young.to_string())) {
        let file = fs::File::open(folder.join(name)).expect("it is there");
        file.set_modified(hour_ago).expect("it is ours");
    }
    let store = session_jsonl::JsonlStore::new(&folder);
    let session = place.sessions.create("/");
    store.create(&session).await.expect("a new session can be kept");
    drop(session);
    store.close().await;
    let mut expected = vec![format!("{}.jsonl", kept.id()), format!("{}.lock", kept.id()), format!("{young}.lock")];
    expected.extend(["notes.lock", "spare-notes.lock", "spare-1.lock.txt"].map(str::to_owned));
    expected.sort();
    assert_eq!(place.names(), expected);
}
