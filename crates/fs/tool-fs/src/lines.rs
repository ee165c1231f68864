//! The lines that match, as a model reads them.

use std::fmt::Write;
use std::io::{self, Read};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pattern::Expression;
use crate::search::{BYTES, Stop};
use crate::walk::{Cut, Skipped};

/// How much of a line is shown, in bytes, and how much of that before what matched.
const SHOWN: usize = 300;
const SHOWN_BEFORE: usize = 100;

/// What is told of what matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Output {
    #[default]
    Content,
    Files,
    Count,
}

/// What was found so far.
pub(crate) struct Found {
    matcher: RegexMatcher,
    output: Output,
    limit: usize,
    searcher: Searcher,
    text: String,
    /// Lines, or files, that the text shows.
    shown: usize,
    /// Whether something was left out: then everything behind it is.
    full: bool,
    lines: u64,
    files: u64,
    searched: u64,
}

/// One file's part.
struct InFile<'a> {
    found: &'a mut Found,
    path: &'a str,
    lines: u64,
    /// Whether the file is named in the text.
    named: bool,
    /// Whether the last line that matched is shown.
    shows: bool,
    /// Whether lines are missing since the last that is shown.
    gap: bool,
}

/// A text that ends when the search does.
struct Watched<'a> {
    text: &'a [u8],
    stop: &'a Stop,
}

impl Found {
    pub(crate) fn new(expression: Expression, output: Output, limit: usize, context: usize) -> Self {
        let Expression { matcher, max_line } = expression;
        let mut builder = SearcherBuilder::new();
        builder.line_terminator(LineTerminator::crlf()).heap_limit(Some(max_line));
        if output == Output::Content {
            builder.line_number(true).before_context(context).after_context(context);
        } else {
            builder.line_number(false);
        }
        let searcher = builder.build();
        Self {
            matcher,
            output,
            limit,
            searcher,
            text: String::new(),
            shown: 0,
            full: false,
            lines: 0,
            files: 0,
            searched: 0,
        }
    }

    /// Looks through a file's text, whose path is as it is to be shown.
    pub(crate) fn search(&mut self, path: &str, text: &[u8], stop: &Stop, skipped: &mut Skipped) {
        if text.contains(&0) {
            skipped.binary += 1;
            return;
        }
        let (matcher, mut searcher) = (self.matcher.clone(), self.searcher.clone());
        let mut file = InFile { found: self, path, lines: 0, named: false, shows: false, gap: false };
        let ended = searcher.search_reader(matcher, Watched { text, stop }, &mut file);
        let lines = file.lines;
        self.searched += 1;
        self.lines += lines;
        self.files += u64::from(lines > 0);
        if lines > 0 {
            self.name(path, lines);
        }
        match (ended, stop.why()) {
            (Ok(()), _) => {}
            (Err(_), Some(_)) => skipped.cut = Some(Cut::Time),
            (Err(_), None) => skipped.long_lines += 1,
        }
    }

    fn name(&mut self, path: &str, lines: u64) {
        let line = match self.output {
            Output::Content => return,
            Output::Files => path.to_owned(),
            Output::Count => format!("{path}: {lines}"),
        };
        if self.has_room() {
            let _infallible = writeln!(self.text, "{line}");
            self.shown += 1;
        }
    }

    fn has_room(&mut self) -> bool {
        self.full |= self.shown >= self.limit || self.text.len() >= BYTES;
        !self.full
    }

    /// All of it, and what it leaves out.
    pub(crate) fn told(mut self, skipped: &Skipped) -> String {
        let (shown, files) = (self.shown as u64, self.files);
        let (all, what) = match self.output {
            Output::Content => (self.lines, format!("lines, in {files} files")),
            Output::Files | Output::Count => (files, "files".to_owned()),
        };
        if files == 0 {
            let ignored = if skipped.ignored > 0 { "; ignored ones were left out" } else { "" };
            let _infallible = writeln!(self.text, "[no line matches in {} files{ignored}]", self.searched);
        } else if shown < all {
            let left = all - shown;
            let _infallible =
                writeln!(self.text, "[{shown} of {all} {what}, {left} left out: narrow `pattern`, `path` or `glob`]");
        }
        self.text.push_str(&skipped.told());
        self.text
    }
}

impl Sink for InFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        self.lines += 1;
        match self.found.output {
            Output::Files => return Ok(false),
            Output::Count => return Ok(true),
            Output::Content => {}
        }
        self.shows = self.found.has_room();
        if self.shows {
            let at = self.found.matcher.find(line.bytes()).ok().flatten().map_or(0, |found| found.start());
            self.add(line.line_number(), ':', line.bytes(), at);
            self.found.shown += 1;
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let shows = match line.kind() {
            SinkContextKind::After => self.shows,
            SinkContextKind::Before | SinkContextKind::Other => self.found.has_room(),
        };
        if shows {
            self.add(line.line_number(), '-', line.bytes(), 0);
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.gap = true;
        Ok(true)
    }
}

impl InFile<'_> {
    fn add(&mut self, number: Option<u64>, mark: char, line: &[u8], at: usize) {
        let text = &mut self.found.text;
        if !self.named {
            let space = if text.is_empty() { "" } else { "\n" };
            let _infallible = writeln!(text, "{space}{}", self.path);
        } else if self.gap {
            text.push_str("--\n");
        }
        (self.named, self.gap) = (true, false);
        let _infallible = writeln!(text, "{}{mark} {}", number.unwrap_or_default(), part(line, at));
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.why() {
            Some(_) => Err(io::Error::other("the search has to end")),
            None => self.text.read(buffer),
        }
    }
}

/// What is shown of a line: all of it, or what is around `at`.
fn part(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= SHOWN {
        return String::from_utf8_lossy(line).into_owned();
    }
    let inside = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let boundary = |at: usize| (at.saturating_sub(3)..=at).rev().find(|at| !inside(at)).unwrap_or(at);
    let from = boundary(at.saturating_sub(SHOWN_BEFORE).min(line.len() - SHOWN));
    let to = boundary((from + SHOWN).min(line.len()));
    let dots = |cut| if cut { "…" } else { "" };
    format!("{}{}{}", dots(from > 0), String::from_utf8_lossy(&line[from..to]), dots(to < line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Case, expression};
    use crate::search::Why;

    fn found(output: Output, (limit, context): (usize, usize), pattern: &str, files: &[(&str, &[u8])]) -> String {
        let expression = expression(pattern, Case::Told).unwrap();
        let (mut found, mut skipped) = (Found::new(expression, output, limit, context), Skipped::default());
        for (path, text) in files {
            found.search(path, text, &Stop::default(), &mut skipped);
        }
        found.told(&skipped)
    }

    const A: (&str, &[u8]) = ("a", b"one\ntwo\r\nthree\nfour\nfive\nsix\ntwo");
    const B: (&str, &[u8]) = ("b", b"two\n");

    #[test]
    fn lines_are_told_with_their_numbers_below_their_file() {
        let check = |(limit, context), want: &str| {
            assert_eq!(found(Output::Content, (limit, context), "^two$", &[A, B]), want);
        };
        check((9, 0), "a\n2: two\n7: two\n\nb\n1: two\n");
        check((9, 1), "a\n1- one\n2: two\n3- three\n--\n6- six\n7: two\n\nb\n1: two\n");
        check((9, 2), "a\n1- one\n2: two\n3- three\n4- four\n5- five\n6- six\n7: two\n\nb\n1: two\n");
        check(
            (1, 1),
            "a\n1- one\n2: two\n3- three\n[1 of 3 lines, in 2 files, 2 left out: narrow `pattern`, `path` or `glob`]\n",
        );
    }

    #[test]
    fn files_are_named_or_counted() {
        assert_eq!(found(Output::Files, (9, 0), "two", &[A, B]), "a\nb\n");
        assert_eq!(found(Output::Count, (9, 0), "two", &[A, B]), "a: 2\nb: 1\n");
        let cut = "a\n[1 of 2 files, 1 left out: narrow `pattern`, `path` or `glob`]\n";
        assert_eq!(found(Output::Files, (1, 0), "two", &[A, B]), cut);
        assert_eq!(found(Output::Files, (9, 0), "none", &[A, B]), "[no line matches in 2 files]\n");
        let binary = found(Output::Count, (9, 0), "two", &[("x", b"two\0"), B]);
        assert_eq!(binary, "b: 1\n[not searched: 1 binary]\n");
    }

    #[test]
    fn a_line_is_shown_around_what_matches() {
        let line = format!("{}here{}", "é".repeat(1000), "x".repeat(1000));
        let said = found(Output::Content, (9, 0), "here", &[("a", line.as_bytes())]);
        assert!(said.starts_with("a\n1: …é") && said.contains("éhere") && said.ends_with("x…\n"), "{said}");
        assert!(said.len() < SHOWN + 20 && !said.contains('\u{fffd}'), "{said}");
        assert_eq!(found(Output::Content, (9, 0), "b", &[("a", b"\xffb\xfe")]), "a\n1: \u{fffd}b\u{fffd}\n");
    }

    #[test]
    fn an_answer_is_bounded_and_still_counts() {
        let many = "two\n".repeat(20_000);
        let said = found(Output::Content, (1000, 0), "two", &[("a", many.as_bytes()), B]);
        assert!(
            said.ends_with("[1000 of 20001 lines, in 2 files, 19001 left out: narrow `pattern`, `path` or `glob`]\n")
        );
        let long = format!("{}\n", "two".repeat(200)).repeat(1000);
        let said = found(Output::Content, (1000, 20), "two", &[("a", long.as_bytes())]);
        assert!(said.len() < BYTES + 10_000 && said.contains("of 1000 lines"), "{}", said.len());
    }

    #[test]
    fn a_line_that_is_too_long_is_not_searched_and_that_is_said() {
        let text = format!("two\n{}two\ntwo\n", "x".repeat(1024 * 1024));
        let said = found(Output::Content, (9, 0), "two", &[("a", text.as_bytes()), B]);
        assert_eq!(said, "a\n1: two\n\nb\n1: two\n[not searched: 1 from an overlong line on]\n");
    }

    #[test]
    fn a_search_ends_within_a_file() {
        let (stop, mut skipped) = (Stop::default(), Skipped::default());
        stop.now(Why::Time);
        let mut found = Found::new(expression("x", Case::Told).unwrap(), Output::Count, 9, 0);
        found.search("a", &b"x\n".repeat(1000), &stop, &mut skipped);
        assert_eq!((found.lines, skipped.cut), (0, Some(Cut::Time)));
    }
}
