//! What may be told of a child that failed.

use subprocess::Environment;

use std::ffi::OsString;

/// The most that is told of a child that failed, in bytes.
pub const DIAGNOSTICS_LIMIT: usize = 4_096;

/// Shorter ones are no secrets, and would be found everywhere.
const SHORTEST_SECRET: usize = 4;

const LEFT_OUT: &str = "[…]";

/// Cleans what is told of a child: nothing of its environment, no frames, no control characters, not too much.
#[derive(Clone)]
pub struct Diagnostics {
    /// The longest first.
    secrets: Vec<String>,
}

impl Diagnostics {
    pub(crate) fn new(env: &Environment, named: &[(OsString, OsString)]) -> Self {
        let values = named.iter().map(|(_, value)| value.to_string_lossy().into_owned());
        let pairs = env.iter().map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
        let mut secrets: Vec<_> = values.chain(pairs).filter(|secret| secret.len() >= SHORTEST_SECRET).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// What may be told of a text that the child wrote: one line, at most [`DIAGNOSTICS_LIMIT`] bytes, the end of it where it
    /// is longer.
    pub fn clean(&self, text: &str) -> String {
        let text = self.secrets.iter().fold(text.to_owned(), |text, secret| match text.contains(secret.as_str()) {
            true => text.replace(secret.as_str(), LEFT_OUT),
            false => text,
        });
        let lines = text.lines().map(plain).filter(|line| !line.is_empty() && !is_frame(line));
        last(&lines.collect::<Vec<_>>().join("; "), DIAGNOSTICS_LIMIT)
    }
}

impl std::fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Diagnostics")
    }
}

/// Without what moves the cursor or colours.
fn plain(line: &str) -> String {
    let (mut out, mut chars) = (String::new(), line.trim().chars());
    while let Some(c) = chars.next() {
        match c {
            // A control sequence ends with its first letter.
            '\u{1b}' => drop(chars.by_ref().find(|c| c.is_ascii_alphabetic() || *c == '~')),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.trim().to_owned()
}

/// Whether a line is, or holds, what goes over a wire.
fn is_frame(line: &str) -> bool {
    line.contains("\"jsonrpc\"") || (line.starts_with(['{', '[']) && serde_json::from_str::<Ignored>(line).is_ok())
}

type Ignored = serde::de::IgnoredAny;

/// The end of a text, on a character boundary.
pub(crate) fn last(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let from = text.ceil_char_boundary(text.len() - (most - LEFT_OUT.len()));
    format!("{LEFT_OUT}{}", &text[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-66
    #[test]
    fn nothing_of_the_environment_and_no_frame_is_told() {
        let env = Environment::default().with("HOME", "/home/ada").with("KEY", "sk-123456");
        let diagnostics = Diagnostics::new(&env, &[("KEY".into(), "sk-123456".into()), ("N".into(), "1".into())]);
        let text = "\u{1b}[31merror\u{1b}[0m: bad key sk-123456\nHOME=/home/ada\n{\"jsonrpc\":\"2.0\",\"id\":1}\n \n\
                    [1, 2]\nsent {\"jsonrpc\": \"2.0\"}\nin /home/ada 1\u{7}\n";
        assert_eq!(diagnostics.clean(text), "error: bad key […]; […]; in /home/ada 1");
    }

    // D-66
    #[test]
    fn it_is_cut_on_a_character() {
        let diagnostics = Diagnostics::new(&Environment::default(), &[]);
        for pad in 0..4 {
            let told = diagnostics.clean(&format!("{}{}", "x".repeat(pad), "😀".repeat(5_000)));
            assert!(told.len() <= DIAGNOSTICS_LIMIT && told.len() > DIAGNOSTICS_LIMIT - 4, "{}", told.len());
            assert!(told.starts_with("[…]😀") && told.ends_with('😀'));
        }
    }
}
