//! Values as text for people. Nothing of it can move a cursor, whoever wrote the log.

use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sandbox::one_line;

/// What is deeper is indented as this.
const DEEPEST: usize = 16;

/// A text as one line of at most `most` characters.
pub(super) fn brief(text: &str, most: usize) -> String {
    // One more character than is shown, so that a cut is seen; the rest of a huge text is not looked at.
    let end = text.char_indices().nth(most + 1).map_or(text.len(), |(end, _)| end);
    let mut line = one_line(text[..end].trim_end_matches('\n')).to_string();
    if line.chars().count() > most {
        let cut = line.char_indices().nth(most).map_or(line.len(), |(cut, _)| cut);
        line.truncate(cut);
        line.push('…');
    }
    line
}

/// How far what is this deep in a tree is indented. There is an end to it: a lineage may be as deep as a disk is large.
pub(super) fn indent(depth: usize) -> String {
    "  ".repeat(depth.min(DEEPEST))
}

/// Writes every line of a text, indented.
pub(super) fn block(out: &mut dyn Write, indent: &str, style: Style, text: &str) -> io::Result<()> {
    for line in text.lines() {
        let line = one_line(&line.replace('\t', "    ")).to_string();
        write_line(out, indent, style, &line)?;
    }
    Ok(())
}

/// Writes the first `most` lines of a text, cut at `width` characters, and says how many were left out.
pub(super) fn first_lines(
    out: &mut dyn Write,
    indent: &str,
    style: Style,
    text: &str,
    most: usize,
    width: usize,
) -> io::Result<()> {
    let mut lines = text.lines();
    for line in lines.by_ref().take(most) {
        write_line(out, indent, style, &brief(&line.replace('\t', "    "), width))?;
    }
    match lines.count() {
        0 => Ok(()),
        1 => writeln!(out, "{indent}{style}… 1 more line{style:#}"),
        more => writeln!(out, "{indent}{style}… {more} more lines{style:#}"),
    }
}

fn write_line(out: &mut dyn Write, indent: &str, style: Style, line: &str) -> io::Result<()> {
    match line {
        "" => writeln!(out),
        line => writeln!(out, "{indent}{style}{line}{style:#}"),
    }
}

/// Milliseconds since the Unix epoch as local time.
pub(super) fn local_time(millis: u64) -> String {
    let timestamp = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    match timestamp {
        Some(timestamp) => timestamp.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => format!("{millis} ms"),
    }
}

/// A number of bytes in the largest unit that leaves something before the point.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut unit = 0;
    let mut scaled = bytes / 100;
    while scaled >= 10_000 && unit + 1 < UNITS.len() {
        scaled /= 1_000;
        unit += 1;
    }
    format!("{}.{} {}", scaled / 10, scaled % 10, UNITS[unit])
}

/// A count, with its digits in groups of three.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor() {
        let hostile = "a\x1b[2J\u{9b}31m\u{202e}b\rc\u{7}\td";
        let mut out = Vec::new();
        block(&mut out, "| ", Style::new(), &format!("{hostile}\n{hostile}")).unwrap();
        first_lines(&mut out, "| ", Style::new(), hostile, 3, 80).unwrap();
        let out = String::from_utf8(out).unwrap() + &brief(hostile, 80);
        assert!(!out.contains(|c: char| c.is_control() && c != '\n'), "{out:?}");
        assert!(!out.contains('\u{202e}') && out.contains("\\u{1b}[2J"), "{out:?}");
        assert_eq!(out.lines().count(), 4);
    }

    #[test]
    fn a_long_text_is_cut_on_a_character() {
        assert_eq!(brief("äöü", 3), "äöü");
        assert_eq!(brief("äöüß", 3), "äöü…");
        assert_eq!(brief("one\n", 80), "one");
        assert_eq!(brief("one\ntwo", 80), "one\\ntwo");
        assert!(brief(&"\x1b".repeat(100), 10).chars().count() <= 11);
    }

    #[test]
    fn lines_that_are_left_out_are_counted() {
        let told = |text: &str| {
            let mut out = Vec::new();
            first_lines(&mut out, "", Style::new(), text, 2, 80).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(told("a\nb"), "a\nb\n");
        assert_eq!(told("a\nb\nc"), "a\nb\n… 1 more line\n");
        assert_eq!(told("a\nb\nc\nd"), "a\nb\n… 2 more lines\n");
    }

    #[test]
    fn numbers_read_well() {
        let sizes = [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (12_345, "12.3 kB"), (999_999, "999.9 kB")];
        for (bytes, want) in sizes.into_iter().chain([(1_000_000, "1.0 MB"), (u64::MAX, "18446.7 PB")]) {
            assert_eq!(size(bytes), want);
        }
        for (n, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), want);
        }
        assert_eq!(local_time(u64::MAX), "18446744073709551615 ms");
    }
}
