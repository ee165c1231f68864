use std::borrow::Cow;
use std::path::PathBuf;

use async_trait::async_trait;
use fs::{Kind, MAX_FILE_BYTES};
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Call, Concurrency, ToolOutput, TypedTool, code};

use crate::access::{failed, files};
use crate::lines::{Found, Output};
use crate::pattern::{Case, Names, expression};
use crate::search::{self, Ignored, Place, Stop, place};
use crate::walk::{Cut, Limits, MAX_BYTES, Skipped, walk};

/// How many lines or files are shown, unless the call wants fewer or more, and the most of it.
const LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

/// The most lines around each.
const MAX_CONTEXT: usize = 20;

pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// A regular expression, matched line by line.
    pattern: String,
    /// The file, or the directory to look below; the workspace root if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Only files that fit, as `pattern` of `glob`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    /// Lines to show before and after each.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// The lines, the files that have some, or how many each has.
    #[serde(default)]
    output: Output,
    /// The most lines or files to show.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// Also what `.gitignore` names, and `.git`.
    #[serde(default)]
    include_ignored: bool,
}

fn limit() -> usize {
    LIMIT
}

/// A call's arguments that make sense, but for the expression.
struct Wanted {
    pattern: String,
    case: Case,
    names: Option<Names>,
    root: PathBuf,
    output: Output,
    limit: usize,
    context: usize,
}

#[async_trait]
impl TypedTool for Grep {
    type Args = Args;

    fn name(&self) -> &str {
        "grep"
    }

    fn description(&self) -> Cow<'_, str> {
        "Searches the text of files, hidden ones too, but not what git ignores, nor binary files.".into()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn run(&self, args: Args, call: &Call) -> ToolOutput {
        grep(args, call).await.unwrap_or_else(|output| output)
    }
}

async fn grep(args: Args, call: &Call) -> Result<ToolOutput, ToolOutput> {
    let files = files(call)?;
    let wanted = Wanted::new(&args, files.root().to_owned());
    let wanted = wanted.map_err(|why| ToolOutput::error(code::INVALID_ARGUMENTS, why))?;
    let path = args.path.as_deref().unwrap_or(".");
    let place = place(&*files, path, Ignored::included(args.include_ignored)).await?;
    let text = search::run(call, move |stop| wanted.look(place, stop)).await??;
    Ok(ToolOutput::text(text))
}

impl Wanted {
    fn new(args: &Args, root: PathBuf) -> Result<Self, String> {
        if args.context > MAX_CONTEXT {
            return Err(format!("`context` is {}, at most {MAX_CONTEXT} lines are shown around each", args.context));
        }
        if !(1..=MAX_LIMIT).contains(&args.limit) {
            return Err(format!("`limit` is {}, it is between 1 and {MAX_LIMIT}", args.limit));
        }
        let names = args.glob.as_deref().map(|glob| Names::new("glob", glob)).transpose()?;
        let case = if args.ignore_case { Case::Ignored } else { Case::Told };
        let Args { output, limit, context, .. } = *args;
        Ok(Self { pattern: args.pattern.clone(), case, names, root, output, limit, context })
    }

    fn look(self, place: Place, stop: &Stop) -> Result<String, ToolOutput> {
        let Self { pattern, case, names, root, output, limit, context } = self;
        let expression = expression(&pattern, case);
        let expression = expression.map_err(|why| ToolOutput::error(code::INVALID_ARGUMENTS, why))?;
        let mut found = Found::new(expression, output, limit, context);
        let start = match place {
            Place::Directory(start) => start,
            Place::File { path, bytes } => {
                let mut skipped = Skipped::default();
                found.search(&search::shown(&root, &path), &bytes, stop, &mut skipped);
                return Ok(found.told(&skipped));
            }
        };
        let (top, mut read) = (start.path.clone(), 0);
        let skipped = walk(start, stop, Limits::default(), |seen, skipped| {
            let below = seen.path.strip_prefix(&top).unwrap_or(seen.path);
            if seen.kind != Kind::File || names.as_ref().is_some_and(|names| !names.fit(below)) {
                return;
            }
            match seen.directory.read(seen.name, MAX_FILE_BYTES) {
                Ok(bytes) => {
                    read += bytes.len() as u64;
                    found.search(&search::shown(&root, seen.path), &bytes, stop, skipped);
                }
                Err(error) => skipped.passed(&error),
            }
            if read > MAX_BYTES {
                skipped.cut = Some(Cut::Bytes);
            }
        });
        Ok(found.told(&skipped.map_err(failed)?))
    }
}
