use std::time::Duration;

use llm::LlmErrorKind;
use serde::Serialize;

use crate::lex::ends_word;
use crate::play::cut;

/// A script, read. Statements of one group go into one step.
#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) groups: Vec<Vec<Statement>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Call(Call),
    Say(String),
    Wait(Duration),
    End(Ending),
}

/// How a reply ends other than well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ending {
    Hang,
    Fail(LlmErrorKind),
    Refuse,
    MaxTokens,
}

/// A tool to be called.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Read { path: String },
    Write { path: String, content: String, wider: Option<Wider> },
    Edit { path: String, old: String, new: String, all: bool, wider: Option<Wider> },
    List { path: Option<String> },
    Glob { pattern: String },
    Grep { pattern: String, path: Option<String> },
    Bash { command: String, wider: Option<Wider> },
    Delegate { kind: Delegate, label: Option<String>, when: When, via: Option<String>, prompt: String },
    Raw { tool: String, arguments: String },
}

/// What a child is given besides its prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Delegate {
    Spawn,
    Fork,
}

/// Whether a call waits for its child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum When {
    Now,
    InBackground,
}

/// A wish for a wider sandbox, for one call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wider {
    pub(crate) mode: &'static str,
    pub(crate) reason: String,
}

/// One reply of the model.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Step<'a> {
    pub(crate) says: Vec<&'a str>,
    pub(crate) calls: Vec<&'a Call>,
    pub(crate) wait: Duration,
    pub(crate) ending: Option<Ending>,
}

/// The modes that a call can ask for.
pub(crate) const MODES: [&str; 2] = ["workspace-write", "danger-full-access"];

/// The failures that a script can ask for, by name.
pub(crate) const KINDS: [(&str, LlmErrorKind); 8] = [
    ("unauthorized", LlmErrorKind::Unauthorized),
    ("invalid-request", LlmErrorKind::InvalidRequest),
    ("rate-limited", LlmErrorKind::RateLimited),
    ("provider-failed", LlmErrorKind::ProviderFailed),
    ("unreachable", LlmErrorKind::Unreachable),
    ("truncated", LlmErrorKind::Truncated),
    ("timed-out", LlmErrorKind::TimedOut),
    ("protocol", LlmErrorKind::Protocol),
];

/// Words that mean something when they are bare.
const KEYWORDS: [&str; 5] = ["all", "because", "in", "via", "with"];

/// A text as one word of a script: bare where that is clear, else in double quotes.
///
/// ```
/// # use llm_script::quote;
/// assert_eq!(quote("a.txt"), "a.txt");
/// assert_eq!(quote("two words"), r#""two words""#);
/// ```
pub fn quote(text: &str) -> String {
    let special = |c: char| ends_word(c) || matches!(c, '"' | '\'');
    if !text.is_empty() && !text.starts_with('#') && !text.contains(special) && !KEYWORDS.contains(&text) {
        return text.to_owned();
    }
    let escaped = text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n").replace('\t', r"\t");
    format!("\"{escaped}\"")
}

impl Program {
    /// The steps before the last reply, and that reply: what is left after the last call or ending.
    pub(crate) fn steps(&self) -> (Vec<Step<'_>>, Step<'_>) {
        let (mut steps, mut open) = (Vec::new(), Step::default());
        for group in &self.groups {
            let mut closes = false;
            for statement in group {
                match statement {
                    Statement::Call(call) => open.calls.push(call),
                    Statement::Say(text) => open.says.push(text),
                    Statement::Wait(time) => open.wait += *time,
                    Statement::End(ending) => open.ending = Some(*ending),
                }
                closes |= statement.closes();
            }
            if closes {
                steps.push(std::mem::take(&mut open));
            }
        }
        (steps, open)
    }
}

impl Statement {
    /// Whether the step that holds it ends with its group.
    pub(crate) fn closes(&self) -> bool {
        match self {
            Self::Call(_) | Self::End(_) => true,
            Self::Say(_) | Self::Wait(_) => false,
        }
    }
}

impl Delegate {
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Fork => "fork",
        }
    }

    fn tool(self) -> &'static str {
        match self {
            Self::Spawn => "subagent",
            Self::Fork => "subagent_fork",
        }
    }
}

/// Arguments of every tool that has a statement of its own, in the order in which they are written.
#[derive(Default, Serialize)]
struct Arguments<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replace_all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_in_background: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox_permissions: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Option<&'a str>,
}

impl Call {
    /// The tool it calls.
    pub(crate) fn tool(&self) -> &str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Edit { .. } => "edit",
            Self::List { .. } => "list",
            Self::Glob { .. } => "glob",
            Self::Grep { .. } => "grep",
            Self::Bash { .. } => "bash",
            Self::Delegate { kind, via, .. } => via.as_deref().unwrap_or(kind.tool()),
            Self::Raw { tool, .. } => tool,
        }
    }

    /// The call's arguments, as a model would write them.
    pub(crate) fn arguments(&self) -> String {
        let none = Arguments::default();
        let arguments = match self {
            Self::Read { path } => Arguments { path: Some(path), ..none },
            Self::Write { path, content, wider } => {
                Arguments { path: Some(path), content: Some(content), ..none }.asking(wider.as_ref())
            }
            Self::Edit { path, old, new, all, wider } => {
                let replace_all = all.then_some(true);
                Arguments { path: Some(path), old_text: Some(old), new_text: Some(new), replace_all, ..none }
                    .asking(wider.as_ref())
            }
            Self::List { path } => Arguments { path: path.as_deref(), ..none },
            Self::Glob { pattern } => Arguments { pattern: Some(pattern), ..none },
            Self::Grep { pattern, path } => Arguments { pattern: Some(pattern), path: path.as_deref(), ..none },
            Self::Bash { command, wider } => Arguments { command: Some(command), ..none }.asking(wider.as_ref()),
            Self::Delegate { label, when, prompt, .. } => {
                let description = Some(label.clone().unwrap_or_else(|| first_words(prompt)));
                let run_in_background = (*when == When::InBackground).then_some(true);
                Arguments { description, prompt: Some(prompt), run_in_background, ..none }
            }
            Self::Raw { arguments, .. } => return arguments.clone(),
        };
        serde_json::to_string(&arguments).expect("a struct of strings is JSON")
    }

    /// What a report calls it: one short line.
    pub(crate) fn label(&self) -> String {
        let (verb, what) = match self {
            Self::Read { path } => ("read", path.as_str()),
            Self::Write { path, .. } => ("write", path.as_str()),
            Self::Edit { path, .. } => ("edit", path.as_str()),
            Self::List { path } => ("list", path.as_deref().unwrap_or_default()),
            Self::Glob { pattern } => ("glob", pattern.as_str()),
            Self::Grep { pattern, .. } => ("grep", pattern.as_str()),
            Self::Bash { command, .. } => ("bash", command.as_str()),
            Self::Delegate { kind, label: Some(label), .. } => (kind.verb(), label.as_str()),
            Self::Delegate { kind, prompt, .. } => return format!("{} {}", kind.verb(), first_words(prompt)),
            Self::Raw { tool, .. } => ("call", tool.as_str()),
        };
        let what = cut(what, 60).replace(char::is_control, " ");
        format!("{verb} {what}").trim_end().to_owned()
    }
}

impl<'a> Arguments<'a> {
    fn asking(self, wider: Option<&'a Wider>) -> Self {
        let (mode, reason) = (wider.map(|wider| wider.mode), wider.map(|wider| &*wider.reason));
        Self { sandbox_permissions: mode, justification: reason, ..self }
    }
}

fn first_words(prompt: &str) -> String {
    let words: Vec<&str> = prompt.split_whitespace().take(5).collect();
    cut(&words.join(" "), 40).into_owned()
}
