use std::collections::HashMap;
use std::sync::Arc;

use llm::{Content, Message, Request, Role, ToolCall};

use crate::play::words_of;

/// How the harness's notes to the model begin. They have the user's role and are no prompts.
const NOTE: &str = "<runtime-context>";

/// How it begins what it tells of something that happened. That is no prompt either.
const NOTICE: &str = "<notice>";

/// What a request says about where its conversation is: its last prompt and everything since.
pub(crate) struct Turn<'a> {
    pub(crate) prompt: String,
    /// How many replies there were since.
    pub(crate) step: usize,
    /// How many messages the request has.
    pub(crate) messages: usize,
    /// Words of the prompt and of what came after it.
    pub(crate) input_tokens: u64,
    /// What was told since the last reply, in order.
    pub(crate) heard: Vec<String>,
    since: Vec<&'a Message>,
}

/// A call that was made, and what the tool answered.
pub(crate) struct Done<'a> {
    pub(crate) step: usize,
    pub(crate) index: usize,
    pub(crate) call: &'a ToolCall,
    pub(crate) result: Option<(&'a [Content], Failed)>,
}

/// Whether a tool failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Failed {
    Yes,
    No,
}

impl<'a> Turn<'a> {
    pub(crate) fn of(request: &'a Request) -> Self {
        let (mut since, mut prompt, mut heard, mut replied) = (Vec::new(), String::new(), Vec::new(), false);
        for message in request.messages.iter().rev().map(Arc::as_ref) {
            since.push(message);
            replied |= message.role == Role::Assistant;
            if message.role == Role::User {
                let text = message.text_cow();
                if text.starts_with(NOTICE) {
                    heard.extend((!replied).then(|| text.into_owned()));
                } else if !text.starts_with(NOTE) {
                    prompt = text.into_owned();
                    break;
                }
            }
        }
        since.reverse();
        heard.reverse();
        let step = since.iter().filter(|message| message.role == Role::Assistant).count();
        let input_tokens = since.iter().map(|message| words_of(message)).sum();
        Self { prompt, step, messages: request.messages.len(), input_tokens, heard, since }
    }

    /// Every call since the prompt, in order.
    pub(crate) fn done(&self) -> Vec<Done<'a>> {
        let results: HashMap<&str, (&'a [Content], Failed)> =
            self.since.iter().flat_map(|message| &message.content).filter_map(result).collect();
        let replies = self.since.iter().filter(|message| message.role == Role::Assistant);
        let calls =
            replies.enumerate().flat_map(|(step, reply)| reply.tool_calls().enumerate().map(move |at| (step, at)));
        calls
            .map(|(step, (index, call))| Done { step, index, call, result: results.get(&*call.call_id).copied() })
            .collect()
    }
}

fn result(part: &Content) -> Option<(&str, (&[Content], Failed))> {
    match part {
        Content::ToolResult { call_id, content, is_error } => {
            Some((call_id, (content, if *is_error { Failed::Yes } else { Failed::No })))
        }
        Content::Text { .. } | Content::Image { .. } | Content::Thinking { .. } | Content::ToolCall(_) => None,
    }
}
