//! Logs as somebody else, or a crash, may have left them.

use std::sync::{Arc, OnceLock};

use sandbox_policy::ModeSet;
use session::{Decoded, Event, Header, ResumeError, Sessions};

/// A first line, for what has none.
const HEADER: &str =
    r#"{"format":1,"id":"01999999-0000-7000-8000-000000000001","createdAt":1790000000000,"cwd":"/project"}"#;

/// Reads `data` as a log, then as the events of one, then each line by itself.
///
/// # Panics
///
/// If reading does, or if what was read writes back otherwise than it was written.
pub fn log_decode(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    read(&text);
    read(&format!("{HEADER}\n{text}"));
    read(&renumbered(&text));
    for line in text.lines() {
        if let Ok(event) = house().vocabulary().decode_event(line) {
            same(&event, line);
        }
    }
}

/// A program that knows every event of ours.
fn house() -> &'static Arc<Sessions> {
    static HOUSE: OnceLock<Arc<Sessions>> = OnceLock::new();
    HOUSE.get_or_init(bundle::sessions)
}

fn read(text: &str) {
    let decoded = match house().vocabulary().decode(text) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let (_, events) = text.split_once('\n').unwrap_or((text, ""));
    let lines: Vec<&str> = events.split_terminator('\n').collect();
    let log = decoded.log();
    assert_eq!(log.len(), lines.len() as u64);
    let unknown = log.events().iter().filter(|event| !event.is_known() && !event.is_ignorable());
    let unknown: Vec<&str> = unknown.map(Event::tag).collect();
    assert!(decoded.foreign().iter().all(|tag| unknown.contains(&&**tag)), "{:?}", decoded.foreign());
    assert_eq!(decoded.foreign().is_empty(), unknown.is_empty(), "{unknown:?} forbid writing");
    for (seq, (event, line)) in (0..).zip(log.events().iter().zip(&lines)) {
        assert_eq!(event.seq(), seq, "{line}");
        same(event, line);
    }
    let header = serde_json::to_string(&**log.header()).expect("a header can be written");
    let again: Header = serde_json::from_str(&header).expect("what was written can be read");
    assert_eq!(again, **log.header());
    let rewritten = format!("{header}\n{events}");
    let again = house().vocabulary().decode(rewritten).expect("what was read can be read again");
    assert_eq!((again.foreign(), again.log().len()), (decoded.foreign(), log.len()));
    assert_eq!(messages(&again), messages(&decoded));
    resume(&decoded, &lines);
}

/// The messages, as JSON, or what is wrong with one.
fn messages(decoded: &Decoded) -> Result<Vec<String>, String> {
    let messages = decoded.log().messages().map_err(|error| error.to_string())?;
    Ok(messages.iter().map(|message| serde_json::to_string(message).expect("a message can be written")).collect())
}

fn same(event: &Event, line: &str) {
    assert_eq!(event.to_json(), line);
    // Whatever it says; a second look says the same.
    let (first, second) = (event.message(), event.message());
    assert_eq!(first.is_ok(), second.is_ok(), "{line}");
}

/// Continues a log. What is there stays as it is, and what a crash left open is closed behind it.
fn resume(decoded: &Decoded, lines: &[&str]) {
    let foreign = !decoded.foreign().is_empty();
    let session = match house().resume(decoded.clone()) {
        Ok(session) => session,
        Err(error) => {
            assert_eq!(foreign, matches!(error, ResumeError::Foreign(_)), "{error}");
            return;
        }
    };
    assert!(!foreign, "a log was continued that nobody here understands");
    assert_eq!(session.first_live_seq(), lines.len() as u64);
    let snapshot = session.snapshot();
    assert!(snapshot.events().iter().zip(lines).all(|(event, line)| event.to_json() == *line));
    let mut whole = serde_json::to_string(&**snapshot.header()).expect("a header can be written");
    for event in snapshot.events().iter() {
        whole.push('\n');
        whole.push_str(&event.to_json());
    }
    let again = house().vocabulary().decode(whole).expect("what a session holds can be read");
    let settled = house().resume(again).expect("what was continued can be continued");
    assert_eq!(settled.len(), session.len(), "there was nothing more to close");
    let _looked = (session.messages().is_ok(), session.pending_len(), session.latest::<ModeSet>());
}

/// The events of a log, numbered in order, so that what was cut out or copied is not all that is found.
fn renumbered(text: &str) -> String {
    let mut log = HEADER.to_owned();
    let events = text.lines().filter(|line| line.starts_with(r#"{"seq":"#));
    for (seq, line) in events.enumerate() {
        let rest = line[r#"{"seq":"#.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        log.push_str(&format!("\n{{\"seq\":{seq}{rest}"));
    }
    log
}
