//! Gemini and Ollama, in the shapes in which they were seen to answer.

use llm::{Chunk, Content, Finish, LlmErrorKind, Message, Role, Usage};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::server::stream;
use crate::world::{World, ask, hello};

fn gemini(frames: &[Value]) -> Vec<String> {
    frames.iter().map(|frame| format!("data: {frame}\r\n\r\n")).collect()
}

fn candidate(parts: Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(reason) = finish {
        candidate["finishReason"] = reason.into();
    }
    let usage = json!({ "promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5,
        "thoughtsTokenCount": 2, "totalTokenCount": 17 });
    json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": "x" })
}

fn ollama(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn ollama_done(reason: Option<&str>) -> Value {
    let message = json!({ "role": "assistant", "content": "" });
    let mut line = json!({ "message": message, "done": true, "prompt_eval_count": 10, "eval_count": 3 });
    if let Some(reason) = reason {
        line["done_reason"] = reason.into();
    }
    line
}

#[tokio::test]
async fn gemini_streams_thoughts_text_and_usage() {
    let frames = [
        candidate(json!([{ "text": "hm", "thought": true }]), None),
        candidate(json!([{ "text": "Hel" }]), None),
        candidate(json!([{ "text": "lo" }]), Some("STOP")),
    ];
    let got = ask("gemini", vec![stream(&gemini(&frames))]).await.assembled();
    let thinking = Content::Thinking { text: "hm".into(), signature: None };
    assert_eq!(got.message.content, [thinking, Content::text("Hello")]);
    assert_eq!(got.usage, Some(Usage { input_tokens: 10, output_tokens: 7, cached_input_tokens: 4 }));
    assert_eq!(got.finish, Some(Finish::Stop));
}

#[tokio::test]
async fn geminis_calls_have_ids_that_never_repeat_and_go_back_with_their_seal() {
    let call = |path: &str| json!({ "functionCall": { "name": "read", "args": { "path": path } } });
    let sealed = json!({ "functionCall": { "name": "read", "args": { "path": "a" } }, "thoughtSignature": "seal" });
    let answers = [json!([sealed, call("b")]), json!([call("c")])].map(|parts| {
        let frames = [candidate(parts, None), candidate(json!([{ "text": "" }]), Some("STOP"))];
        stream(&gemini(&frames))
    });
    let world = World::new("gemini", answers.to_vec()).await;
    let mut request = hello("m");
    let first = world.ask(request.clone()).await.assembled().message;
    let ids: Vec<_> = first.tool_calls().map(|call| call.call_id.clone()).collect();
    let arguments: Vec<_> = first.tool_calls().map(|call| call.arguments.to_string()).collect();
    assert_eq!(arguments, [r#"{"path":"a"}"#, r#"{"path":"b"}"#]);
    request.messages.push(Arc::new(first));
    for id in &ids {
        let result = Content::ToolResult { call_id: id.clone(), content: vec![Content::text("ok")], is_error: false };
        request.messages.push(Arc::new(Message { role: Role::Tool, content: vec![result] }));
    }
    let second = world.ask(request).await;
    let contents = second.asked[1].body["contents"].clone();
    assert_eq!(contents[1]["parts"][0]["thoughtSignature"], "seal");
    assert_eq!(contents[2]["parts"].as_array().unwrap().len(), 2, "results of one step go together: {contents}");
    assert_eq!(contents[2]["parts"][1]["functionResponse"]["name"], "read");
    let again = second.assembled().message.tool_calls().next().unwrap().call_id.clone();
    assert!(ids[0] != ids[1] && !ids.contains(&again), "{ids:?} {again}");
}

#[tokio::test]
async fn gemini_refuses_in_several_ways() {
    for frames in [
        vec![json!({ "promptFeedback": { "blockReason": "SAFETY" }, "usageMetadata": { "promptTokenCount": 3 } })],
        vec![candidate(json!([{ "text": "so" }]), Some("SAFETY"))],
        vec![json!({ "candidates": [{ "finishReason": "PROHIBITED_CONTENT" }] })],
    ] {
        let got = ask("gemini", vec![stream(&gemini(&frames))]).await;
        assert_eq!((got.error, got.chunks.last()), (None, Some(&Chunk::End(Finish::Refusal))));
    }
}

#[tokio::test]
async fn gemini_is_asked_again_after_a_call_it_did_not_get_right() {
    let bad = [json!({ "candidates": [{ "content": {}, "finishReason": "MALFORMED_FUNCTION_CALL" }] })];
    let good = [candidate(json!([{ "text": "ok" }]), Some("STOP"))];
    let got = ask("gemini", vec![stream(&gemini(&bad)), stream(&gemini(&good))]).await;
    assert_eq!((got.texts(), got.asked.len()), (vec!["ok"], 2));
    let got = ask("gemini", vec![stream(&gemini(&bad))]).await;
    assert_eq!(got.failed().message, "gemini stopped in the middle: MALFORMED_FUNCTION_CALL");
}

#[tokio::test]
async fn an_error_in_geminis_stream_has_the_kind_of_its_code() {
    let frame = json!({ "error": { "code": 400, "message": "Bad schema", "status": "INVALID_ARGUMENT" } });
    let got = ask("gemini", vec![stream(&gemini(&[frame]))]).await;
    let line = "gemini reported: Bad schema";
    assert_eq!((got.failed().kind, &*got.failed().message), (LlmErrorKind::InvalidRequest, line));
}

#[tokio::test]
async fn a_cut_stream_is_an_error_although_the_library_makes_an_end_up() {
    let frame = candidate(json!([{ "text": "half" }]), None);
    let got = ask("gemini", vec![stream(&gemini(&[frame]))]).await;
    assert_eq!((got.texts(), got.failed().kind), (vec!["half"], LlmErrorKind::Truncated));
    let line = json!({ "message": { "content": "half" }, "done": false });
    let got = ask("ollama", vec![stream(&ollama(&[line]))]).await;
    assert_eq!((got.texts(), got.failed().kind), (vec!["half"], LlmErrorKind::Truncated));
}

#[tokio::test]
async fn ollama_streams_lines() {
    let call = json!({ "function": { "name": "read", "arguments": { "path": "a" } } });
    let lines = [
        json!({ "message": { "role": "assistant", "content": "", "thinking": "hm" }, "done": false }),
        json!({ "message": { "role": "assistant", "content": "I look." }, "done": false }),
        json!({ "message": { "role": "assistant", "content": "", "tool_calls": [call] }, "done": false }),
        ollama_done(Some("stop")),
    ];
    let got = ask("ollama", vec![stream(&ollama(&lines))]).await.assembled();
    assert_eq!(got.message.text(), "I look.");
    let calls: Vec<_> = got.message.tool_calls().map(|call| (&*call.name, &*call.arguments)).collect();
    assert_eq!(calls, [("read", r#"{"path":"a"}"#)]);
    assert_eq!(got.usage, Some(Usage { input_tokens: 10, output_tokens: 3, cached_input_tokens: 0 }));
}

#[tokio::test]
async fn ollama_ends_with_or_without_a_reason() {
    for (reason, meaning) in [(Some("length"), Finish::MaxTokens), (Some("stop"), Finish::Stop), (None, Finish::Stop)] {
        let got = ask("ollama", vec![stream(&ollama(&[ollama_done(reason)]))]).await.assembled();
        assert_eq!(got.finish, Some(meaning));
    }
}

#[tokio::test]
async fn an_error_line_of_ollama_is_not_lost() {
    let lines = [
        json!({ "message": { "content": "half" }, "done": false }),
        json!({ "error": "an error was encountered while running the model" }),
    ];
    let got = ask("ollama", vec![stream(&ollama(&lines))]).await;
    let line = "ollama reported: an error was encountered while running the model";
    assert_eq!((got.failed().kind, &*got.failed().message), (LlmErrorKind::ProviderFailed, line));
}
