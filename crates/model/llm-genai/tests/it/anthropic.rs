use std::sync::Arc;

use llm::{Content, Finish, LlmErrorKind, Message, Role, ToolCall, Usage};
use serde_json::{Value, json};

use crate::server::stream;
use crate::world::{Outcome, World, ask, hello};

pub(crate) fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

/// A whole reply of these blocks, each a start and its deltas.
pub(crate) fn reply(blocks: &[(Value, &[Value])], stop: &str) -> Vec<String> {
    let usage = json!({ "input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 1, "output_tokens": 1 });
    let mut events = vec![json!({ "type": "message_start", "message": { "usage": usage } }), json!({ "type": "ping" })];
    for (index, (start, deltas)) in blocks.iter().enumerate() {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        let delta = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend(deltas.iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let usage = json!({ "output_tokens": 7 });
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": stop }, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(event).collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "text_delta", "text": text })
}

fn text_block() -> Value {
    json!({ "type": "text", "text": "" })
}

async fn ask_anthropic(events: &[String]) -> Outcome {
    ask("anthropic", vec![stream(events)]).await
}

#[tokio::test]
async fn text_and_usage() {
    let events = reply(&[(text_block(), &[text("Hel"), text("lo")])], "end_turn");
    let outcome = ask_anthropic(&events).await;
    assert_eq!(outcome.texts(), ["Hel", "lo"]);
    let got = outcome.assembled();
    assert_eq!(got.usage, Some(Usage { input_tokens: 9, output_tokens: 7, cached_input_tokens: 3 }));
    assert_eq!(got.finish, Some(Finish::Stop));
}

#[tokio::test]
async fn two_calls_in_fragments() {
    let use_tool = |id: &str, name: &str| json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
    let part = |json: &str| json!({ "type": "input_json_delta", "partial_json": json });
    let blocks: [(Value, &[Value]); 3] = [
        (text_block(), &[text("I look.")]),
        (use_tool("toolu_1", "read"), &[part(""), part(r#"{ "path":"#), part(r#" "a" }"#)]),
        (use_tool("toolu_2", "list"), &[]),
    ];
    let got = ask_anthropic(&reply(&blocks, "tool_use")).await.assembled();
    let calls: Vec<_> = got.message.tool_calls().map(|c| (&*c.call_id, &*c.name, &*c.arguments)).collect();
    assert_eq!(calls, [("toolu_1", "read", r#"{ "path": "a" }"#), ("toolu_2", "list", "{}")]);
}

#[tokio::test]
async fn reasons_to_end() {
    for (reason, meaning) in [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("pause_turn", Finish::Stop),
        ("max_tokens", Finish::MaxTokens),
        ("model_context_window_exceeded", Finish::MaxTokens),
        ("refusal", Finish::Refusal),
    ] {
        let events = reply(&[(text_block(), &[text("x")])], reason);
        assert_eq!(ask_anthropic(&events).await.assembled().finish, Some(meaning), "{reason}");
    }
}

#[tokio::test]
async fn thoughts_go_back_sealed_and_in_place() {
    let thought = |text: &str| json!({ "type": "thinking_delta", "thinking": text });
    let signature = |text: &str| json!({ "type": "signature_delta", "signature": text });
    let thinking = || json!({ "type": "thinking", "thinking": "", "signature": "" });
    let blocks: [(Value, &[Value]); 4] = [
        (thinking(), &[thought("hm"), thought("m"), signature("se"), signature("al")]),
        (thinking(), &[thought("ah"), signature("two")]),
        (json!({ "type": "redacted_thinking", "data": "dark" }), &[]),
        (json!({ "type": "tool_use", "id": "t1", "name": "read", "input": {} }), &[]),
    ];
    let whole = [stream(&reply(&blocks, "tool_use")), stream(&reply(&[(text_block(), &[text("done")])], "end_turn"))];
    let world = World::new("anthropic", whole.to_vec()).await;
    let mut request = hello("m");
    let first = world.ask(request.clone()).await.assembled().message;
    request.messages.push(Arc::new(first.clone()));
    let result = Content::ToolResult { call_id: "t1".into(), content: vec![Content::text("ok")], is_error: false };
    request.messages.push(Arc::new(Message { role: Role::Tool, content: vec![result] }));
    let sent = world.ask(request).await.asked[1].body["messages"][1].clone();
    let back = json!({ "role": "assistant", "content": [
        { "type": "thinking", "thinking": "hmm", "signature": "seal" },
        { "type": "thinking", "thinking": "ah", "signature": "two" },
        { "type": "redacted_thinking", "data": "dark" },
        { "type": "tool_use", "id": "t1", "name": "read", "input": {} },
    ] });
    assert_eq!(sent, back);

    let elsewhere = World::new("openai", vec![stream(&crate::openai::word("x"))]).await;
    let mut request = hello("m");
    request.messages.push(Arc::new(first));
    let sent = elsewhere.ask(request).await.asked[0].body["messages"][1].to_string();
    assert!(!sent.contains("hmm") && !sent.contains("seal") && !sent.contains("dark"), "{sent}");
}

#[tokio::test]
async fn an_error_in_the_stream_says_what_it_is() {
    for (kind, meaning) in [
        ("overloaded_error", LlmErrorKind::ProviderFailed),
        ("rate_limit_error", LlmErrorKind::RateLimited),
        ("invalid_request_error", LlmErrorKind::InvalidRequest),
        ("authentication_error", LlmErrorKind::Unauthorized),
    ] {
        let error = event(&json!({ "type": "error", "error": { "type": kind, "message": "No\nway" } }));
        let got = ask_anthropic(&[error]).await;
        assert_eq!((got.failed().kind, &*got.failed().message), (meaning, "anthropic reported: No way"));
    }
}

#[tokio::test]
async fn ids_of_other_providers_are_made_to_fit() {
    let world = World::new("anthropic", vec![stream(&reply(&[(text_block(), &[text("x")])], "end_turn"))]).await;
    let mut request = hello("m");
    let call = ToolCall { call_id: "functions.read:0".into(), name: "read".into(), arguments: "{\"a".into() };
    let content = vec![Content::text(" "), Content::ToolCall(call)];
    request.messages.push(Arc::new(Message { role: Role::Assistant, content }));
    let result = Content::ToolResult { call_id: "functions.read:0".into(), content: vec![], is_error: true };
    request.messages.push(Arc::new(Message { role: Role::Tool, content: vec![result] }));
    let sent = world.ask(request).await.asked[0].body["messages"].clone();
    let call =
        json!({ "type": "tool_use", "id": "functions_read_0", "name": "read", "input": { "unreadable": "{\"a" } });
    assert_eq!(sent[1]["content"], json!([call]));
    assert_eq!(sent[2]["content"][0]["tool_use_id"], "functions_read_0");
    assert_eq!(sent[2]["content"][0]["is_error"], true);
}
