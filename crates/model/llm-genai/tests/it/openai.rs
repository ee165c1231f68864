use llm::{Chunk, Content, Finish, LlmErrorKind, ToolCall, Usage};

use crate::server::{Step, stream};
use crate::world::{Outcome, ask};

/// An event with a change of the first choice.
pub(crate) fn delta(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n")
}

pub(crate) fn finish(reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
}

pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// `hello` answered with one word.
pub(crate) fn word(word: &str) -> Vec<String> {
    vec![delta(&format!("{{\"content\":\"{word}\"}}")), finish("stop"), DONE.into()]
}

async fn ask_openai(events: &[String]) -> Outcome {
    ask("openai", vec![stream(events)]).await
}

#[tokio::test]
async fn text_streams_as_it_comes() {
    let usage = r#"{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8}}"#;
    let events = [
        delta(r#"{"role":"assistant","content":"","refusal":null}"#),
        ": a comment\n\n".into(),
        delta(r#"{"content":"Hé"}"#),
        delta(r#"{"content":"llo"}"#),
        finish("stop"),
        format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n"),
        DONE.into(),
    ];
    let usage = Usage { input_tokens: 9, output_tokens: 4, cached_input_tokens: 8 };
    let whole = [Chunk::Text("Hé".into()), Chunk::Text("llo".into()), Chunk::Usage(usage), Chunk::End(Finish::Stop)];
    assert_eq!(ask_openai(&events).await.chunks, whole);
}

#[tokio::test]
async fn letters_and_lines_may_be_cut_anywhere_on_the_way() {
    let whole = word("h\u{e9}\u{1f600}").concat().replace('\n', "\r\n");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let bytes = [head, &whole].concat().into_bytes();
    let answer = bytes.into_iter().map(|byte| Step::Send(vec![byte])).collect();
    assert_eq!(ask("openai", vec![answer]).await.texts(), ["h\u{e9}\u{1f600}"]);
}

#[tokio::test]
async fn two_calls_in_fragments_come_out_whole_and_in_order() {
    let piece = |index: u8, rest: &str| delta(&format!("{{\"tool_calls\":[{{\"index\":{index},{rest}}}]}}"));
    let events = [
        delta(r#"{"content":"I look."}"#),
        piece(0, r#""id":"a1","type":"function","function":{"name":"read","arguments":""}"#),
        piece(0, r#""function":{"arguments":"{ \"path\":"}"#),
        piece(0, r#""function":{"arguments":" \"a\" }"}"#),
        piece(1, r#""id":"b2","type":"function","function":{"name":"list","arguments":"{}"}"#),
        finish("tool_calls"),
        DONE.into(),
    ];
    let got = ask_openai(&events).await.assembled();
    let call = |id: &str, name: &str, arguments: &str| {
        Content::ToolCall(ToolCall { call_id: id.into(), name: name.into(), arguments: arguments.into() })
    };
    let whole = vec![Content::text("I look."), call("a1", "read", r#"{ "path": "a" }"#), call("b2", "list", "{}")];
    assert_eq!(got.message.content, whole);
    assert_eq!(got.finish, Some(Finish::Stop));
}

#[tokio::test]
async fn thoughts_are_kept_from_the_text() {
    for field in ["reasoning_content", "reasoning"] {
        let thought = delta(&format!("{{\"{field}\":\"hm\"}}"));
        let events = [vec![thought], word("yes")].concat();
        let thinking = Content::Thinking { text: "hm".into(), signature: None };
        let got = ask("deepseek", vec![stream(&events)]).await.assembled();
        assert_eq!(got.message.content, [thinking, Content::text("yes")]);
    }
}

#[tokio::test]
async fn reasons_to_end() {
    for (reason, meaning) in [
        ("stop", Finish::Stop),
        ("length", Finish::MaxTokens),
        ("content_filter", Finish::Refusal),
        ("something_new", Finish::Stop),
    ] {
        let events = [delta(r#"{"content":"x"}"#), finish(reason), DONE.into()];
        assert_eq!(ask_openai(&events).await.assembled().finish, Some(meaning), "{reason}");
    }
}

#[tokio::test]
async fn a_refusal_beside_the_text_is_a_refusal() {
    let events = [delta(r#"{"refusal":"I will "}"#), delta(r#"{"refusal":"not."}"#), finish("stop"), DONE.into()];
    let got = ask_openai(&events).await.assembled();
    assert_eq!((got.message.text().as_str(), got.finish), ("I will not.", Some(Finish::Refusal)));
}

#[tokio::test]
async fn a_call_cut_off_by_the_limit_is_left_out() {
    let piece = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"write","arguments":"{\"text\":\"ha"}}]}"#;
    let events = [delta(piece), finish("length"), DONE.into()];
    let got = ask_openai(&events).await.assembled();
    assert_eq!((got.message.content, got.finish), (Vec::new(), Some(Finish::MaxTokens)));
}

#[tokio::test]
async fn calls_that_make_no_sense_are_an_error() {
    let nameless = r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}"#;
    for events in [vec![delta(nameless), finish("tool_calls"), DONE.into()], vec![finish("tool_calls"), DONE.into()]] {
        let got = ask_openai(&events).await;
        assert_eq!(got.failed().kind, LlmErrorKind::Protocol);
    }
}

#[tokio::test]
async fn an_absurd_index_costs_nothing() {
    let piece = r#"{"tool_calls":[{"index":4294967295,"id":"a","function":{"name":"read","arguments":"{}"}}]}"#;
    let got = ask_openai(&[delta(piece), finish("tool_calls"), DONE.into()]).await.assembled();
    assert_eq!(got.message.tool_calls().count(), 1);
}
