use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use crate::Mode;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Reading a file's content or metadata.
    Read,
    /// Listing a directory.
    List,
    /// Looking for names or text below a directory.
    Search,
    /// Creating or replacing a file.
    Write,
    /// Changing a file from what it holds.
    Edit,
    /// Running a program.
    Execute,
}

/// The sandbox refused something: what, on what, under which mode. Its text is the first line of a denied tool call's
/// result, the same for files and commands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("sandbox denied: {operation} {} (mode {mode})", one_line(.target))]
pub struct Denial {
    /// What was tried.
    pub operation: Operation,
    /// On what: an absolute path, or a command's program. As it is; only the text escapes it.
    pub target: String,
    /// The mode in force for the call.
    pub mode: Mode,
}

impl Operation {
    /// Its name in denials and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Search => "search",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Execute => "execute",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Denial {
    /// A refusal of `operation` on `target` under `mode`.
    pub fn new(operation: Operation, target: impl Into<String>, mode: Mode) -> Self {
        Self { operation, target: target.into(), mode }
    }
}

/// A name as one line of plain text: whatever could break the line, move the cursor or reorder what is read is escaped.
pub fn one_line(name: &str) -> impl fmt::Display + '_ {
    OneLine(name)
}

struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\u{61c}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' => {
                    write!(f, "{}", c.escape_unicode())?;
                }
                c if c.is_control() => write!(f, "{}", c.escape_debug())?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_denial_reads_the_same_everywhere() {
        let denial = Denial::new(Operation::Write, "/abs/path", Mode::ReadOnly);
        assert_eq!(denial.to_string(), "sandbox denied: write /abs/path (mode read-only)");
        let wire = serde_json::json!({"operation": "write", "target": "/abs/path", "mode": "read-only"});
        assert_eq!(serde_json::to_value(&denial).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Denial>(wire).unwrap(), denial);
    }

    #[test]
    fn a_name_cannot_forge_a_second_line() {
        let denial = Denial::new(Operation::Edit, "/a\nok\u{1b}[2K\u{202e}\u{61c}é", Mode::WorkspaceWrite);
        assert_eq!(denial.to_string(), r"sandbox denied: edit /a\nok\u{1b}[2K\u{202e}\u{61c}é (mode workspace-write)");
    }

    proptest! {
        #[test]
        fn whatever_the_target_the_text_is_one_printable_line(target in any::<String>()) {
            let said = Denial::new(Operation::Read, target, Mode::ReadOnly).to_string();
            prop_assert!(!said.chars().any(char::is_control), "{said:?}");
        }
    }

    #[test]
    fn operations_have_one_name_everywhere() {
        use Operation::*;
        for operation in [Read, List, Search, Write, Edit, Execute] {
            assert_eq!(serde_json::to_value(operation).unwrap(), operation.to_string());
        }
    }
}
