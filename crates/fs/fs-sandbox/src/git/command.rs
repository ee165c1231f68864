//! Commands in git's configuration: a program's path, or a line for a shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A word of a command that may be a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) path: &'a Path,
    /// The first one, where it is a path for sure: it runs as soon as it is there.
    pub(super) is_program: bool,
    pub(super) has_slash: bool,
}

/// Its words, forgivingly: whatever a shell would take out of quotes, after an equals sign, behind an operator.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = Word<'_>> {
    let parts = line.split(|byte| byte.is_ascii_whitespace() || b"!\"'`=;:|&()<>${},".contains(byte));
    let words = parts.filter(|part| !part.is_empty() && !part.contains(&0));
    words.enumerate().map(|(n, part)| {
        let has_slash = part.contains(&b'/');
        Word { path: Path::new(OsStr::from_bytes(part)), is_program: n == 0 && has_slash, has_slash }
    })
}

/// Whether what is there may be what runs: a file that is named by its place, or that is a program.
pub(super) fn runs(path: &Path, has_slash: bool) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| !found.is_dir() && (has_slash || found.is_symlink() || found.mode() & 0o111 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_command_are_found_wherever_a_shell_would() {
        for (line, program, others) in [
            (&b"./tools/monitor"[..], Some("./tools/monitor"), &[][..]),
            (b"node tools/clean.js %f", None, &["node", "tools/clean.js", "%f"]),
            (b"!f() { sh \"tools/x\"; }; f", None, &["f", "sh", "tools/x", "f"]),
            (b"A=b tools/x", None, &["A", "b", "tools/x"]),
            (b"/w/x --with=tools/y", Some("/w/x"), &["--with", "tools/y"]),
            (b"", None, &[]),
            (b"a\0b", None, &[]),
        ] {
            let (first, rest): (Vec<_>, Vec<_>) = words(line).partition(|word| word.is_program);
            let texts = |words: Vec<Word<'_>>| words.iter().map(|word| word.path.to_owned()).collect::<Vec<_>>();
            assert_eq!(texts(first), program.iter().map(Path::new).collect::<Vec<_>>(), "{line:?}");
            assert_eq!(texts(rest), others.iter().map(Path::new).collect::<Vec<_>>(), "{line:?}");
        }
    }
}
