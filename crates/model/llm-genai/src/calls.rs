use std::sync::Arc;

use llm::{Request, ToolCall};
use serde::de::IgnoredAny;

use crate::provider::Provider;

/// Puts tool calls together from the pieces in which the library hands them out.
pub(crate) struct Calls {
    provider: Provider,
    partial: Vec<Partial>,
    /// Ids given out in this reply.
    given: Vec<Arc<str>>,
}

struct Partial {
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    pub(crate) fn new(provider: Provider) -> Self {
        Self { provider, partial: Vec::new(), given: Vec::new() }
    }

    /// Whether nothing was asked for so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.partial.is_empty() && self.given.is_empty()
    }

    /// Takes the next piece. Returns how many bytes it brought.
    pub(crate) fn push(&mut self, id: String, name: String, arguments: String) -> usize {
        match self.provider {
            Provider::Anthropic => self.replace(id, name, arguments),
            Provider::DeepSeek | Provider::OpenAi | Provider::Gemini | Provider::Ollama => {
                self.append(id, name, arguments)
            }
        }
    }

    /// The calls, in the order in which the model made them. `cut` if the reply is not whole: then a last call whose
    /// arguments are not whole either is left out.
    pub(crate) fn take(&mut self, request: &Request, cut: bool) -> Vec<ToolCall> {
        let mut partial = std::mem::take(&mut self.partial);
        if cut && partial.last().is_some_and(|call| !call.is_whole()) {
            partial.pop();
        }
        partial.into_iter().map(|call| self.finish(request, call.id, call.name, call.arguments)).collect()
    }

    /// A call that arrived in one piece.
    pub(crate) fn finish(&mut self, request: &Request, id: String, name: String, arguments: String) -> ToolCall {
        let call_id = self.unique(request, id, &name);
        let arguments = if arguments.trim().is_empty() { "{}" } else { &*arguments };
        ToolCall { call_id, name: name.into(), arguments: arguments.into() }
    }

    /// Each piece is the whole so far.
    fn replace(&mut self, id: String, name: String, arguments: String) -> usize {
        let last = self.partial.last_mut().filter(|last| last.id == id && arguments.starts_with(&last.arguments));
        let Some(last) = last else {
            return self.begin(id, name, arguments);
        };
        let more = arguments.len() - last.arguments.len();
        last.arguments = arguments;
        more
    }

    /// Each piece is what comes next. The first has a name and an id; the others may have neither, and are then named
    /// `call_N` by the library, for the Nth call.
    fn append(&mut self, id: String, name: String, arguments: String) -> usize {
        let known = self.partial.iter().rposition(|call| call.id == id);
        let at = match known {
            Some(at) if name.is_empty() || !self.partial[at].is_whole() => Some(at),
            None if name.is_empty() => {
                let number = id.strip_prefix("call_").and_then(|number| number.parse::<usize>().ok());
                number.filter(|at| *at < self.partial.len()).or(self.partial.len().checked_sub(1))
            }
            Some(_) | None => None,
        };
        let Some(at) = at else {
            return self.begin(id, name, arguments);
        };
        self.partial[at].arguments.push_str(&arguments);
        arguments.len()
    }

    fn begin(&mut self, id: String, name: String, arguments: String) -> usize {
        let size = id.len() + name.len() + arguments.len();
        self.partial.push(Partial { id, name, arguments });
        size
    }

    /// The provider's id if it has one that was never used in this conversation, else one of our own: results are
    /// paired with calls by id, today and when the conversation is read again.
    fn unique(&mut self, request: &Request, id: String, name: &str) -> Arc<str> {
        let used = |id: &str| {
            let mut calls = request.messages.iter().flat_map(|message| message.tool_calls());
            self.given.iter().any(|given| **given == *id) || calls.any(|call| *call.call_id == *id)
        };
        let own = |number: usize| match self.provider {
            // The library knows this form as a stand-in, and does not send it.
            Provider::Gemini => format!("call#{name}#{number}"),
            Provider::DeepSeek | Provider::OpenAi | Provider::Anthropic | Provider::Ollama => format!("call_{number}"),
        };
        let id = match id {
            id if !id.is_empty() && !used(&id) => id,
            _ => (self.given.len() + request.messages.len()..).map(own).find(|id| !used(id)).expect("few ids are used"),
        };
        let id: Arc<str> = id.into();
        self.given.push(id.clone());
        id
    }
}

impl Partial {
    fn is_whole(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Provider::{Anthropic, OpenAi};

    #[track_caller]
    fn check(provider: Provider, pieces: &[(&str, &str, &str)], cut: bool, whole: &[(&str, &str, &str)]) {
        let mut calls = Calls::new(provider);
        for (id, name, arguments) in pieces {
            calls.push((*id).into(), (*name).into(), (*arguments).into());
        }
        let calls = calls.take(&Request::to("m"), cut);
        let got: Vec<_> = calls.iter().map(|call| (&*call.call_id, &*call.name, &*call.arguments)).collect();
        assert_eq!(got, whole);
    }

    #[test]
    fn fragments_find_their_call() {
        let whole = [("a", "read", r#"{"x":1}"#), ("b", "list", "{}")];
        let only_the_first_is_named = [
            ("a", "read", ""),
            ("call_0", "", r#"{"x""#),
            ("call_0", "", ":1}"),
            ("b", "list", ""),
            ("call_1", "", "{}"),
        ];
        check(OpenAi, &only_the_first_is_named, false, &whole);
        let all_are_named = [("a", "read", r#"{"x""#), ("a", "read", ":1}"), ("b", "list", "{"), ("b", "list", "}")];
        check(OpenAi, &all_are_named, false, &whole);
        let side_by_side = [
            ("a", "read", ""),
            ("b", "list", ""),
            ("call_1", "", "{"),
            ("call_0", "", r#"{"x":1}"#),
            ("call_1", "", "}"),
        ];
        check(OpenAi, &side_by_side, false, &whole);
        let counted_from_one =
            [("a", "read", ""), ("call_1", "", r#"{"x":1}"#), ("b", "list", ""), ("call_2", "", "{}")];
        check(OpenAi, &counted_from_one, false, &whole);
    }

    #[test]
    fn calls_without_ids_of_their_own_get_some() {
        let whole = [("call_0", "read", "{}"), ("call_1", "read", r#"{"x":1}"#)];
        check(OpenAi, &[("", "read", "{}"), ("", "read", r#"{"x":1}"#)], false, &whole);
        let repeated = [("a", "read", "{}"), ("call_1", "list", "{}")];
        check(OpenAi, &[("a", "read", "{}"), ("a", "list", "{}")], false, &repeated);
    }

    #[test]
    fn growing_calls_are_given_out_once() {
        let pieces = [("a", "read", ""), ("a", "read", r#"{"x""#), ("a", "read", r#"{"x":1}"#), ("b", "list", "")];
        check(Anthropic, &pieces, false, &[("a", "read", r#"{"x":1}"#), ("b", "list", "{}")]);
    }

    #[test]
    fn a_call_that_was_cut_off_is_not_a_call() {
        let pieces = [("a", "read", "{}"), ("b", "write", r#"{"text":"ha"#)];
        check(OpenAi, &pieces, true, &[("a", "read", "{}")]);
        check(OpenAi, &pieces, false, &[("a", "read", "{}"), ("b", "write", r#"{"text":"ha"#)]);
        check(Anthropic, &[("a", "read", "")], true, &[]);
    }
}
