use std::borrow::Cow;
use std::fmt::Write;

use async_trait::async_trait;
use fs::{Kind, Listing};
use sandbox::one_line;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Call, Concurrency, ToolOutput, TypedTool};

use crate::access::{failed, files};

/// The most entries of one answer.
const ENTRIES: usize = 1000;

pub(crate) struct List;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Absolute, or relative to the workspace root, which is listed if it is left out.
    #[serde(default = "root")]
    path: String,
}

fn root() -> String {
    ".".to_owned()
}

#[async_trait]
impl TypedTool for List {
    type Args = Args;

    fn name(&self) -> &str {
        "list"
    }

    fn description(&self) -> Cow<'_, str> {
        "Lists a directory, one entry a line: `name/` is a directory, `name@` a symbolic link.".into()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn run(&self, args: Args, call: &Call) -> ToolOutput {
        let files = match files(call) {
            Ok(files) => files,
            Err(output) => return output,
        };
        match files.list(&args.path, ENTRIES).await {
            Ok(listing) => ToolOutput::text(shown(&listing)),
            Err(error) => failed(error),
        }
    }
}

fn shown(listing: &Listing) -> String {
    if listing.entries.is_empty() {
        return "[the directory is empty]".to_owned();
    }
    let mut text = String::new();
    for entry in &listing.entries {
        let mark = match entry.kind {
            Kind::File => "",
            Kind::Directory => "/",
            Kind::Symlink => "@",
            Kind::Pipe => " (named pipe)",
            Kind::Socket => " (socket)",
            Kind::Device => " (device)",
        };
        let _infallible = writeln!(text, "{}{mark}", one_line(&entry.name));
    }
    if listing.truncated {
        let _infallible = writeln!(text, "[{} entries of more]", listing.entries.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use fs::Entry;

    use super::*;

    #[test]
    fn each_entry_is_one_line_and_says_what_it_is() {
        let entry = |name: &str, kind| Entry { name: name.into(), kind };
        let mut listing = Listing { path: "/w".into(), entries: Vec::new(), truncated: false };
        assert_eq!(shown(&listing), "[the directory is empty]");
        listing.entries = vec![entry("a\nb", Kind::File), entry("d", Kind::Directory), entry("l", Kind::Symlink)];
        listing.truncated = true;
        assert_eq!(shown(&listing), "a\\nb\nd/\nl@\n[3 entries of more]\n");
    }
}
