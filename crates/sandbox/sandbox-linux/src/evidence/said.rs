//! What a program said at its end.

/// How many lines from the end are looked at, and how long one may be.
const LAST: usize = 20;
const LONGEST: usize = 2_000;
/// An error is told below what it was about, in chains of causes.
const ABOVE: usize = 4;

/// The error that a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    ReadOnly,
    Denied,
    NotPermitted,
    Busy,
}

/// One line that names an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub(super) trouble: Trouble,
    pub(super) line: &'a str,
    /// What may be a path, the likeliest first.
    pub(super) paths: Vec<&'a str>,
    /// Whether it is said to be about writing.
    pub(super) writes: bool,
}

/// In the words of the C library, of Node.js and of Go.
const WORDS: [(&str, Trouble); 4] = [
    ("read-only file system", Trouble::ReadOnly),
    ("permission denied", Trouble::Denied),
    ("operation not permitted", Trouble::NotPermitted),
    ("device or resource busy", Trouble::Busy),
];

/// What is said before the path about what was tried. Where one of them begins, it is about writing.
const WRITING: [&str; 22] = [
    "append", "chang", "copy", "creat", "delet", "install", "link", "lock", "mak", "mkdir", "mov", "overwrit",
    "preserv", "remov", "renam", "replac", "rmdir", "sav", "touch", "truncat", "unlink", "writ",
];
/// The rest of it.
const SAYING: [&str; 20] = [
    "access",
    "can't",
    "cannot",
    "config",
    "could",
    "couldn't",
    "dir",
    "directory",
    "error",
    "failed",
    "fatal",
    "file",
    "hard",
    "not",
    "open",
    "opening",
    "regular",
    "symbolic",
    "to",
    "unable",
];

/// The lines that name an error, the last first.
pub(super) fn ends(text: &str) -> impl Iterator<Item = Said<'_>> {
    let lines: Vec<&str> = text.lines().rev().take(LAST + ABOVE).filter(|line| line.len() <= LONGEST).collect();
    (0..lines.len().min(LAST)).filter_map(move |at| said(&lines[at..]))
}

/// `lines` begins with the line, and goes on with those above it.
fn said<'a>(lines: &[&'a str]) -> Option<Said<'a>> {
    let line = lines[0].trim();
    let small = line.to_ascii_lowercase();
    let (at, words, trouble) = WORDS
        .iter()
        .filter_map(|(words, trouble)| Some((small.rfind(words)?, *words, *trouble)))
        .max_by_key(|it| it.0)?;
    let (before, after) = (&line[..at], &line[at + words.len()..]);
    let mut told = Told::of(before, after);
    if told.paths.is_empty() {
        let above = lines.iter().skip(1).take(ABOVE).map(|line| Told::quoted(line));
        told = above.into_iter().find(|told| !told.paths.is_empty()).unwrap_or_default();
    }
    told.paths.dedup();
    Some(Said { trouble, line, paths: told.paths, writes: told.writes })
}

/// What stands beside an error.
#[derive(Default)]
struct Told<'a> {
    paths: Vec<&'a str>,
    writes: bool,
}

impl<'a> Told<'a> {
    fn of(before: &'a str, after: &'a str) -> Self {
        let quoted = [Self::quoted(before), Self::quoted(after)];
        if quoted.iter().any(|told| !told.paths.is_empty()) {
            let writes = quoted.iter().any(|told| told.writes);
            return Self { paths: quoted.into_iter().flat_map(|told| told.paths).collect(), writes };
        }
        let mut told = Self::default();
        // As zsh says it, and `gcc`.
        told.path(after.strip_prefix(": ").unwrap_or_default().trim());
        // `program: line 1: cannot create PATH: error`, `tar: PATH: Cannot open: error`, `open PATH: error`.
        let before = before.trim_end().trim_end_matches(['(', '[']).trim_end();
        let parts: Vec<_> = before.strip_suffix(':').unwrap_or(before).split(": ").collect();
        // The first is the program, if there is another one.
        let first = usize::from(parts.len() > 1);
        parts[first..].iter().rev().for_each(|part| told.unquoted(part));
        told
    }

    fn quoted(text: &'a str) -> Self {
        let (paths, rest) = quoted(text);
        Self { paths, writes: rest.iter().any(|part| part.split(' ').any(is_about_writing)) }
    }

    /// What comes after the words about what was tried.
    fn unquoted(&mut self, part: &'a str) {
        let mut path = part.trim();
        while let Some(word) = path.split(' ').next().filter(|word| is_about_writing(word) || is_saying(word)) {
            self.writes |= is_about_writing(word);
            path = path[word.len()..].trim_start();
        }
        // A file can have the name of a verb: `cannot create link`.
        let last = part.trim().rsplit(' ').next().filter(|_| path.is_empty() && part.trim().split(' ').count() > 2);
        self.path(last.unwrap_or(path));
    }

    fn path(&mut self, path: &'a str) {
        let is_number = path.strip_prefix("line ").unwrap_or(path).parse::<u32>().is_ok();
        if !path.is_empty() && !is_number {
            self.paths.push(path);
        }
    }
}

fn is_about_writing(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    !word.contains(['/', '.']) && WRITING.iter().any(|verb| word.starts_with(verb))
}

fn is_saying(word: &str) -> bool {
    SAYING.contains(&&*word.to_ascii_lowercase())
}

/// What is between quotes of any kind, and what is not.
fn quoted(text: &str) -> (Vec<&str>, Vec<&str>) {
    const QUOTES: [(char, char); 5] = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')];
    let (mut inside, mut outside, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some((at, open, close)) = rest.char_indices().find_map(|(at, c)| {
        let (open, close) = QUOTES.iter().find(|(open, _)| *open == c)?;
        Some((at, open, close))
    }) {
        let from = &rest[at + open.len_utf8()..];
        // Some write `this'.
        let Some(end) = from.find(*close).or_else(|| from.find('\'').filter(|_| *open == '`')) else { break };
        outside.push(&rest[..at]);
        inside.extend((end > 0).then(|| &from[..end]));
        rest = from[end..].strip_prefix([*close, '\'']).unwrap_or_default();
    }
    outside.push(rest);
    (inside, outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, trouble: Trouble, path: &str) {
        let said = ends(text).next().unwrap_or_else(|| panic!("nothing is found in {text}"));
        assert_eq!(said.trouble, trouble, "{text}");
        assert!(said.paths.contains(&path), "{text}: {:?}", said.paths);
    }

    #[test]
    fn tools_name_an_error_and_a_path() {
        use Trouble::*;
        check("sh: 1: cannot create /o/x: Read-only file system\n", ReadOnly, "/o/x");
        check("sh: 1: cannot create a b/c d: Permission denied", Denied, "a b/c d");
        check("bash: line 1: /o/x: Read-only file system", ReadOnly, "/o/x");
        check("zsh:1: read-only file system: /o/x", ReadOnly, "/o/x");
        check("touch: cannot touch '/o/x': Read-only file system", ReadOnly, "/o/x");
        check("mkdir: cannot create directory ‘/o/x’: Permission denied", Denied, "/o/x");
        check("rm: cannot remove '/o/it'\\''s': Read-only file system", ReadOnly, "/o/it");
        check("mv: cannot move '.git' to 'x': Device or resource busy", Busy, ".git");
        check("chmod: changing permissions of '/o/x': Operation not permitted", NotPermitted, "/o/x");
        check("tar: ./x: Cannot open: Read-only file system", ReadOnly, "./x");
        check("error: could not lock config file .git/config: Read-only file system", ReadOnly, ".git/config");
        check("fatal: Unable to create '/w/.git/index.lock': Read-only file system", ReadOnly, "/w/.git/index.lock");
        check("OSError: [Errno 30] Read-only file system: '/o/x'", ReadOnly, "/o/x");
        check("PermissionError: [Errno 13] Permission denied: '/o/x'", Denied, "/o/x");
        check("Error: EROFS: read-only file system, open '/o/x'", ReadOnly, "/o/x");
        check("open /o/x: read-only file system", ReadOnly, "/o/x");
        check("thread 'main' panicked: cannot write \"/o/x\": Permission denied (os error 13)", Denied, "/o/x");
        check(
            "error: failed to write `/o/target/x`\n\nCaused by:\n  Read-only file system (os error 30)\n",
            ReadOnly,
            "/o/target/x",
        );
    }

    #[test]
    fn the_last_error_counts_first() {
        let text = "a: cannot create 1x: Permission denied\nb: cannot create 2x: Read-only file system\nend\n";
        let found: Vec<_> = ends(text).map(|said| said.trouble).collect();
        assert_eq!(found, [Trouble::ReadOnly, Trouble::Denied]);
    }

    #[test]
    fn output_without_an_error_says_nothing() {
        for text in ["", "\n\n", "error: it failed\n", "permission is denied", &"x".repeat(100_000)] {
            assert_eq!(ends(text).count(), 0, "{text:.40}");
        }
        let far = format!("sh: 1: cannot create /o/x: Permission denied\n{}", "line\n".repeat(LAST));
        assert_eq!(ends(&far).count(), 0);
    }

    #[test]
    fn any_text_is_read_without_a_panic() {
        let text = "‘’“”`'\"': Permission denied ‘\n`é'é: read-only file system “é\n: operation not permitted\n\u{130}: permission denied";
        for (at, _) in text.char_indices() {
            ends(&text[at..]).for_each(drop);
            ends(&text[..at]).for_each(drop);
        }
    }
}
