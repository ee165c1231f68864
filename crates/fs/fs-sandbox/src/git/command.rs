//! Commands in git's configuration: a program's path, or a line for a shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a command may name as a file, forgivingly: the whole of it, what stands in quotes, and every word that a shell would
/// make of it.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let quoted = line.split(|byte| matches!(byte, b'"' | b'\'')).skip(1).step_by(2);
    let words = line.split(|byte| byte.is_ascii_whitespace() || b"!\"'`=;:|&()<>${},".contains(byte));
    let all = [line.trim_ascii()].into_iter().chain(quoted).chain(words);
    all.filter(|word| !word.is_empty() && !word.contains(&0))
}

/// Where a word leads: as it is, and behind what a shell may have put for a variable or a command. Nothing of it need exist.
pub(super) fn files(word: &[u8], top: &Path, home: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let at_home = || Some(home?.join(behind(word, b"HOME").or_else(|| behind(word, b"~"))?));
    let in_top = behind(word, b"").or_else(|| behind(word, b"PWD")).map(|path| top.join(path));
    [Some(top.join(OsStr::from_bytes(word))), in_top, at_home()].into_iter().flatten()
}

/// What comes behind a name and slashes.
fn behind<'a>(word: &'a [u8], name: &[u8]) -> Option<&'a Path> {
    let rest = word.strip_prefix(name)?;
    let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
    (slashes > 0).then(|| Path::new(OsStr::from_bytes(&rest[slashes..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_names_is_found_wherever_a_shell_would() {
        for (line, file) in [
            ("./tools/monitor", "/w/tools/monitor"),
            ("node tools/clean.js %f", "/w/tools/clean.js"),
            ("!f() { sh \"tools/x\"; }; f", "/w/tools/x"),
            ("A=b tools/x", "/w/tools/x"),
            ("/w/x --with=tools/y", "/w/tools/y"),
            ("/w/x --with=tools/y", "/w/x"),
            ("sh clean.sh", "/w/clean.sh"),
            ("./my tools/m", "/w/my tools/m"),
            ("sh 'my tools/m' x", "/w/my tools/m"),
            ("$(git rev-parse --show-toplevel)/tools/g", "/w/tools/g"),
            ("\"$PWD\"/tools/g", "/w/tools/g"),
            ("${PWD}/tools/g", "/w/tools/g"),
            ("$HOME/bin/g", "/h/bin/g"),
            ("~/bin/g", "/h/bin/g"),
        ] {
            let found = words(line.as_bytes()).flat_map(|word| files(word, Path::new("/w"), Some(Path::new("/h"))));
            let found: Vec<_> = found.collect();
            assert!(found.iter().any(|found| found == Path::new(file)), "{line}: {found:?}");
        }
        assert_eq!((words(b" \t").count(), words(b"a\0b").count()), (0, 0));
    }
}
