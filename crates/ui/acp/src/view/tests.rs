use std::path::PathBuf;
use std::sync::Arc;

use agent::{Live, Signal};
use agent_client_protocol::v1::schema::{ContentBlock, SessionUpdate, ToolCallStatus};
use llm::{Content, Message};
use session::{AssistantMessage, Session, SessionId, Sessions, StepStart, ToolCalled, ToolReturned};
use tools::ToolProgress;

use super::children::{Announced, Who};
use super::{BATCH, Feed, Nested, PACE};

fn feed() -> (Session, Arc<Feed>) {
    let session = Sessions::new().create("/ws");
    let feed = Feed::new(session.clone(), PathBuf::from("/ws"), session.len());
    (session, feed)
}

fn begin(session: &Session, step: u32) {
    session.append(StepStart { turn: 1, step }).unwrap();
}

fn say(session: &Session, step: u32, text: &str) {
    let message = Arc::new(Message::assistant(text));
    session.append(AssistantMessage { turn: 1, step, message, usage: None, interrupted: false }).unwrap();
}

fn call(session: &Session, id: &str) {
    let called = ToolCalled { turn: 1, step: 1, call_id: id.into(), name: "bash".into(), arguments: "{}".into() };
    session.append(called).unwrap();
}

fn answer(session: &Session, id: &str) {
    let content = vec![Content::text("done")];
    let returned =
        ToolReturned { turn: 1, step: 1, call_id: id.into(), content, is_error: false, error: None, meta: None };
    session.append(returned).unwrap();
}

fn hear(feed: &Feed, session: &Session, text: &str) {
    feed.heard(&Live { session: session.id(), signal: Signal::Text(text.into()) });
}

fn progress(feed: &Feed, session: &Session, call: &str, text: &str) {
    feed.progressed(&ToolProgress { session: session.id(), call_id: call.into(), text: text.into() });
}

/// What the next batch says, in short; nothing where there is none.
fn next(feed: &Feed) -> Vec<String> {
    let Ok(batch) = feed.take() else { return Vec::new() };
    feed.sent(&batch);
    let told = |update| match update {
        SessionUpdate::AgentMessageChunk(chunk) => match chunk.content {
            ContentBlock::Text(text) => text.text,
            other => format!("{other:?}"),
        },
        SessionUpdate::ToolCall(call) => format!("{} begun", call.tool_call_id),
        SessionUpdate::ToolCallUpdate(update) => match update.fields.status {
            Some(ToolCallStatus::Completed) => format!("{} ended", update.tool_call_id),
            Some(other) => format!("{} {other:?}", update.tool_call_id),
            None => format!("{} goes on", update.tool_call_id),
        },
        other => format!("{other:?}"),
    };
    batch.updates.into_iter().map(told).collect()
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_shown_at_a_pace() {
    let (session, feed) = feed();
    begin(&session, 1);
    call(&session, "a");
    for _ in 0..10_000 {
        progress(&feed, &session, "a", "a line of output\n");
    }
    assert_eq!(next(&feed), ["a begun", "a goes on"]);
    for _ in 0..10_000 {
        progress(&feed, &session, "a", "a line of output\n");
    }
    assert_eq!(next(&feed), [""; 0], "it was shown just now");
    tokio::time::advance(PACE / 2).await;
    assert_eq!(next(&feed), [""; 0]);
    tokio::time::advance(PACE).await;
    assert_eq!(next(&feed), ["a goes on"]);
    tokio::time::advance(PACE * 2).await;
    assert_eq!(next(&feed), [""; 0], "nothing new");
    // The end waits for nothing, and stands last.
    progress(&feed, &session, "a", "the last line\n");
    answer(&session, "a");
    assert_eq!(next(&feed), ["a ended"]);
    progress(&feed, &session, "a", "too late\n");
    tokio::time::advance(PACE * 2).await;
    assert_eq!(next(&feed), [""; 0]);
}

#[test]
fn words_that_wait_become_one() {
    let (session, feed) = feed();
    begin(&session, 1);
    for _ in 0..10_000 {
        hear(&feed, &session, "word ");
    }
    assert_eq!(next(&feed), ["word ".repeat(10_000)]);
    hear(&feed, &session, "end");
    say(&session, 1, &format!("{}end", "word ".repeat(10_000)));
    assert_eq!(next(&feed), ["end"]);
    assert_eq!(next(&feed), [""; 0]);
}

#[test]
fn a_client_that_did_not_read_is_shown_everything_in_order() {
    let (session, feed) = feed();
    begin(&session, 1);
    hear(&feed, &session, "one");
    say(&session, 1, "one");
    call(&session, "a");
    progress(&feed, &session, "a", "output\n");
    answer(&session, "a");
    begin(&session, 2);
    hear(&feed, &session, "tw");
    assert_eq!(next(&feed), ["one", "a begun", "a ended", "tw"]);
    hear(&feed, &session, "o");
    say(&session, 2, "two");
    begin(&session, 3);
    hear(&feed, &session, "three");
    assert_eq!(next(&feed), ["o", "three"]);
}

/// Whatever a running call shows.
fn progress_of(feed: &Feed) -> String {
    let mut state = feed.lock();
    state.running.values_mut().filter_map(|running| running.tail.shown()).collect()
}

#[test]
fn what_a_child_does_before_it_is_announced_stands_behind_that() {
    let (session, feed) = feed();
    let (one, two) = (Sessions::new().create("/ws"), Sessions::new().create("/ws"));
    begin(&session, 1);
    call(&session, "a");
    let announce = |nested: &mut Nested<'_>, child: &Session, parent: &Session, call: &str| {
        let (who, parent) = (Who::Here(child.id()), parent.id());
        let announced = Announced { who, parent, call: Some(call.into()), name: call.to_uppercase() };
        nested.children.started(nested.top, announced, nested.running);
    };
    feed.child(|nested| {
        nested.published(one.id());
        nested.published(two.id());
    });
    hear(&feed, &one, "I begin");
    call(&one, "b");
    feed.child(|nested| nested.event(one.id(), one.snapshot().events_from(0).last().unwrap()));
    hear(&feed, &two, "so do I");
    assert_eq!(progress_of(&feed), "");
    feed.child(|nested| announce(nested, &one, &session, "a"));
    assert_eq!(progress_of(&feed), "A: started\nA:\nI begin\nA: bash\n");
    feed.child(|nested| announce(nested, &two, &one, "b"));
    hear(&feed, &two, " again");
    let all = "A: started\nA:\nI begin\nA: bash\nA › B: started\nA › B:\nso do I again";
    assert_eq!(progress_of(&feed), all);
    // Nobody else's children, and no end of those that never come.
    let strangers: Vec<_> = (0..1000).map(|_| SessionId::mint()).collect();
    for child in strangers {
        feed.child(|nested| nested.published(child));
        for _ in 0..1000 {
            feed.heard(&Live { session: child, signal: Signal::Text("x".into()) });
        }
    }
    assert_eq!(progress_of(&feed), all);
}

#[test]
fn what_is_not_logged_waits_for_what_is() {
    let (session, feed) = feed();
    begin(&session, 1);
    for _ in 0..BATCH {
        call(&session, "a");
        answer(&session, "a");
    }
    begin(&session, 2);
    hear(&feed, &session, "word");
    let mut all = Vec::new();
    for batch in std::iter::repeat_with(|| next(&feed)).take_while(|batch| !batch.is_empty()) {
        assert!(batch.len() <= BATCH + 1);
        all.extend(batch);
    }
    assert_eq!((all.len(), &*all[2 * BATCH]), (2 * BATCH + 1, "word"));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_the_client_waits_until_it_was_sent_to() {
    let (session, feed) = feed();
    begin(&session, 1);
    say(&session, 1, "one");
    let mut shown = std::pin::pin!(feed.shown(session.len()));
    assert!(futures_util::poll!(&mut shown).is_pending());
    let batch = feed.next().await;
    assert!(futures_util::poll!(&mut shown).is_pending(), "it was taken and not sent");
    feed.sent(&batch);
    assert!(futures_util::poll!(&mut shown).is_ready());
}
