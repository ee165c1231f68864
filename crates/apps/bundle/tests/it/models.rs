//! Replies without an end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::Inbox;
use futures_util::stream;
use llm::{Chunk, LlmAdapter, Reply, Request};
use session::TurnReason;
use tokio::sync::Notify;

use crate::support::{App, within};

/// Always has one more chunk ready.
#[derive(Clone)]
struct Endless {
    chunk: Arc<str>,
    sent: Arc<AtomicUsize>,
    /// Told when this many are out.
    mark: usize,
    marked: Arc<Notify>,
}

impl Endless {
    fn new(chunk: &str, mark: usize) -> Self {
        Self { chunk: chunk.into(), sent: Arc::default(), mark, marked: Arc::default() }
    }
}

impl LlmAdapter for Endless {
    fn reply(&self, _: Request) -> Reply {
        let Self { chunk, sent, mark, marked } = self.clone();
        Box::pin(stream::repeat_with(move || {
            if sent.fetch_add(1, Ordering::Relaxed) + 1 == mark {
                marked.notify_one();
            }
            Ok(Chunk::Text((*chunk).into()))
        }))
    }
}

// D-25
#[tokio::test]
async fn a_reply_that_is_always_ready_can_be_cancelled() {
    within(async {
        let (app, model) = (App::new().await, Endless::new("x", 1_000));
        let agent = app.agent_with(model.clone()).await;
        let receipt = agent.followup("go").unwrap();
        model.marked.notified().await;
        assert!(agent.cancel("user", Inbox::Keep));
        let outcome = receipt.outcome().await;
        assert_eq!(outcome.reason, TurnReason::Aborted { cause: Some("user".into()) });
        let sent = model.sent.load(Ordering::Relaxed);
        assert!(sent < 100_000, "whoever cancels it need not wait for {sent} chunks");
        app.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_reply_beyond_32_mib_is_an_error() {
    within(async {
        let (app, model) = (App::new().await, Endless::new(&"x".repeat(1024 * 1024), 0));
        let agent = app.agent_with(model.clone()).await;
        let reason = agent.followup("go").unwrap().outcome().await.reason;
        let TurnReason::Error { message: Some(message) } = &reason else { panic!("{reason:?}") };
        assert!(message.contains("33554432 bytes"), "{message}");
        let sent = model.sent.load(Ordering::Relaxed);
        assert!((32..=34).contains(&sent), "{sent} chunks were taken");
        app.close().await;
    })
    .await;
}
