use std::time::Duration;

use context::Scope;
use futures_util::StreamExt as _;
use llm::{Chunk, LlmErrorKind};
use llm_genai::Config;
use serde_json::json;
use tokio::net::TcpListener;

use crate::anthropic;
use crate::openai::{DONE, delta, finish, word};
use crate::server::{Answer, Server, Step, open, status, stream, within};
use crate::world::{KEY, Outcome, World, adapter, ask, config, drain, hello};

const PROVIDERS: [&str; 5] = ["deepseek", "openai", "anthropic", "gemini", "ollama"];

fn good() -> Answer {
    stream(&word("good"))
}

/// What a failure is, and after how many requests it was believed.
fn summary(outcome: &Outcome) -> (LlmErrorKind, &str, usize) {
    let error = outcome.failed();
    (error.kind, &error.message, outcome.asked.len())
}

#[tokio::test]
async fn every_provider_tells_a_bad_answer_in_one_line() {
    for provider in PROVIDERS {
        let (key, hidden) = if provider == "ollama" { ("", "") } else { (KEY, "***") };
        for (code, kind) in [
            (400, LlmErrorKind::InvalidRequest),
            (401, LlmErrorKind::Unauthorized),
            (403, LlmErrorKind::Unauthorized),
            (404, LlmErrorKind::InvalidRequest),
        ] {
            let body = json!({ "error": { "message": format!("No\n\u{7}way {key}!") } }).to_string();
            let got = ask(provider, vec![status(code, "", &body)]).await;
            let line = format!("{provider} answered {code}: No way {hidden}!");
            assert_eq!(summary(&got), (kind, &*line, 1));
        }
    }
}

#[tokio::test]
async fn a_long_tale_is_cut_short() {
    let got = ask("openai", vec![status(400, "", &"<p>tale</p> ".repeat(100))]).await;
    assert_eq!(got.failed().message.chars().count(), "openai answered 400: ".len() + 301);
    let silent = ask("openai", vec![status(400, "", "")]).await;
    assert_eq!(silent.failed().message, "openai answered 400");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = World::new("openai", vec![good()]).await;
    let location = format!("location: http://{}/\r\n", elsewhere.server.address);
    let got = ask("openai", vec![status(307, &location, "")]).await;
    let line = "openai answered 307: redirects are not followed: set OPENAI_BASE_URL";
    assert_eq!(summary(&got), (LlmErrorKind::InvalidRequest, line, 1));
    assert!(elsewhere.server.asked().is_empty(), "the key stays at home");
}

#[tokio::test]
async fn a_busy_provider_is_asked_again_when_it_said() {
    let busy = status(429, "retry-after: 0.1\r\n", "{}");
    let began = std::time::Instant::now();
    let got = ask("openai", vec![busy, good()]).await;
    assert_eq!((got.texts(), got.asked.len()), (vec!["good"], 2));
    assert!(began.elapsed() >= Duration::from_millis(100), "not sooner than it said");
}

#[tokio::test]
async fn a_provider_that_is_busy_for_long_is_left_alone() {
    let got =
        ask("openai", vec![status(429, "retry-after: 60\r\n", r#"{"error":{"message":"Slow down"}}"#), good()]).await;
    assert_eq!(summary(&got), (LlmErrorKind::RateLimited, "openai answered 429: Slow down (it asks to wait 60 s)", 1));
    assert_eq!(got.failed().retry_after, Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn three_failures_are_forgiven_and_four_are_not() {
    let bad = || status(500, "", r#"{"error":{"message":"Oops"}}"#);
    let got = ask("openai", vec![bad(), bad(), bad(), good()]).await;
    assert_eq!((got.texts(), got.asked.len()), (vec!["good"], 4));
    assert_eq!(got.asked[0].body, got.asked[3].body, "the same request each time");
    let got = ask("openai", vec![bad(), bad(), bad(), bad(), good()]).await;
    assert_eq!(summary(&got), (LlmErrorKind::ProviderFailed, "openai answered 500: Oops", 4));
}

#[tokio::test]
async fn an_error_in_the_stream_is_tried_again_only_before_the_first_word() {
    let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Busy" } });
    let text = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "so" } });
    let fine = stream(&anthropic::reply(&[], "end_turn"));
    let early = vec![stream(&[anthropic::event(&overloaded)]), fine.clone()];
    let got = ask("anthropic", early).await;
    assert_eq!((&got.error, got.asked.len()), (&None, 2));
    let late = vec![stream(&[anthropic::event(&text), anthropic::event(&overloaded)]), fine];
    let got = ask("anthropic", late).await;
    assert_eq!(got.texts(), ["so"]);
    assert_eq!(summary(&got), (LlmErrorKind::ProviderFailed, "anthropic reported: Busy", 1));
}

#[tokio::test]
async fn a_stream_that_just_stops_is_not_a_reply() {
    let text = delta(r#"{"content":"half"}"#);
    let half = |end: Option<Step>| open(&[&text]).into_iter().chain(end).collect::<Answer>();
    let ends = [
        ("cleanly", stream(&[&text])),
        ("cleanly, with a marker but no reason", stream(&[&text, DONE])),
        ("with a reason but no marker", stream(&[&text, &finish("stop")])),
        ("in the middle", half(None)),
        ("with a reset", half(Some(Step::Reset))),
    ];
    for (how, answer) in ends {
        let got = ask("openai", vec![answer, good()]).await;
        assert_eq!((got.texts(), got.asked.len()), (vec!["half"], 1), "{how}");
        assert_eq!(got.failed().kind, LlmErrorKind::Truncated, "{how}");
    }
}

#[tokio::test]
async fn nothing_at_all_is_not_a_reply_either() {
    for provider in PROVIDERS {
        let empty: [&str; 0] = [];
        for answer in [stream(&empty), open(&empty)] {
            let got = ask(provider, vec![answer]).await;
            assert_eq!((got.failed().kind, got.asked.len()), (LlmErrorKind::Truncated, 1), "{provider}");
        }
    }
}

#[tokio::test]
async fn a_connection_closed_before_any_answer_is_tried_again() {
    let got = ask("openai", vec![vec![], good()]).await;
    assert_eq!((got.texts(), got.asked.len()), (vec!["good"], 2));
    let got = ask("openai", vec![vec![]]).await;
    assert_eq!((got.failed().kind, got.asked.len()), (LlmErrorKind::ProviderFailed, 4));
}

#[tokio::test]
async fn silence_ends_after_the_idle_timeout() {
    let mut halfway = open(&[delta(r#"{"content":"half"}"#)]);
    halfway.push(Step::Silence);
    for answer in [vec![Step::Silence], halfway] {
        let hasty = |config| Config { idle_timeout: Duration::from_millis(200), ..config };
        let world = World::with("openai", vec![answer], hasty).await;
        let got = world.ask(hello("m")).await;
        assert_eq!(summary(&got), (LlmErrorKind::TimedOut, "openai sent nothing for 200ms", 1));
        within(world.server.left()).await;
    }
}

#[tokio::test]
async fn garbage_is_told_apart_from_an_end() {
    for provider in ["openai", "gemini"] {
        let got = ask(provider, vec![stream(&["data: {garbage\n\n"])]).await;
        assert_eq!((got.failed().kind, got.asked.len()), (LlmErrorKind::Protocol, 1), "{provider}");
    }
    let got = ask("ollama", vec![stream(&["{garbage\n"])]).await;
    assert_eq!(got.failed().kind, LlmErrorKind::Protocol);
    let got = ask("anthropic", vec![stream(&["event: content_block_delta\ndata: {}\n\n"])]).await;
    assert_eq!(got.failed().kind, LlmErrorKind::Protocol);
}

#[tokio::test]
async fn an_unreachable_provider_is_named_with_its_place() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for provider in PROVIDERS {
        let app = Scope::root("app");
        let adapter = adapter(&app, provider, config(&free.to_string())).await;
        let (_, error) = within(drain(adapter.reply(hello("m")))).await;
        let error = error.unwrap();
        assert_eq!(error.kind, LlmErrorKind::Unreachable);
        let start = format!("{provider} cannot be reached at {free}: ");
        assert!(error.message.starts_with(&start) && error.message.contains("refused"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_provider_that_does_not_speak_tls_is_not_reached() {
    let app = Scope::root("app");
    let plain = Server::start(&app, vec![good()]).await;
    let mut config = config(&plain.address);
    config.openai.base_url = Some(format!("https://{}", plain.address).into());
    let adapter = adapter(&app, "openai", config).await;
    let (_, error) = within(drain(adapter.reply(hello("m")))).await;
    let error = error.unwrap();
    let start = format!("openai cannot be reached at {}: ", plain.address);
    assert!(error.kind == LlmErrorKind::Unreachable && error.message.starts_with(&start), "{error:?}");
    assert!(plain.asked().is_empty(), "no key in the clear");
}

#[tokio::test]
async fn an_endless_reply_is_ended() {
    let text = delta(&format!("{{\"content\":\"{}\"}}", "x".repeat(1 << 20)));
    let got = ask("openai", vec![open(&vec![text; 33])]).await;
    let line = "openai's reply is longer than 32 MiB";
    assert_eq!((got.texts().len(), summary(&got)), (32, (LlmErrorKind::Protocol, line, 1)));
}

#[tokio::test]
async fn dropping_the_reply_closes_the_connection() {
    let mut answer = open(&[delta(r#"{"content":"half"}"#)]);
    answer.push(Step::Silence);
    let world = World::new("openai", vec![answer, vec![Step::Silence]]).await;
    let mut reply = world.reply(hello("m"));
    assert_eq!(within(reply.next()).await, Some(Ok(Chunk::Text("half".into()))));
    within(world.server.arrived()).await;
    drop(reply);
    within(world.server.left()).await;

    let mut reply = world.reply(hello("m"));
    tokio::select! {
        item = reply.next() => panic!("{item:?} although the server is silent"),
        () = within(world.server.arrived()) => {}
    }
    drop(reply);
    within(world.server.left()).await;
}

#[tokio::test]
async fn nothing_happens_before_the_reply_is_polled() {
    let world = World::new("openai", vec![good()]).await;
    drop(world.reply(hello("m")));
    assert_eq!(world.ask(hello("m")).await.asked.len(), 1);
}

#[tokio::test]
async fn a_provider_without_a_key_says_which_variable_to_set() {
    let variables = ["DEEPSEEK_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];
    for (provider, variable) in PROVIDERS.into_iter().zip(variables) {
        let app = Scope::root("app");
        let adapter = adapter(&app, provider, Config::default()).await;
        let (_, error) = within(drain(adapter.reply(hello("m")))).await;
        let error = error.unwrap();
        assert_eq!(error.kind, LlmErrorKind::Unauthorized);
        assert_eq!(error.message, format!("there is no key for {provider}: set {variable}"));
    }
}

#[tokio::test]
async fn a_bad_address_or_key_is_told_by_its_variable() {
    for (variable, value, line) in [
        ("OPENAI_BASE_URL", "user:pass@host", "OPENAI_BASE_URL is not an address"),
        ("OPENAI_API_KEY", "sk-very\nsecret", "OPENAI_API_KEY holds what no key can"),
    ] {
        let app = Scope::root("app");
        let look_up = |name: &str| match name {
            _ if name == variable => Some(value.to_owned()),
            "OPENAI_API_KEY" => Some("sk".to_owned()),
            _ => None,
        };
        let adapter = adapter(&app, "openai", Config::from_lookup(look_up)).await;
        let (_, error) = within(drain(adapter.reply(hello("m")))).await;
        let message = error.unwrap().message;
        assert!(message.starts_with(line) && !message.contains("pass") && !message.contains("secret"), "{message}");
    }
}
