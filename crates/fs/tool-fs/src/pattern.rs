//! What a call looks for, as a model writes it: names and text.

use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

/// The longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1000;

/// How large a compiled expression may be, and how long the lines may be that are then searched, in bytes. A search can
/// take as many steps as both multiplied, and in the middle of a line it cannot be stopped.
const MAX_COMPILED: [(usize, usize); 3] = [(32 * KIB, 1024 * KIB), (256 * KIB, 128 * KIB), (2048 * KIB, 16 * KIB)];

/// How much memory a search keeps for speed, in bytes.
const MAX_CACHE: usize = 4096 * KIB;

const KIB: usize = 1024;

/// How deep an expression may nest.
const MAX_NESTING: u32 = 50;

/// Paths, relative to where a search begins.
#[derive(Debug)]
pub(crate) struct Names {
    matcher: GlobMatcher,
    /// Whether a pattern without `/` is for the last name alone.
    last_name: bool,
}

impl Names {
    /// `argument` is what the pattern is called in the call.
    pub(crate) fn new(argument: &str, pattern: &str) -> Result<Self, String> {
        fits(argument, pattern)?;
        let plain = pattern.strip_prefix("./").unwrap_or(pattern);
        if plain.starts_with('/') {
            return Err(format!("`{argument}` is relative to `path`: give the directory in `path`, the rest here"));
        }
        if Path::new(plain).components().any(|part| part == Component::ParentDir) {
            return Err(format!("`{argument}` goes down from `path` and has no `..`: give the directory in `path`"));
        }
        if plain.starts_with('!') {
            return Err(format!("`{argument}` says what is wanted: there is no `!` for what is not"));
        }
        let glob = GlobBuilder::new(plain).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| format!("`{argument}` is no pattern for names: {}", error.kind()))?;
        Ok(Self { matcher: glob.compile_matcher(), last_name: !plain.contains('/') })
    }

    pub(crate) fn fit(&self, path: &Path) -> bool {
        let name = if self.last_name { path.file_name().map(Path::new) } else { None };
        self.matcher.is_match(name.unwrap_or(path))
    }
}

/// How letters are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Told,
    Ignored,
}

/// A regular expression, in time that is linear in the text, whatever it is.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) matcher: RegexMatcher,
    /// The longest line to search, in bytes.
    pub(crate) max_line: usize,
}

pub(crate) fn expression(pattern: &str, case: Case) -> Result<Expression, String> {
    fits("pattern", pattern)?;
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).crlf(true).case_insensitive(case == Case::Ignored);
    builder.dfa_size_limit(MAX_CACHE).nest_limit(MAX_NESTING);
    for (compiled, max_line) in MAX_COMPILED {
        match builder.size_limit(compiled).build(pattern) {
            Ok(matcher) => return Ok(Expression { matcher, max_line }),
            Err(error) if error.to_string().contains("size limit") => {}
            Err(error) => return Err(no_expression(&error)),
        }
    }
    Err("`pattern` is too large once compiled: use smaller repetitions, or `(?-u)` where letters are ASCII".to_owned())
}

fn no_expression(error: &grep_regex::Error) -> String {
    match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => {
            "`pattern` has a line end in it, and is matched line by line".to_owned()
        }
        _ => format!("`pattern` is no regular expression: {}", last_line(&error.to_string())),
    }
}

fn fits(argument: &str, pattern: &str) -> Result<(), String> {
    if pattern.is_empty() {
        Err(format!("`{argument}` is empty"))
    } else if pattern.len() > MAX_PATTERN_BYTES {
        Err(format!("`{argument}` has {} bytes, at most {MAX_PATTERN_BYTES} are taken", pattern.len()))
    } else {
        Ok(())
    }
}

/// An error of the parser shows the pattern first, which its sender knows, and says what is wrong with it last.
fn last_line(error: &str) -> &str {
    let last = error.lines().last().unwrap_or(error);
    last.strip_prefix("error: ").unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher;

    use super::*;

    #[test]
    fn names_fit_as_they_do_for_gitignore() {
        let check = |pattern: &str, path: &str, want: bool| {
            assert_eq!(Names::new("pattern", pattern).unwrap().fit(Path::new(path)), want, "{pattern} {path}");
        };
        check("*.rs", "a.rs", true);
        check("*.rs", "src/deep/a.rs", true);
        check("./*.rs", "a.rs", true);
        check("src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/deep/a.rs", false);
        check("src/*.rs", "x/src/a.rs", false);
        check("src/**/*.rs", "src/a.rs", true);
        check("**/*.{rs,toml}", "a/Cargo.toml", true);
        check("*", ".hidden", true);
        check("[ab].c", "x/b.c", true);
        check("*.RS", "a.rs", false);
    }

    #[test]
    fn what_is_no_pattern_is_said() {
        let long = "a".repeat(MAX_PATTERN_BYTES + 1);
        for (pattern, want) in [
            ("", "`glob` is empty"),
            (&*long, "`glob` has 1001 bytes, at most 1000 are taken"),
            ("/etc/*", "`glob` is relative to `path`"),
            ("a/../b", "`glob` goes down from `path`"),
            ("!a", "`glob` says what is wanted"),
            ("[a", "`glob` is no pattern for names: unclosed character class"),
            ("{a", "`glob` is no pattern for names: unclosed alternate group"),
        ] {
            let error = Names::new("glob", pattern).unwrap_err();
            assert!(error.starts_with(want), "{pattern}: {error}");
        }
        for (pattern, want) in [
            ("", "`pattern` is empty"),
            (&*long, "`pattern` has 1001 bytes"),
            ("(a", "`pattern` is no regular expression: unclosed group"),
            ("a\\nb", "`pattern` has a line end in it"),
            (r"(?:\w{100}){100}", "`pattern` is too large once compiled"),
            (&*"(".repeat(60), "`pattern` is no regular expression: "),
            (&*format!("{}a{}", "(".repeat(60), ")".repeat(60)), "`pattern` is no regular expression: exceed"),
        ] {
            let error = expression(pattern, Case::Told).unwrap_err();
            assert!(error.starts_with(want) && !error.contains('\n'), "{pattern}: {error}");
        }
    }

    #[test]
    fn the_larger_an_expression_the_shorter_the_lines() {
        let line = |pattern: &str| expression(pattern, Case::Told).unwrap().max_line;
        let lines = [line("fn [a-z]+"), line(r"\w{1,5}"), line(r"\b[A-Z]\w{2,30}\b")];
        assert_eq!(lines, [1024 * KIB, 128 * KIB, 16 * KIB]);
    }

    #[test]
    fn lines_end_as_they_do_on_either_system() {
        let found = |pattern: &str, case, text: &str| {
            expression(pattern, case).unwrap().matcher.is_match(text.as_bytes()).unwrap()
        };
        assert!(found("^b$", Case::Told, "a\r\nb\r\n") && found("^b$", Case::Told, "a\nb\n"));
        assert!(found("É", Case::Ignored, "é") && !found("É", Case::Told, "é"));
    }
}
