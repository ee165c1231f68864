use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use async_trait::async_trait;
use fs::{FsError, Kind};
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Call, Concurrency, ToolOutput, TypedTool, code};

use crate::access::{failed, files};
use crate::pattern::Names;
use crate::search::{self, BYTES, Ignored, Place, Start, Stop, place};
use crate::walk::{Limits, Skipped, walk};

/// The most names of one answer.
const NAMES: usize = 500;

pub(crate) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Such as `src/**/*.rs`, relative to `path`; without `/` it fits names at any depth.
    pattern: String,
    /// The directory to look below; the workspace root if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Also what `.gitignore` names, and `.git`.
    #[serde(default)]
    include_ignored: bool,
}

/// The names that fit.
#[derive(Default)]
struct Fitting {
    text: String,
    shown: usize,
    all: usize,
}

#[async_trait]
impl TypedTool for Glob {
    type Args = Args;

    fn name(&self) -> &str {
        "glob"
    }

    fn description(&self) -> Cow<'_, str> {
        "Finds files by name, hidden ones too, but not what git ignores. Answers with sorted paths.".into()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn run(&self, args: Args, call: &Call) -> ToolOutput {
        find(args, call).await.unwrap_or_else(|output| output)
    }
}

async fn find(args: Args, call: &Call) -> Result<ToolOutput, ToolOutput> {
    let files = files(call)?;
    let names = Names::new("pattern", &args.pattern);
    let names = names.map_err(|why| ToolOutput::error(code::INVALID_ARGUMENTS, why))?;
    let path = args.path.as_deref().unwrap_or(".");
    let start = match place(&*files, path, Ignored::included(args.include_ignored)).await? {
        Place::Directory(start) => start,
        Place::File { path, .. } => return Err(failed(FsError::NotADirectory(path))),
    };
    let root = files.root().to_owned();
    let found = search::run(call, move |stop| fitting(&names, &root, start, stop)).await?;
    let (fitting, skipped) = found.map_err(failed)?;
    Ok(ToolOutput::text(fitting.told(&skipped)))
}

fn fitting(names: &Names, root: &Path, start: Start, stop: &Stop) -> Result<(Fitting, Skipped), FsError> {
    let mut fitting = Fitting::default();
    let top = start.path.clone();
    let skipped = walk(start, stop, Limits::default(), |seen, _| {
        if names.fit(seen.path.strip_prefix(&top).unwrap_or(seen.path)) {
            fitting.add(&search::shown(root, seen.path), seen.kind);
        }
    })?;
    Ok((fitting, skipped))
}

impl Fitting {
    fn add(&mut self, path: &str, kind: Kind) {
        self.all += 1;
        // Once something is left out, everything behind it is.
        if self.shown + 1 == self.all && self.shown < NAMES && self.text.len() < BYTES {
            let mark = if kind == Kind::Symlink { "@" } else { "" };
            let _infallible = writeln!(self.text, "{path}{mark}");
            self.shown += 1;
        }
    }

    fn told(mut self, skipped: &Skipped) -> String {
        let (shown, all) = (self.shown, self.all);
        if all == 0 {
            let ignored = if skipped.ignored > 0 { "; ignored ones were left out" } else { "" };
            let _infallible = writeln!(self.text, "[no file fits{ignored}]");
        } else if shown < all {
            let _infallible =
                writeln!(self.text, "[{shown} of {all}, {} left out: narrow `pattern` or `path`]", all - shown);
        }
        self.text.push_str(&skipped.told());
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_bounded_and_says_what_it_leaves_out() {
        let mut fitting = Fitting::default();
        assert_eq!(Fitting::default().told(&Skipped::default()), "[no file fits]\n");
        let ignored = Skipped { ignored: 1, ..Skipped::default() };
        assert_eq!(Fitting::default().told(&ignored), "[no file fits; ignored ones were left out]\n");
        for n in 0..NAMES + 3 {
            fitting.add(&format!("f{n}"), Kind::File);
        }
        let said = fitting.told(&Skipped::default());
        assert_eq!(said.lines().count(), NAMES + 1);
        assert!(said.ends_with("f499\n[500 of 503, 3 left out: narrow `pattern` or `path`]\n"), "{said}");
        let mut fitting = Fitting::default();
        for _ in 0..100 {
            fitting.add(&"x".repeat(4000), Kind::File);
        }
        fitting.add("short", Kind::Symlink);
        let said = fitting.told(&Skipped::default());
        assert!(
            said.len() < BYTES + 5000 && said.ends_with("x\n[9 of 101, 92 left out: narrow `pattern` or `path`]\n")
        );
    }
}
