use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm::{LlmAdapter, LlmError, LlmErrorKind, Reply, Request};
use rustix::fs::OFlags;

use crate::play::{Play, cut};
use crate::rule::Rule;
use crate::turn::Turn;

/// A larger file is refused.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Replies from JSON lines, one reply a line: for scenarios that a script in a prompt cannot tell.
///
/// Every field is optional:
///
/// | field | means |
/// |---|---|
/// | `prompt` | answers only where the last prompt has this in it |
/// | `step` | answers after so many replies to that prompt, from 0; left out, the lines with the same `prompt` that leave it out answer one after the other |
/// | `thoughts` | what it thinks first |
/// | `text`, or `chunks` | what it says, in a few chunks or in these |
/// | `calls` | `[{"name", "arguments"}]`, the arguments an object, or a string that is passed on as it is |
/// | `usage` | `{"input_tokens", "output_tokens", "cached_input_tokens"}`; left out, a token is a word |
/// | `finish` | `stop`, `max-tokens` or `refusal` |
/// | `error` | `{"kind", "message"}` ends it instead, after what it said; the kinds are those of `fail` |
/// | `hang`, `cut` | `true`: never ends; ends in the middle |
/// | `delay_ms` | waits first, at most 60000 |
///
/// The first line that fits answers. A request that no line fits is an error that says so.
///
/// ```
/// # use std::sync::Arc; use llm::*; use llm_script::FileScript;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lines = r#"{"prompt": "weather", "text": "It rains."}"#;
/// let model = FileScript::parse("replies.jsonl", lines)?;
/// let mut request = Request::to("file");
/// request.messages.push(Arc::new(Message::user("How is the weather?")));
/// assert_eq!(Assembly::collect(model.reply(request)).await?.message.text(), "It rains.");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct FileScript {
    path: Arc<Path>,
    rules: Arc<[(usize, Rule)]>,
}

/// Why a file holds no replies. Lines count from 1.
#[derive(Debug, thiserror::Error)]
pub enum FileScriptError {
    /// It cannot be read, is no regular file, or is not UTF-8.
    #[error("cannot read the replies in {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is larger than 16 MiB.
    #[error("the replies in {} are larger than {MAX_FILE} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line is no reply.
    #[error("{}:{line}: {what}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The field, where it is known, and what is wrong with it.
        what: String,
    },
}

impl FileScript {
    /// Reads a file of at most 16 MiB; blocks the thread while it does.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, FileScriptError> {
        let path = path.into();
        let mut bytes = Vec::new();
        let read = open(&path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
        let text = match read {
            Ok(size) if size as u64 > MAX_FILE => return Err(FileScriptError::TooLarge { path }),
            Ok(_) => String::from_utf8(bytes).map_err(|not| io::Error::new(io::ErrorKind::InvalidData, not)),
            Err(source) => Err(source),
        };
        match text {
            Ok(text) => Self::parse(path, &text),
            Err(source) => Err(FileScriptError::Read { path, source }),
        }
    }

    /// Reads the lines themselves; errors call them `path`. Blank lines are skipped.
    pub fn parse(path: impl Into<PathBuf>, lines: &str) -> Result<Self, FileScriptError> {
        let path = path.into();
        let mut turns: HashMap<Option<String>, usize> = HashMap::new();
        let mut rules = Vec::new();
        for (at, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let rule = Rule::parse(line).map_err(|wrong| {
                let (path, what) = (path.clone(), wrong.to_string());
                FileScriptError::Line { path, line: at + 1, what }
            })?;
            let step = rule.step.unwrap_or_else(|| {
                let next = turns.entry(rule.prompt.clone()).or_default();
                *next += 1;
                *next - 1
            });
            rules.push((step, rule));
        }
        Ok(Self { path: path.into(), rules: rules.into() })
    }

    fn plan(&self, request: &Request) -> Play {
        let turn = Turn::of(request);
        let fits = |rule: &Rule| rule.prompt.as_ref().is_none_or(|part| turn.prompt.contains(part));
        match self.rules.iter().find(|(step, rule)| *step == turn.step && fits(rule)) {
            Some((_, rule)) => rule.play(turn.messages, turn.input_tokens),
            None => {
                let (path, step, prompt) = (self.path.display(), turn.step, cut(&turn.prompt, 60));
                let why = format!("no line of {path} answers step {step} of the prompt `{prompt}`");
                Play::error(LlmError::new(LlmErrorKind::InvalidRequest, why))
            }
        }
    }
}

/// A pipe that nobody writes would be waited for.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

impl LlmAdapter for FileScript {
    fn reply(&self, request: Request) -> Reply {
        self.plan(&request).into()
    }
}
