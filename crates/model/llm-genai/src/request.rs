use std::borrow::Cow;
use std::sync::Arc;

use genai::chat::{
    Binary, CacheControl, ChatMessage, ChatOptions, ChatRequest, ContentPart, MessageOptions, Tool, ToolCall,
    ToolResponse,
};
use llm::{Content, Message, Request, Role, ToolSchema};
use serde_json::{Map, Value, json};

use crate::provider::Provider;

/// What Anthropic's API must be told, when nobody asks for more or less.
const ANTHROPIC_MAX_TOKENS: u32 = 8192;

/// A request in the library's words, as the provider wants to be spoken to.
pub(crate) fn translate(provider: Provider, request: &Request) -> (ChatRequest, ChatOptions) {
    let mut translation = Translation {
        provider,
        pictures: provider.takes_images(&request.model),
        messages: Vec::with_capacity(request.messages.len() + 1),
        held: Vec::new(),
    };
    if !request.system.is_empty() {
        translation.messages.push(ChatMessage::system(&*request.system));
    }
    let turn = last_of_user(request);
    for (at, message) in request.messages.iter().enumerate() {
        translation.message(message, at >= turn);
    }
    translation.flush();
    let mut messages = translation.messages;
    if provider == Provider::Anthropic {
        mark_for_cache(&mut messages, !request.system.is_empty());
    }
    let mut chat = ChatRequest::new(messages);
    if provider != Provider::Anthropic && !request.tools.is_empty() {
        chat.tools = Some(request.tools.iter().map(tool).collect());
    }
    (chat, options(provider, request))
}

/// A name for a call that the provider takes, whoever made it up.
fn call_id(provider: Provider, id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match provider {
        Provider::Anthropic => id.chars().map(|c| if plain(c) { c } else { '_' }).collect(),
        Provider::DeepSeek | Provider::OpenAi | Provider::Gemini | Provider::Ollama => id.to_owned(),
    }
}

/// A call's arguments as an object, which is what every API wants, even if the model wrote something else.
fn arguments(written: &str) -> Value {
    match serde_json::from_str(written) {
        Ok(Value::Object(map)) => Value::Object(map),
        _ if written.trim().is_empty() => Value::Object(Map::new()),
        _ => json!({ "unreadable": written }),
    }
}

/// The seal on a thought, with whose seal it is: no other provider may be shown it.
pub(crate) fn seal(provider: Provider, signature: &str) -> String {
    format!("{}:{signature}", provider.name())
}

/// As [`seal`], for a thought that only its provider can read.
pub(crate) fn seal_unreadable(data: &str) -> String {
    format!("{UNREADABLE}{data}")
}

const UNREADABLE: &str = "anthropic-redacted:";

struct Translation {
    provider: Provider,
    pictures: bool,
    messages: Vec<ChatMessage>,
    /// Parts of a message from the user's side that is not complete yet.
    held: Vec<ContentPart>,
}

impl Translation {
    fn message(&mut self, message: &Message, this_turn: bool) {
        if message.role == Role::Assistant {
            self.flush();
            self.assistant(message, this_turn);
            return;
        }
        let mut speaks = false;
        for part in &message.content {
            match part {
                Content::ToolResult { call_id, content, is_error } => self.result(call_id, content, *is_error),
                Content::Text { .. } | Content::Image { .. } => {
                    // Pictures that belong to results before it go first, in a message of their own.
                    if !speaks && self.provider != Provider::Anthropic {
                        self.flush();
                    }
                    speaks = true;
                    let part = self.spoken(part);
                    self.held.extend(part);
                }
                Content::Thinking { .. } | Content::ToolCall(_) => {}
            }
        }
        if speaks && self.provider != Provider::Anthropic {
            self.flush();
        }
    }

    fn assistant(&mut self, message: &Message, this_turn: bool) {
        let mut parts = Vec::new();
        let mut says_something = false;
        for part in &message.content {
            match part {
                Content::Text { text } if text.trim().is_empty() => {}
                Content::Text { text } => {
                    says_something = true;
                    parts.push(ContentPart::Text(text.to_string()));
                }
                Content::ToolCall(call) => {
                    says_something = true;
                    parts.push(ContentPart::ToolCall(ToolCall {
                        call_id: call_id(self.provider, &call.call_id),
                        fn_name: call.name.to_string(),
                        fn_arguments: arguments(&call.arguments),
                        thought_signatures: None,
                    }));
                }
                Content::Thinking { text, signature } => {
                    parts.extend(self.thought(text, signature.as_deref(), this_turn));
                }
                Content::Image { .. } | Content::ToolResult { .. } => {}
            }
        }
        if says_something {
            self.messages.push(ChatMessage::assistant(parts));
        }
    }

    fn thought(&self, text: &str, signature: Option<&str>, this_turn: bool) -> Vec<ContentPart> {
        let own = signature.and_then(|seal| seal.strip_prefix(self.provider.name())?.strip_prefix(':'));
        match (self.provider, own) {
            (Provider::Anthropic, Some(own)) => {
                vec![ContentPart::ThoughtSignature(own.into()), ContentPart::ReasoningContent(text.into())]
            }
            (Provider::Anthropic, None) => {
                let data = signature.and_then(|seal| seal.strip_prefix(UNREADABLE));
                let block = |data| json!({ "type": "redacted_thinking", "data": data });
                data.map(|data| ContentPart::from_custom(block(data), None)).into_iter().collect()
            }
            (Provider::Gemini, Some(own)) => vec![ContentPart::ThoughtSignature(own.into())],
            // Wanted back until the user speaks again, and only then.
            (Provider::DeepSeek, _) if this_turn && signature.is_none() => {
                vec![ContentPart::ReasoningContent(text.into())]
            }
            (Provider::DeepSeek | Provider::OpenAi | Provider::Gemini | Provider::Ollama, _) => Vec::new(),
        }
    }

    fn result(&mut self, id: &str, content: &[Content], is_error: bool) {
        let id = call_id(self.provider, id);
        if self.provider == Provider::Anthropic {
            // The library's own form has no room for pictures, nor for the flag.
            let blocks: Vec<_> = content.iter().filter_map(|part| self.block(part)).collect();
            let mut block = json!({ "type": "tool_result", "tool_use_id": id });
            if !blocks.is_empty() {
                block["content"] = Value::Array(blocks);
            }
            if is_error {
                block["is_error"] = true.into();
            }
            self.held.push(ContentPart::from_custom(block, None));
            return;
        }
        let (seen, told): (Vec<_>, Vec<_>) = content
            .iter()
            .filter_map(|part| self.spoken(part))
            .partition(|part| matches!(part, ContentPart::Binary(_)));
        let mut text = told.into_iter().filter_map(ContentPart::into_text).collect::<Vec<_>>().join("\n");
        if is_error && !text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")) {
            text = format!("error: {text}");
        }
        if !seen.is_empty() && self.provider != Provider::Ollama {
            text.push_str(if text.is_empty() { "see below" } else { "\n(see below)" });
            self.held.push(ContentPart::Text(format!("what the tool call {id} shows:")));
        }
        let mut parts = vec![ContentPart::ToolResponse(ToolResponse::new(id, text))];
        match self.provider {
            Provider::Ollama => parts.extend(seen),
            Provider::DeepSeek | Provider::OpenAi | Provider::Anthropic | Provider::Gemini => self.held.extend(seen),
        }
        self.messages.push(ChatMessage::tool(parts));
    }

    /// Text or a picture; in words, a picture that the model cannot see; nothing for nothing.
    fn spoken(&self, part: &Content) -> Option<ContentPart> {
        match part {
            Content::Text { text } if text.trim().is_empty() => None,
            Content::Text { text } => Some(ContentPart::Text(text.to_string())),
            Content::Image { media_type, data } if self.sees(media_type) => {
                Some(ContentPart::Binary(Binary::from_base64(&**media_type, &**data, None)))
            }
            Content::Image { media_type, .. } => Some(ContentPart::Text(unseen(media_type))),
            Content::Thinking { .. } | Content::ToolCall(_) | Content::ToolResult { .. } => None,
        }
    }

    fn block(&self, part: &Content) -> Option<Value> {
        let text = |text: Cow<'_, str>| Some(json!({ "type": "text", "text": text }));
        match part {
            Content::Text { text } if text.trim().is_empty() => None,
            Content::Text { text: plain } => text(Cow::Borrowed(plain)),
            Content::Image { media_type, data } if self.sees(media_type) => {
                let source = json!({ "type": "base64", "media_type": media_type, "data": data });
                Some(json!({ "type": "image", "source": source }))
            }
            Content::Image { media_type, .. } => text(Cow::Owned(unseen(media_type))),
            Content::Thinking { .. } | Content::ToolCall(_) | Content::ToolResult { .. } => None,
        }
    }

    fn sees(&self, media_type: &str) -> bool {
        self.pictures && media_type.starts_with("image/")
    }

    fn flush(&mut self) {
        if !self.held.is_empty() {
            self.messages.push(ChatMessage::user(std::mem::take(&mut self.held)));
        }
    }
}

/// Where the user spoke last, or 0.
fn last_of_user(request: &Request) -> usize {
    let by_user = |(at, message): (usize, &Arc<Message>)| (message.role == Role::User).then_some(at);
    request.messages.iter().enumerate().filter_map(by_user).last().unwrap_or(0)
}

fn unseen(media_type: &str) -> String {
    format!("[a picture ({media_type}) that this model cannot be shown]")
}

/// Marks the end of what stays the same and the end of what was said so far: the next step finds both in the cache.
fn mark_for_cache(messages: &mut [ChatMessage], has_system: bool) {
    let mark = || Some(MessageOptions::from(CacheControl::Ephemeral));
    if let Some(last) = messages.last_mut() {
        last.options = mark();
    }
    if let Some(system) = messages.first_mut().filter(|_| has_system) {
        system.options = mark();
    }
}

fn options(provider: Provider, request: &Request) -> ChatOptions {
    let mut options = ChatOptions::default().with_capture_usage(true);
    options.max_tokens = request.sampling.max_tokens;
    // By way of decimal digits, so that 0.7 is sent as 0.7.
    let wider = |narrow: f32| narrow.to_string().parse().ok().filter(|wide: &f64| wide.is_finite());
    options.temperature = request.sampling.temperature.and_then(wider);
    match provider {
        Provider::DeepSeek => options.extra_body = Some(json!({ "model": request.model })),
        Provider::OpenAi => {
            options.extra_body = Some(json!({ "model": request.model }));
            // Without a word about caching, the library turns it off for the newer models.
            options.cache_control = Some(CacheControl::Ephemeral5m);
        }
        Provider::Anthropic => {
            options.max_tokens.get_or_insert(ANTHROPIC_MAX_TOKENS);
            // Thoughts that are encrypted come with what is captured, not with what is streamed.
            options.capture_reasoning_content = Some(true);
            let mut body = json!({ "model": request.model });
            if !request.tools.is_empty() {
                // The library takes a tool named `web_search` for the provider's own.
                body["tools"] = request.tools.iter().map(anthropic_tool).collect();
            }
            options.extra_body = Some(body);
        }
        // Models before these refuse to be asked for thoughts.
        Provider::Gemini if ["2.5", "gemini-3", "gemini-4"].iter().any(|new| request.model.contains(new)) => {
            options.capture_reasoning_content = Some(true);
        }
        Provider::Gemini | Provider::Ollama => {}
    }
    options
}

fn tool(schema: &ToolSchema) -> Tool {
    let tool = Tool::new(&*schema.name).with_schema((*schema.input_schema).clone());
    tool.with_description(&*schema.description)
}

fn anthropic_tool(schema: &ToolSchema) -> Value {
    json!({ "name": schema.name, "description": schema.description, "input_schema": *schema.input_schema })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_whatever_the_model_wrote() {
        assert_eq!(arguments(r#"{"b":1,"a":[2]}"#), json!({ "b": 1, "a": [2] }));
        assert_eq!(arguments(" "), json!({}));
        let deep = "[".repeat(10_000);
        for broken in [r#"{"path": "a"#, "null", "[1]", "\"x\"", "1e999", &deep] {
            assert_eq!(arguments(broken), json!({ "unreadable": broken }));
        }
    }

    #[test]
    fn anthropic_is_given_only_ids_that_it_takes() {
        assert_eq!(call_id(Provider::Anthropic, "functions.read:0#é"), "functions_read_0__");
        assert_eq!(call_id(Provider::OpenAi, "functions.read:0"), "functions.read:0");
    }

    #[test]
    fn a_temperature_is_sent_as_it_was_written() {
        let mut request = Request::to("m");
        request.sampling.temperature = Some(0.7);
        assert_eq!(options(Provider::Ollama, &request).temperature, Some(0.7));
        request.sampling.temperature = Some(f32::NAN);
        assert_eq!(options(Provider::Ollama, &request).temperature, None);
    }
}
