//! Prompts as messages, and ends of turns as reasons to stop.

use std::sync::Arc;

use agent::{Input, TurnOutcome};
use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource, Meta, PromptResponse, StopReason};
use llm::{Content, Message};
use serde_json::json;
use session::{Delivery, Source, TurnReason};

use crate::errors::{failed, invalid};

/// A prompt as the message that it is, if it says anything.
pub(crate) fn input(prompt: Vec<ContentBlock>, takes_images: bool) -> Result<Input, Error> {
    let mut content = Vec::new();
    for block in prompt {
        content.push(match block {
            ContentBlock::Text(text) => Content::text(text.text),
            ContentBlock::ResourceLink(link) => Content::text(format!("[{}]({})", link.name, link.uri)),
            ContentBlock::Resource(embedded) => match embedded.resource {
                EmbeddedResourceResource::TextResourceContents(text) => Content::text(resource(&text.uri, &text.text)),
                _ => return Err(invalid("an embedded resource must be text")),
            },
            ContentBlock::Image(image) if takes_images => {
                Content::Image { media_type: image.mime_type.into(), data: image.data.into() }
            }
            ContentBlock::Image(_) => return Err(invalid("this session's model takes no images: choose another")),
            _ => return Err(invalid("a prompt is made of text, links, embedded text and images")),
        });
    }
    let says = |part: &Content| part.as_text().is_none_or(|text| !text.trim().is_empty());
    if !content.iter().any(says) {
        return Err(invalid("the prompt is empty"));
    }
    let message = Arc::new(Message { content, ..Message::user("") });
    Ok(Input { message, source: Source::Prompt, delivery: Delivery::Followup })
}

/// The text of a prompt that is nothing else.
pub(crate) fn line(prompt: &[ContentBlock]) -> Option<&str> {
    match prompt {
        [ContentBlock::Text(text)] => Some(&text.text),
        _ => None,
    }
}

/// A file that the client sends along, told apart from what a person says.
fn resource(uri: &str, text: &str) -> String {
    format!("<resource uri={}>\n{text}\n</resource>", json!(uri))
}

/// The text of a prompt, for a title.
pub(crate) fn title(input: &Input) -> Option<String> {
    let text = input.message.text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(sandbox::one_line(&line.chars().take(TITLE).collect::<String>()).to_string())
}

/// How long a title may be, in characters.
const TITLE: usize = 80;

/// How a turn ended, in the words of the protocol.
pub(crate) fn stopped(outcome: &TurnOutcome) -> Result<PromptResponse, Error> {
    let reason = match &outcome.reason {
        TurnReason::Completed => StopReason::EndTurn,
        TurnReason::MaxTokens => StopReason::MaxTokens,
        TurnReason::Blocked { .. } => StopReason::Refusal,
        TurnReason::Aborted { .. } | TurnReason::Interrupted => StopReason::Cancelled,
        TurnReason::Error { message } => return Err(failed(message.as_deref().unwrap_or("the turn failed"))),
    };
    let usage = serde_json::to_value(outcome.usage).unwrap_or_default();
    let meta: Meta = [("usage".to_owned(), usage)].into_iter().collect();
    Ok(PromptResponse::new(reason).meta(meta))
}
