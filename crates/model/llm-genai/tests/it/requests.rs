//! What each provider is sent.

use std::sync::Arc;

use context::Scope;
use llm::{Content, Message, Request, Role, Sampling, ToolCall, ToolSchema};
use llm_genai::Config;
use serde_json::{Value, json};

use crate::openai::word;
use crate::server::{Asked, Server, stream, within};
use crate::world::{World, adapter, config, drain, hello};

/// A conversation with everything in it.
fn conversation(model: &str) -> Request {
    let call = |id: &str, arguments: &str| {
        Content::ToolCall(ToolCall { call_id: id.into(), name: "read".into(), arguments: arguments.into() })
    };
    let picture = || Content::Image { media_type: "image/png".into(), data: "aGk=".into() };
    let result = |id: &str, content: Vec<Content>, is_error| {
        let content = vec![Content::ToolResult { call_id: id.into(), content, is_error }];
        Message { role: Role::Tool, content }
    };
    let thinking = Content::Thinking { text: "hm".into(), signature: None };
    let messages = [
        Message { role: Role::User, content: vec![Content::text("look"), picture()] },
        Message {
            role: Role::Assistant,
            content: vec![thinking, Content::text("I do."), call("a", r#"{"z":1,"b":2}"#), call("b", r#"{"z":"#)],
        },
        result("a", vec![Content::text("fine"), picture()], false),
        result("b", vec![Content::text("no such file")], true),
        Message::user("and?"),
    ];
    let schema = json!({ "type": "object", "properties": { "z": {} } });
    let tool = |name: &str| ToolSchema {
        name: name.into(),
        description: "Reads.".into(),
        input_schema: Arc::new(schema.clone()),
    };
    Request {
        model: model.into(),
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [tool("read"), tool("web_search")].into(),
        sampling: Sampling { max_tokens: Some(99), temperature: Some(0.3) },
    }
}

/// What arrives at a provider; what it answers does not matter.
async fn sent(provider: &str, request: Request) -> Asked {
    World::new(provider, vec![stream(&word("x"))]).await.ask(request).await.asked.remove(0)
}

fn openai_messages(pictures: bool) -> Value {
    let url = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let unseen = "[a picture (image/png) that this model cannot be shown]";
    let call = |id: &str, arguments: &str| json!({ "type": "function", "id": id, "function": { "name": "read", "arguments": arguments } });
    let calls = [call("a", r#"{"z":1,"b":2}"#), call("b", r#"{"unreadable":"{\"z\":"}"#)];
    let mut messages = vec![
        json!({ "role": "system", "content": "Be brief." }),
        json!({ "role": "user", "content": [text("look"), url] }),
        json!({ "role": "assistant", "content": "I do.", "tool_calls": calls }),
        json!({ "role": "tool", "content": "fine\n(see below)", "tool_call_id": "a" }),
        json!({ "role": "tool", "content": "error: no such file", "tool_call_id": "b" }),
        json!({ "role": "user", "content": [text("what the tool call a shows:"), url] }),
        json!({ "role": "user", "content": "and?" }),
    ];
    if !pictures {
        messages[1]["content"] = format!("look\n\n{unseen}").into();
        messages[3]["content"] = format!("fine\n{unseen}").into();
        messages.remove(5);
    }
    messages.into()
}

#[tokio::test]
async fn openai_is_sent_the_whole_conversation() {
    let asked = sent("openai", conversation("gpt-4o-mini")).await;
    assert_eq!(asked.target, "/v1/chat/completions");
    assert_eq!(asked.header("authorization"), Some("Bearer sk-very-secret"));
    let tool = |name: &str| {
        let parameters = json!({ "type": "object", "properties": { "z": {} } });
        json!({ "type": "function", "function": {
            "name": name, "description": "Reads.", "parameters": parameters, "strict": false } })
    };
    let whole = json!({
        "model": "gpt-4o-mini", "stream": true, "stream_options": { "include_usage": true },
        "tools": [tool("read"), tool("web_search")], "messages": openai_messages(true),
        "temperature": 0.3, "max_tokens": 99,
    });
    assert_eq!(asked.body, whole);
}

#[tokio::test]
async fn a_model_that_cannot_see_is_told_what_it_misses() {
    let asked = sent("deepseek", conversation("deepseek-chat")).await;
    assert_eq!(asked.body["messages"], openai_messages(false));
}

#[tokio::test]
async fn deepseek_gets_its_thoughts_back_until_the_user_speaks() {
    let mut request = conversation("deepseek-chat");
    request.messages = request.messages.first(4);
    let asked = sent("deepseek", request).await;
    assert_eq!(asked.body["messages"][2]["reasoning_content"], "hm");
    assert_eq!(asked.body["thinking"], Value::Null);
}

#[tokio::test]
async fn anthropic_is_sent_the_whole_conversation() {
    let asked = sent("anthropic", conversation("claude-sonnet-4-6")).await;
    assert_eq!(asked.target, "/v1/messages");
    assert_eq!(asked.header("x-api-key"), Some("sk-very-secret"));
    assert_eq!(asked.header("anthropic-version"), Some("2023-06-01"));
    let text = |text: &str| json!({ "type": "text", "text": text });
    let marked = |mut block: Value| {
        block["cache_control"] = json!({ "type": "ephemeral" });
        block
    };
    let picture = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "aGk=" } });
    let call = |id: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": "read", "input": input });
    let good = json!({ "type": "tool_result", "tool_use_id": "a", "content": [text("fine"), picture] });
    let bad = json!({ "type": "tool_result", "tool_use_id": "b", "content": [text("no such file")], "is_error": true });
    let calls = [call("a", json!({ "z": 1, "b": 2 })), call("b", json!({ "unreadable": "{\"z\":" }))];
    let tool = |name: &str| {
        let schema = json!({ "type": "object", "properties": { "z": {} } });
        json!({ "name": name, "description": "Reads.", "input_schema": schema })
    };
    let whole = json!({
        "model": "claude-sonnet-4-6", "stream": true, "max_tokens": 99, "temperature": 0.3,
        "system": [marked(text("Be brief."))],
        "tools": [tool("read"), tool("web_search")],
        "messages": [
            { "role": "user", "content": [text("look"), picture] },
            { "role": "assistant", "content": [text("I do."), calls[0], calls[1]] },
            { "role": "user", "content": [good, bad, marked(text("and?"))] },
        ],
    });
    assert_eq!(asked.body, whole);
}

#[tokio::test]
async fn anthropic_is_given_a_limit_of_our_own_choice() {
    for model in ["claude-sonnet-4-6", "claude-opus-5", "something-else"] {
        assert_eq!(sent("anthropic", hello(model)).await.body["max_tokens"], 8192, "{model}");
    }
}

#[tokio::test]
async fn gemini_is_sent_the_whole_conversation() {
    let asked = sent("gemini", conversation("gemini-3.5-flash")).await;
    assert_eq!(asked.target, "/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(asked.header("x-goog-api-key"), Some("sk-very-secret"));
    let body = asked.body;
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
    assert_eq!(body["generationConfig"]["maxOutputTokens"], 99);
    assert_eq!(body["generationConfig"]["thinkingConfig"]["includeThoughts"], true);
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["name"], "read");
    let contents = body["contents"].as_array().unwrap();
    let roles: Vec<_> = contents.iter().map(|content| content["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "model", "user", "user", "user"]);
    assert_eq!(contents[0]["parts"][1]["inline_data"]["data"], "aGk=");
    assert_eq!(contents[1]["parts"][1]["functionCall"]["args"], json!({ "z": 1, "b": 2 }));
    assert_eq!(contents[2]["parts"][1]["functionResponse"]["response"]["content"], "error: no such file");
    assert_eq!(contents[3]["parts"][1]["inline_data"]["data"], "aGk=");
    let old = sent("gemini", hello("gemini-2.0-flash")).await.body;
    assert_eq!(old["generationConfig"]["thinkingConfig"], Value::Null, "older models refuse to be asked");
}

#[tokio::test]
async fn ollama_is_sent_each_result_on_its_own() {
    let asked = sent("ollama", conversation("gemma3:4b")).await;
    assert_eq!(asked.target, "/api/chat");
    assert_eq!(asked.header("authorization"), None);
    let body = asked.body;
    assert_eq!((&body["model"], &body["options"]["num_predict"]), (&json!("gemma3:4b"), &json!(99)));
    let messages = body["messages"].as_array().unwrap();
    let said: Vec<_> = messages.iter().map(|m| (m["role"].as_str().unwrap(), m["content"].as_str().unwrap())).collect();
    let whole = [
        ("system", "Be brief."),
        ("user", "look"),
        ("assistant", "I do."),
        ("tool", "fine"),
        ("tool", "error: no such file"),
        ("user", "and?"),
    ];
    assert_eq!(said, whole);
    assert_eq!((&messages[1]["images"][0], &messages[3]["images"][0]), (&json!("aGk="), &json!("aGk=")));
}

#[tokio::test]
async fn a_models_name_is_sent_as_it_is() {
    for model in ["qwen-max", "gpt-5-high", "o3-mini-low", "a/b::c", "gpt-6-luna"] {
        for provider in ["openai", "deepseek", "anthropic"] {
            let body = sent(provider, hello(model)).await.body;
            assert_eq!(body["model"], model, "{provider}");
            for key in
                ["reasoning_effort", "thinking", "output_config", "prompt_cache_options", "prompt_cache_retention"]
            {
                assert_eq!(body[key], Value::Null, "{provider} {model} {key}");
            }
        }
    }
}

#[tokio::test]
async fn newer_models_of_openai_have_another_word_for_the_limit() {
    let mut request = hello("gpt-5-mini");
    request.sampling.max_tokens = Some(5);
    assert_eq!(sent("openai", request).await.body["max_completion_tokens"], 5);
}

#[tokio::test]
async fn a_server_of_ones_own_needs_no_key() {
    let app = Scope::root("app");
    let server = Server::start(&app, vec![stream(&word("hi"))]).await;
    let own = Config::from_lookup(|name| (name == "OPENAI_BASE_URL").then(|| format!("http://{}/v1/", server.address)));
    let adapter = adapter(&app, "openai", own).await;
    let (chunks, error) = within(drain(adapter.reply(hello("m")))).await;
    assert_eq!((chunks.len(), error), (2, None));
    assert_eq!(server.asked()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_proxy_is_asked_but_not_for_this_machine() {
    let app = Scope::root("app");
    let proxy = Server::start(&app, vec![stream(&word("via"))]).await;
    let url = format!("http://{}", proxy.address);
    for (host, through_proxy) in [("model.invalid", true), ("skipped.invalid", false), ("127.0.0.1:1", false)] {
        let scope = Scope::root("one");
        let variables = Config::from_lookup(|name| match name {
            "HTTP_PROXY" => Some(url.clone()),
            "NO_PROXY" => Some("skipped.invalid".into()),
            _ => None,
        });
        let proxied = Config { proxies: variables.proxies, ..config(host) };
        let before = proxy.asked().len();
        let (_, error) = within(drain(adapter(&scope, "openai", proxied).await.reply(hello("m")))).await;
        assert_eq!((error.is_none(), proxy.asked().len() > before), (through_proxy, through_proxy), "{host}");
    }
    assert_eq!(proxy.asked()[0].target, "http://model.invalid/v1/chat/completions");
}

#[tokio::test]
async fn who_can_see() {
    let app = Scope::root("app");
    for (provider, model, sees) in [
        ("openai", "gpt-5-mini", true),
        ("openai", "gpt-3.5-turbo", false),
        ("openai", "qwen2.5-vl-7b", true),
        ("anthropic", "claude-sonnet-4-6", true),
        ("gemini", "gemini-3.5-flash", true),
        ("deepseek", "deepseek-chat", false),
        ("ollama", "llava:7b", true),
        ("ollama", "llama3.2", false),
    ] {
        let app = app.child_in("one", app.realm().nested()).unwrap();
        assert_eq!(adapter(&app, provider, Config::default()).await.takes_images(model), sees, "{model}");
    }
}
