//! A key is seen by its provider and by nobody else.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use crate::openai::word;
use crate::server::{status, stream};
use crate::world::{KEY, World, ask, hello};

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_log_holds_a_key_even_if_the_provider_repeats_it() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    // One thread runs everything here, the HTTP library's own tasks included.
    let guard = tracing::subscriber::set_default(subscriber);
    let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    for provider in ["deepseek", "openai", "anthropic", "gemini"] {
        let got = ask(provider, vec![status(503, "", &body), status(401, "", &body)]).await;
        assert_eq!(got.asked.len(), 2);
        let error = got.failed();
        assert!(error.message.ends_with("provided: ***"), "{}", error.message);
        assert!(!format!("{error:?}").contains(KEY));
    }
    drop(ask("openai", vec![stream(&word("hi"))]).await);
    drop(guard);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("trying again"), "the log works: {log}");
    assert!(!log.contains(KEY), "{log}");
}

#[tokio::test]
async fn the_key_goes_into_one_header_and_nowhere_else() {
    for provider in ["deepseek", "openai", "anthropic", "gemini"] {
        let world = World::new(provider, vec![stream(&word("x"))]).await;
        let asked = world.ask(hello("m")).await.asked.remove(0);
        assert_eq!(asked.head.matches(KEY).count(), 1, "{}", asked.head);
        assert!(!asked.body.to_string().contains(KEY) && !asked.target.contains(KEY));
    }
}
