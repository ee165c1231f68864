//! Unified diffs, as far as patches of a few lines need them.

use anyhow::{Context, ensure};

/// What a diff does to one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change<'a> {
    pub(super) file: &'a str,
    hunks: Vec<Hunk>,
}

/// Lines that stand somewhere, and what is to stand there.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    old: String,
    new: String,
}

/// Reads a diff whose files begin with `a/` and `b/`.
pub(super) fn parse(diff: &str) -> anyhow::Result<Vec<Change<'_>>> {
    let mut changes: Vec<Change<'_>> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if let Some(file) = line.strip_prefix("+++ b/") {
            changes.push(Change { file: file.trim_end(), hunks: Vec::new() });
            continue;
        }
        if line.starts_with("--- ") {
            continue;
        }
        let change = changes.last_mut().context("the diff does not name its file")?;
        if line.starts_with("@@ ") {
            change.hunks.push(Hunk::default());
            continue;
        }
        let hunk = change.hunks.last_mut().context("lines before the first `@@`")?;
        let (kind, text) = line.split_at_checked(1).context("an empty line in the diff")?;
        match kind {
            " " => {
                hunk.old.push_str(text);
                hunk.new.push_str(text);
            }
            "-" => hunk.old.push_str(text),
            "+" => hunk.new.push_str(text),
            _ => anyhow::bail!("a line of the diff begins with `{kind}`"),
        }
    }
    Ok(changes)
}

impl Change<'_> {
    /// The file, changed. Each place must be there, once: a patch whose line has moved is fine, one whose line has changed
    /// is to be written again.
    pub(super) fn apply(&self, text: &str) -> anyhow::Result<String> {
        let mut text = text.to_owned();
        for Hunk { old, new } in &self.hunks {
            let found = text.matches(old.as_str()).count();
            ensure!(found == 1, "the patch no longer applies: its lines are {found} times in {}", self.file);
            text = text.replacen(old.as_str(), new, 1);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,2 @@\n one\n-two\n three\n@@ -9 +8 @@\n-nine\n+9\n";

    #[test]
    fn a_diff_changes_the_lines_that_it_names() {
        let changes = parse(DIFF).unwrap();
        assert_eq!((changes.len(), changes[0].file), (1, "x.rs"));
        assert_eq!(changes[0].apply("zero\none\ntwo\nthree\nnine\n").unwrap(), "zero\none\nthree\n9\n");
    }

    #[test]
    fn lines_that_are_gone_or_twice_there_are_refused() {
        let changes = parse(DIFF).unwrap();
        for (text, times) in [("one\n2\nthree\nnine\n", 0), ("one\ntwo\nthree\nnine\nnine\n", 2)] {
            let told = changes[0].apply(text).unwrap_err().to_string();
            assert_eq!(told, format!("the patch no longer applies: its lines are {times} times in x.rs"));
        }
        assert!(parse("-two\n").is_err() && parse("+++ b/x\n-two\n").is_err());
        assert!(parse("+++ b/x\n@@ -1 +1 @@\n\\ No newline at end of file\n").is_err());
    }
}
