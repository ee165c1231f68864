use llm::{Finish, LlmAdapter, LlmError, Reply, Request, Usage};

use crate::HELP;
use crate::parse::parse;
use crate::play::{End, Play, call, cut, output_tokens, pieces};
use crate::program::{Ending, KINDS, Step};
use crate::report::{noted, report};
use crate::turn::Turn;

/// A longer prompt is refused, in words.
const MAX_PROMPT: usize = 256 * 1024;

/// The model `offline/script`: does what a small script in the prompt says, and answers everything else with [`HELP`].
///
/// It looks at the conversation's last prompt (a user's message that is no `<runtime-context>` note) and at how many
/// replies came after it: that many steps are done. Tokens are words: those since the prompt are read, those of the reply
/// written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Script;

impl LlmAdapter for Script {
    fn reply(&self, request: Request) -> Reply {
        plan(&request).into()
    }
}

fn plan(request: &Request) -> Play {
    let turn = Turn::of(request);
    let say = |text: &str| Play::say(text, turn.input_tokens);
    if turn.prompt.len() > MAX_PROMPT {
        return say(&format!("This prompt has {} bytes; I read at most {MAX_PROMPT}.", turn.prompt.len()));
    }
    if turn.prompt.trim() == "help" {
        return say(HELP);
    }
    let program = match parse(&turn.prompt) {
        Ok(program) if program.groups.is_empty() => return say(HELP),
        Ok(program) => program,
        Err(wrong) => return say(&format!("I do not understand this prompt: {wrong}.\n\n{HELP}")),
    };
    let (steps, last) = program.steps();
    let Some(step) = steps.get(turn.step) else {
        let answer = if last.says.is_empty() { report(&steps, &turn) } else { last.says.join("\n") };
        let noted = noted(&turn.heard);
        return match (noted.is_empty(), turn.step > steps.len()) {
            (true, _) => Play { delay: last.wait, ..say(&answer) },
            (false, false) => Play { delay: last.wait, ..say(&format!("{answer}\n{noted}")) },
            // The answer was given before.
            (false, true) => say(&noted),
        };
    };
    match not_offered(step, request) {
        None => perform(step, &turn),
        Some(why) if turn.step == 0 => say(&why),
        Some(why) => say(&format!("{}\n{why}", report(&steps, &turn))),
    }
}

/// Why a step cannot be taken.
fn not_offered(step: &Step<'_>, request: &Request) -> Option<String> {
    let offered = |name: &str| request.tools.iter().any(|tool| &*tool.name == name);
    let missing = step.calls.iter().find(|call| !offered(call.tool()))?;
    let names: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    let (label, tool) = (missing.label(), cut(missing.tool(), 60));
    let there_are = if names.is_empty() { "none".into() } else { names.join(", ") };
    Some(format!("{label}: error: no tool named `{tool}` is offered; there are: {there_are}"))
}

fn perform(step: &Step<'_>, turn: &Turn<'_>) -> Play {
    let mut chunks = pieces(&step.says.join("\n"));
    let calls = step.calls.iter().enumerate();
    chunks.extend(calls.map(|(at, asked)| call(turn.messages, at, asked.tool(), &asked.arguments())));
    let usage =
        Usage { input_tokens: turn.input_tokens, output_tokens: output_tokens(&chunks), cached_input_tokens: 0 };
    let end = match step.ending {
        None => End::Finish(usage, Finish::Stop),
        Some(Ending::MaxTokens) => End::Finish(usage, Finish::MaxTokens),
        Some(Ending::Refuse) => End::Finish(usage, Finish::Refusal),
        Some(Ending::Hang) => End::Hang,
        Some(Ending::Fail(kind)) => {
            let name = KINDS.iter().find(|(_, known)| *known == kind).map_or("failure", |(name, _)| *name);
            End::Error(LlmError::new(kind, format!("the script says: fail {name}")))
        }
    };
    Play { delay: step.wait, chunks, end }
}
