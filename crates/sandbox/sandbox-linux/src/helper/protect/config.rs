//! What a repository's own configuration says that git does not read once there is a `commondir`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Of a longer one it is taken that it says so.
const LONGEST: u64 = 1024 * 1024;

/// Whether it says where the files are that belong to the repository, or that there are none: git reads `core.worktree` and
/// `core.bare` in this one file, without what that includes, and only where there is no `commondir`. It is better to
/// see one too many.
pub(super) fn says_where(git: &Path) -> bool {
    let Ok(config) = File::open(git.join("config")) else { return false };
    // Not a pipe, which nobody may write to.
    if !config.metadata().is_ok_and(|found| found.is_file()) {
        return true;
    }
    let mut text = Vec::new();
    match config.take(LONGEST + 1).read_to_end(&mut text) {
        Ok(read) if read as u64 <= LONGEST => names(&String::from_utf8_lossy(&text).to_ascii_lowercase()),
        Ok(_) | Err(_) => true,
    }
}

fn names(text: &str) -> bool {
    let values = |key: &'static str| {
        text.match_indices(key).filter_map(move |(at, _)| {
            let before = text[..at].chars().next_back();
            let is_key = before.is_none_or(|before| before.is_whitespace() || before == ']' || before == '\u{feff}');
            let rest = text[at + key.len()..].trim_start_matches([' ', '\t', '\r']);
            let value = match rest.chars().next() {
                Some('=') => Some(&rest[1..]),
                None | Some('\n' | '#' | ';') => Some("true\n"),
                Some(_) => None,
            };
            value.filter(|_| is_key)
        })
    };
    let is_no = |value: &str| {
        let line = value.lines().next().unwrap_or_default();
        let line = line.split(['#', ';']).next().unwrap_or_default().trim().trim_matches('"');
        ["false", "no", "off", "0"].contains(&line)
    };
    values("worktree").next().is_some() || values("bare").any(|value| !is_no(value))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn what_says_where_the_files_are_is_seen_however_it_is_written() {
        for text in [
            "[core]\n\tworktree = ../src\n",
            "[core] worktree=x",
            "[core]worktree\t=\tx",
            "[core]\n bare = true",
            "[core]\n bare",
            "[core]\n bare # yes\n",
            "[core]\n bare = \\\n true",
            "[core]\n bare = false\n bare = 1\n",
        ] {
            assert!(names(text), "{text:?}");
        }
        for text in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
            "[core]\n bare = no ; not\n",
            "[extensions]\n worktreeconfig = true\n",
            "[alias]\n wt = worktree list\n addworktree = x\n",
        ] {
            assert!(!names(text), "{text:?}");
        }
    }
}
