//! The model of the suite: what it does is in its name.

use llm::{Chunk, Finish, LlmAdapter, LlmError, LlmErrorKind, Reply, Role, Route, ToolCall};

use super::Task;
use crate::RESULT_TOOL;

/// The name of the suite's model provider.
pub(super) const PROVIDER: &str = "contract";

/// What [`Task::HandIn`] hands in.
pub(super) const HANDED_IN: &str = r#"{"n":7}"#;

/// Why [`Task::Fail`] fails.
const FAILURE: &str = "the contract wants this request to fail";

pub(super) struct Model;

pub(super) fn route(task: Task) -> Route {
    let model = match task {
        Task::Say(words) => format!("say {words}"),
        Task::Silence => "silence".to_owned(),
        Task::Hang => "hang".to_owned(),
        Task::Fail => "fail".to_owned(),
        Task::Panic => "panic".to_owned(),
        Task::HandIn => format!("call {RESULT_TOOL} {HANDED_IN}"),
        Task::Call(tool) => format!("call {tool} {{}}"),
    };
    Route::new(PROVIDER, model)
}

impl LlmAdapter for Model {
    fn reply(&self, request: llm::Request) -> Reply {
        let (verb, rest) = request.model.split_once(' ').unwrap_or((&request.model, ""));
        let has_called = request.messages.last().is_some_and(|message| message.role == Role::Tool);
        let chunk = match verb {
            "say" => Chunk::Text(rest.into()),
            "hang" => return Box::pin(futures_util::stream::pending()),
            "fail" => {
                let failed = Err(LlmError::new(LlmErrorKind::Unreachable, FAILURE));
                return Box::pin(futures_util::stream::iter([failed]));
            }
            "panic" => panic!("the contract wants this to panic"),
            "call" if !has_called => {
                let (name, arguments) = rest.split_once(' ').expect("a tool and its arguments");
                Chunk::ToolCall(ToolCall { call_id: "1".into(), name: name.into(), arguments: arguments.into() })
            }
            "call" => Chunk::Text("called".into()),
            _ => return llm::replied([Chunk::End(Finish::Stop)]),
        };
        llm::replied([chunk, Chunk::End(Finish::Stop)])
    }
}
