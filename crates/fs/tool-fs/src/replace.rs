//! An edit: one exact text becomes another.

use std::fmt::Write;

/// How many places are named when a text occurs more than once.
const PLACES: usize = 5;

/// The longest file, in lines, that is searched for what was probably meant.
const HINT_LINES: usize = 20_000;

/// How often the text is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// Once: it must be unique.
    Once,
    /// Wherever it occurs.
    All,
}

/// What is wrong with an edit whatever the file holds.
pub(crate) fn senseless(old: &str, new: &str) -> Option<&'static str> {
    if old.is_empty() {
        Some("`old_text` is empty: give the text to replace, or use `write` for a whole file")
    } else if old == new {
        Some("`old_text` and `new_text` are the same: there is nothing to change")
    } else {
        None
    }
}

/// The text with `old` replaced by `new`, and how often; or what a model needs to know to get it right.
pub(crate) fn replace(text: &str, old: &str, new: &str, times: Times) -> Result<(String, usize), String> {
    // In a file of Windows line ends, a model sees and writes plain ones.
    let windows = |part: &str| part.replace("\r\n", "\n").replace('\n', "\r\n");
    let (old, new) = match text.contains(old) {
        false if text.contains(&windows(old)) => (windows(old), windows(new)),
        _ => (old.to_owned(), new.to_owned()),
    };
    let found = text.matches(&old).count();
    match (found, times) {
        (0, _) => Err(missing(text, &old)),
        (1, _) | (_, Times::All) => Ok((text.replace(&old, &new), found)),
        (_, Times::Once) => Err(ambiguous(text, &old, found)),
    }
}

fn missing(text: &str, old: &str) -> String {
    let mut why = "`old_text` does not occur in the file: it must match exactly, white space included".to_owned();
    if let Some(line) = nearly(text, old) {
        let _infallible = write!(why, ". Line {line} differs from it in white space only");
    }
    why
}

fn ambiguous(text: &str, old: &str, found: usize) -> String {
    let lines = text.match_indices(old).take(PLACES).map(|(at, _)| (line_of(text, at)).to_string());
    let lines = lines.collect::<Vec<_>>().join(", ");
    let more = if found > PLACES { ", …" } else { "" };
    format!(
        "`old_text` occurs {found} times, on lines {lines}{more}: add lines around it until it is unique, or set `replace_all`"
    )
}

/// The line where `old` begins, but for white space.
fn nearly(text: &str, old: &str) -> Option<usize> {
    let bare = |text: &str| text.lines().map(|line| line.split_whitespace().collect::<String>()).collect::<Vec<_>>();
    let old = bare(old.trim());
    if old.iter().all(String::is_empty) || text.lines().nth(HINT_LINES).is_some() {
        return None;
    }
    bare(text).windows(old.len()).position(|lines| lines == old).map(|at| at + 1)
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, old: &str, new: &str, times: Times, want: Result<(&str, usize), &str>) {
        let got = replace(text, old, new, times);
        assert_eq!(got.as_ref().map(|(text, n)| (text.as_str(), *n)).map_err(String::as_str), want, "{old:?}");
    }

    #[test]
    fn one_exact_text_becomes_another() {
        check("a b c", "b", "B", Times::Once, Ok(("a B c", 1)));
        check("a b b", "b", "B", Times::All, Ok(("a B B", 2)));
        check("a\r\nb\r\nc", "a\nb", "x\ny", Times::Once, Ok(("x\r\ny\r\nc", 1)));
        check("a\nb", "a\nb", "", Times::Once, Ok(("", 1)));
        let none = "`old_text` does not occur in the file: it must match exactly, white space included";
        check("a b c", "d", "D", Times::Once, Err(none));
        check("a b c", "d", "D", Times::All, Err(none));
        let near = format!("{none}. Line 2 differs from it in white space only");
        check("x\n\tif a {\n\t}\n", "  if a {\n  }", "", Times::Once, Err(&near));
        let twice =
            "`old_text` occurs 2 times, on lines 1, 3: add lines around it until it is unique, or set `replace_all`";
        check("b\na\nb", "b", "B", Times::Once, Err(twice));
        let many = "`old_text` occurs 6 times, on lines 1, 1, 1, 1, 1, …: add lines around it until it is unique, or set `replace_all`";
        check("bbbbbb", "b", "B", Times::Once, Err(many));
    }

    #[test]
    fn a_senseless_edit_is_known_before_the_file_is() {
        assert!(senseless("", "a").is_some() && senseless("a", "a").is_some() && senseless("a", "").is_none());
    }
}
