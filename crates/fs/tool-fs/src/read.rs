use std::borrow::Cow;

use async_trait::async_trait;
use fs::MAX_FILE_BYTES;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Call, Concurrency, ToolOutput, TypedTool, code, limit_text};

use crate::access::{failed, files};

/// The most lines of one answer, unless the call wants fewer or more.
const LINES: usize = 2000;

/// The most bytes of one answer.
const BYTES: usize = 40 * 1024;

/// The most bytes of one line.
const LINE_BYTES: usize = 2000;

pub(crate) struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Absolute, or relative to the workspace root.
    path: String,
    /// The first line to read, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize", range(min = 1))]
    offset: Option<usize>,
    /// How many lines to read; 2000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize", range(min = 1))]
    limit: Option<usize>,
}

#[async_trait]
impl TypedTool for Read {
    type Args = Args;

    fn name(&self) -> &str {
        "read"
    }

    fn description(&self) -> Cow<'_, str> {
        "Reads a text file. A long file comes in parts: the last line of the answer then says how to go on.".into()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn run(&self, args: Args, call: &Call) -> ToolOutput {
        let files = match files(call) {
            Ok(files) => files,
            Err(output) => return output,
        };
        match files.read_text(&args.path, MAX_FILE_BYTES).await {
            Ok(text) => window(&text, args.offset.unwrap_or(1).max(1), args.limit.unwrap_or(LINES).max(1)),
            Err(error) => failed(error),
        }
    }
}

/// The lines from `first`, at most `most` of them and at most [`BYTES`]; and a last line that says what is missing.
fn window(text: &str, first: usize, most: usize) -> ToolOutput {
    let total = text.split_inclusive('\n').count();
    if total == 0 {
        return ToolOutput::text("[the file is empty]");
    }
    if first > total {
        let text = format!("the file has {total} lines: there is no line {first}");
        return ToolOutput::error(code::FAILED, text);
    }
    let (mut shown, mut last, mut cut) = (String::new(), first - 1, 0);
    for line in text.split_inclusive('\n').skip(first - 1).take(most) {
        let whole = line.len() <= LINE_BYTES;
        let line = if whole { Cow::Borrowed(line) } else { limit_text(line, LINE_BYTES).into() };
        if shown.len() + line.len() > BYTES {
            break;
        }
        shown.push_str(&line);
        last += 1;
        cut += usize::from(!whole);
    }
    if first == 1 && last == total && cut == 0 {
        return ToolOutput::text(shown);
    }
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    let go_on = if last < total { format!("; go on with offset {}", last + 1) } else { String::new() };
    let cut = if cut > 0 { format!("; {cut} long lines are shown in part") } else { String::new() };
    shown.push_str(&format!("[lines {first} to {last} of {total}{go_on}{cut}]"));
    ToolOutput::text(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, first: usize, most: usize, want: &str) {
        assert_eq!(window(text, first, most).to_text(), want);
    }

    #[test]
    fn a_window_says_what_it_leaves_out() {
        check("a\nb\n", 1, 9, "a\nb\n");
        check("a\nb", 1, 9, "a\nb");
        check("", 1, 9, "[the file is empty]");
        check("a\nb\nc\n", 2, 1, "b\n[lines 2 to 2 of 3; go on with offset 3]");
        check("a\nb\nc", 2, 9, "b\nc\n[lines 2 to 3 of 3]");
        check("a\n", 2, 1, "the file has 1 lines: there is no line 2");
        assert!(window("a\n", 2, 1).is_error());
    }

    #[test]
    fn an_answer_is_bounded_however_the_file_is_made() {
        let long = format!("{}\nend\n", "x".repeat(100_000));
        let said = window(&long, 1, LINES).to_text();
        assert!(
            said.len() < 3000 && said.ends_with("end\n[lines 1 to 2 of 2; 1 long lines are shown in part]"),
            "{said}"
        );
        let many = "0123456789\n".repeat(10_000);
        let said = window(&many, 1, usize::MAX).to_text();
        assert!(said.len() < BYTES + 100 && said.ends_with("[lines 1 to 3723 of 10000; go on with offset 3724]"));
        let next = window(&many, 3724, 1).to_text();
        assert!(next.starts_with("0123456789\n[lines 3724 to 3724"));
    }
}
