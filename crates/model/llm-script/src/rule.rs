use std::time::Duration;

use llm::{Chunk, Finish, LlmError, LlmErrorKind, Usage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::play::{End, MAX_WAIT, Play, call, output_tokens, pieces};
use crate::program::KINDS;

/// One line of a file of replies.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) prompt: Option<String>,
    /// The step that it answers, from 0; `None` if its place in the file says so.
    pub(crate) step: Option<usize>,
    said: Vec<Chunk>,
    calls: Vec<(String, String)>,
    usage: Option<Usage>,
    end: Ends,
    delay: Duration,
}

#[derive(Debug)]
enum Ends {
    Finish(Finish),
    Error(LlmError),
    Hang,
    Cut,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuleError {
    #[error("column {column}: {what}")]
    Line { column: usize, what: String },
    #[error("`{field}`: {what}")]
    Field { field: &'static str, what: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    prompt: Option<Box<RawValue>>,
    step: Option<Box<RawValue>>,
    text: Option<Box<RawValue>>,
    chunks: Option<Box<RawValue>>,
    thoughts: Option<Box<RawValue>>,
    calls: Option<Box<RawValue>>,
    usage: Option<Box<RawValue>>,
    finish: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
    delay_ms: Option<Box<RawValue>>,
    hang: Option<Box<RawValue>>,
    cut: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    name: String,
    arguments: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageLine {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(default)]
    cached_input_tokens: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorLine {
    kind: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FinishLine {
    Stop,
    MaxTokens,
    Refusal,
}

impl Rule {
    pub(crate) fn parse(line: &str) -> Result<Self, RuleError> {
        let line: Line = serde_json::from_str(line)
            .map_err(|error| RuleError::Line { column: error.column(), what: without_place(&error) })?;
        let mut said: Vec<Chunk> = Vec::new();
        said.extend(field("thoughts", line.thoughts)?.map(|thoughts: String| Chunk::Thought(thoughts.into())));
        match (field::<String>("text", line.text)?, field::<Vec<String>>("chunks", line.chunks)?) {
            (Some(_), Some(_)) => return Err(wrong("chunks", "a reply has `text` or `chunks`, not both")),
            (Some(text), None) => said.extend(pieces(&text)),
            (None, Some(chunks)) => said.extend(chunks.into_iter().map(|text| Chunk::Text(text.into()))),
            (None, None) => {}
        }
        let calls: Vec<CallLine> = field("calls", line.calls)?.unwrap_or_default();
        Ok(Self {
            prompt: field("prompt", line.prompt)?,
            step: field("step", line.step)?,
            said,
            calls: calls.into_iter().map(arguments).collect::<Result<_, _>>()?,
            usage: field("usage", line.usage)?.map(usage),
            end: ends(line.finish, line.error, line.hang, line.cut)?,
            delay: delay(line.delay_ms)?,
        })
    }

    /// The reply to a request of so many messages, and of so many words since its prompt.
    pub(crate) fn play(&self, messages: usize, input_tokens: u64) -> Play {
        let mut chunks = self.said.clone();
        let calls = self.calls.iter().enumerate();
        chunks.extend(calls.map(|(at, (name, arguments))| call(messages, at, name, arguments)));
        let counted = || Usage { input_tokens, output_tokens: output_tokens(&chunks), cached_input_tokens: 0 };
        let end = match &self.end {
            Ends::Finish(finish) => End::Finish(self.usage.unwrap_or_else(counted), *finish),
            Ends::Error(error) => End::Error(error.clone()),
            Ends::Hang => End::Hang,
            Ends::Cut => End::Cut,
        };
        Play { delay: self.delay, chunks, end }
    }
}

type Raw = Option<Box<RawValue>>;

fn field<T: DeserializeOwned>(field: &'static str, raw: Raw) -> Result<Option<T>, RuleError> {
    raw.map(|raw| serde_json::from_str(raw.get()).map_err(|error| wrong(field, without_place(&error)))).transpose()
}

/// What a JSON error says, but for where: a line is given to the parser alone, and a field too.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what).to_owned()
}

/// Arguments as they were written: an object's own text, or what a string holds.
fn arguments(CallLine { name, arguments }: CallLine) -> Result<(String, String), RuleError> {
    let text = arguments.get();
    match text.chars().next() {
        Some('{') => Ok((name, text.to_owned())),
        Some('"') => Ok((name, serde_json::from_str(text).map_err(|error| wrong("calls", without_place(&error)))?)),
        _ => Err(wrong("calls", format!("the arguments of `{name}` are neither an object nor a string"))),
    }
}

fn usage(UsageLine { input_tokens, output_tokens, cached_input_tokens }: UsageLine) -> Usage {
    Usage { input_tokens, output_tokens, cached_input_tokens }
}

fn ends(finish: Raw, error: Raw, hang: Raw, cut: Raw) -> Result<Ends, RuleError> {
    let finish = field("finish", finish)?.map(|finish| match finish {
        FinishLine::Stop => Ends::Finish(Finish::Stop),
        FinishLine::MaxTokens => Ends::Finish(Finish::MaxTokens),
        FinishLine::Refusal => Ends::Finish(Finish::Refusal),
    });
    let error = field("error", error)?.map(failure).transpose()?.map(Ends::Error);
    let hang = field("hang", hang)?.and_then(|hangs: bool| hangs.then_some(Ends::Hang));
    let cut = field("cut", cut)?.and_then(|cuts: bool| cuts.then_some(Ends::Cut));
    let mut all = [("finish", finish), ("error", error), ("hang", hang), ("cut", cut)]
        .into_iter()
        .filter_map(|(field, ends)| Some((field, ends?)));
    match (all.next(), all.next()) {
        (None, _) => Ok(Ends::Finish(Finish::Stop)),
        (Some((_, ends)), None) => Ok(ends),
        (Some((one, _)), Some((other, _))) => Err(wrong(other, format!("the reply has an end already: `{one}`"))),
    }
}

fn failure(ErrorLine { kind, message }: ErrorLine) -> Result<LlmError, RuleError> {
    let found: Option<LlmErrorKind> = KINDS.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind);
    let names = || KINDS.map(|(name, _)| name).join(", ");
    found
        .map(|kind| LlmError::new(kind, message))
        .ok_or_else(|| wrong("error", format!("no kind `{kind}`; there are: {}", names())))
}

fn delay(raw: Raw) -> Result<Duration, RuleError> {
    let delay = Duration::from_millis(field("delay_ms", raw)?.unwrap_or(0));
    match delay <= MAX_WAIT {
        true => Ok(delay),
        false => Err(wrong("delay_ms", format!("more than {}", MAX_WAIT.as_millis()))),
    }
}

fn wrong(field: &'static str, what: impl ToString) -> RuleError {
    RuleError::Field { field, what: what.to_string() }
}
