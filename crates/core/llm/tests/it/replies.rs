//! What a reply is made of, and what is kept of one that is cut.

use futures_util::stream;
use llm::*;

#[tokio::test]
async fn a_thought_ends_where_something_else_begins() {
    let call = || ToolCall { call_id: "1".into(), name: "read".into(), arguments: "{}".into() };
    let chunks = [
        Chunk::Thought("one".into()),
        Chunk::ToolCall(call()),
        Chunk::Thought("two".into()),
        Chunk::ThoughtSignature("seal".into()),
        Chunk::ThoughtSignature("last seal".into()),
        Chunk::Text("said".into()),
        Chunk::Thought("three".into()),
        Chunk::End(Finish::MaxTokens),
    ];
    let assembled = Assembly::collect(replied(chunks)).await.unwrap();
    let thought = |text: &str, signature: Option<&str>| Content::Thinking {
        text: text.into(),
        signature: signature.map(Into::into),
    };
    let want = [
        thought("one", None),
        Content::ToolCall(call()),
        thought("two", Some("last seal")),
        Content::text("said"),
        thought("three", None),
    ];
    assert_eq!(assembled.message.content, want);
    assert_eq!((assembled.finish, assembled.usage), (Some(Finish::MaxTokens), None));
    assert_eq!(assembled.message.text(), "said", "thoughts are not text");
    assert_eq!(assembled.message.tool_calls().collect::<Vec<_>>(), [&call()]);
}

#[tokio::test]
async fn a_seal_without_a_thought_is_kept() {
    let chunks = [Chunk::ThoughtSignature("seal".into()), Chunk::Text("a".into()), Chunk::End(Finish::Stop)];
    let assembled = Assembly::collect(replied(chunks)).await.unwrap();
    let sealed = Content::Thinking { text: "".into(), signature: Some("seal".into()) };
    assert_eq!(assembled.message.content, [sealed, Content::text("a")]);
}

#[tokio::test]
async fn an_error_in_the_middle_is_the_outcome() {
    let error = LlmError::new(LlmErrorKind::ProviderFailed, "502");
    let reply: Reply = Box::pin(stream::iter([Ok(Chunk::Text("half".into())), Err(error.clone())]));
    assert_eq!(Assembly::collect(reply).await, Err(error));
}

#[test]
fn an_unfinished_reply_can_still_be_had() {
    let mut assembly = Assembly::new();
    assert!(assembly.clone().done().message.content.is_empty());
    assembly.push(Chunk::Text("ha".into()));
    assembly.push(Chunk::Text("lf".into()));
    let assembled = assembly.done();
    assert_eq!((assembled.message, assembled.finish), (Message::assistant("half"), None));
}

#[test]
fn only_what_may_pass_by_itself_is_transient() {
    use LlmErrorKind::*;
    let transient = |kind| LlmError::new(kind, "").is_transient();
    assert!([RateLimited, ProviderFailed, Unreachable].into_iter().all(transient));
    assert!(![Unauthorized, InvalidRequest, Truncated, TimedOut, Protocol].into_iter().any(transient));
}

#[test]
fn usage_adds_up_and_leaves_zeros_out() {
    let mut sum = Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 0 };
    assert_eq!(serde_json::to_string(&sum).unwrap(), r#"{"inputTokens":1,"outputTokens":2}"#);
    sum += Usage { input_tokens: 10, output_tokens: 20, cached_input_tokens: 5 };
    assert_eq!(sum, Usage { input_tokens: 11, output_tokens: 22, cached_input_tokens: 5 });
    assert_eq!(sum.total(), 33, "what came from the cache was read too");
}

#[test]
fn messages_have_one_form_on_the_wire() {
    let content = vec![
        Content::text("a"),
        Content::Image { media_type: "image/png".into(), data: "eA==".into() },
        Content::Thinking { text: "t".into(), signature: None },
        Content::ToolCall(ToolCall { call_id: "1".into(), name: "n".into(), arguments: "{".into() }),
        Content::ToolResult { call_id: "1".into(), content: vec![Content::text("r")], is_error: true },
    ];
    let message = Message { role: Role::Assistant, content };
    let wire = concat!(
        r#"{"role":"assistant","content":[{"type":"text","text":"a"},"#,
        r#"{"type":"image","mediaType":"image/png","data":"eA=="},{"type":"thinking","text":"t"},"#,
        r#"{"type":"tool-call","callId":"1","name":"n","arguments":"{"},"#,
        r#"{"type":"tool-result","callId":"1","content":[{"type":"text","text":"r"}],"isError":true}]}"#,
    );
    assert_eq!(serde_json::to_string(&message).unwrap(), wire);
    assert_eq!(serde_json::from_str::<Message>(wire).unwrap(), message);
    assert_eq!(message.text_cow(), "a");
}
