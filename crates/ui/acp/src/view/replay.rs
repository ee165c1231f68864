//! Events as updates.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, MessageId, SessionInfoUpdate, SessionUpdate,
};
use llm::Content;
use permission::PresetChosen;
use sandbox_policy::ModeSet;
use session::{
    AssistantMessage, Event, RequestHeaderEvent, SessionTitle, Source, ToolCalled, ToolReturned, UserMessage,
};
use user_approval::PolicySet;

use super::speech::Voice;
use super::tail::Tail;
use super::{Running, State, chunk, tool};

/// Whether an event may change what a client shows of the session's settings.
pub(super) fn sets(event: &Event) -> bool {
    event.get::<PresetChosen>().is_some()
        || event.get::<ModeSet>().is_some()
        || event.get::<PolicySet>().is_some()
        || event.get::<RequestHeaderEvent>().is_some()
}

impl State {
    pub(super) fn show(&mut self, event: &Event, root: &Path, updates: &mut Vec<SessionUpdate>) {
        if let Some(said) = event.get::<AssistantMessage>() {
            self.said(said, updates);
        } else if let Some(call) = event.typed::<ToolCalled>() {
            updates.push(SessionUpdate::ToolCall(tool::begun(&call, root)));
            let running = self.running.entry(call.call_id.clone()).or_insert_with(Running::unknown);
            running.call = Some(call);
        } else if let Some(result) = event.get::<ToolReturned>() {
            let running = self.running.remove(&result.call_id);
            let call = running.as_ref().and_then(|running| running.call.as_deref());
            let before = running.as_ref().filter(|running| running.delegates).map(|running| &running.tail);
            let before = before.and_then(Tail::shown);
            updates.push(SessionUpdate::ToolCallUpdate(tool::ended(call, result, before.as_deref())));
            self.children.answered(&result.call_id);
        } else if let Some(prompt) = event.get::<UserMessage>() {
            if prompt.source == Source::Prompt && event.seq() < self.past {
                updates.extend(prompt.message.content.iter().filter_map(|part| prompted(event.seq(), part)));
            }
        } else if let Some(title) = event.get::<SessionTitle>() {
            updates.push(SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title.title.to_string())));
        }
    }

    fn said(&mut self, said: &AssistantMessage, updates: &mut Vec<SessionUpdate>) {
        let step = (said.turn, said.step);
        let whole = |voice: Voice| {
            let parts = said.message.content.iter().filter_map(|part| match (part, voice) {
                (Content::Text { text }, Voice::Text) | (Content::Thinking { text, .. }, Voice::Thought) => {
                    Some(&**text)
                }
                _ => None,
            });
            parts.collect::<String>()
        };
        for voice in [Voice::Thought, Voice::Text] {
            let whole = whole(voice);
            let rest = self.speech.rest(step, voice, &whole);
            if !rest.is_empty() {
                updates.push(chunk(step, voice, rest));
            }
        }
        self.logged = self.logged.max(Some(step));
    }
}

fn prompted(seq: u64, part: &Content) -> Option<SessionUpdate> {
    let block = match part {
        Content::Text { text } => ContentBlock::from(text.to_string()),
        Content::Image { media_type, data } => {
            ContentBlock::Image(ImageContent::new(data.to_string(), media_type.to_string()))
        }
        Content::Thinking { .. } | Content::ToolCall(_) | Content::ToolResult { .. } => return None,
    };
    let id = MessageId::new(format!("prompt.{seq}"));
    Some(SessionUpdate::UserMessageChunk(ContentChunk::new(block).message_id(id)))
}
