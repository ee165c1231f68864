use std::fmt::{self, Write as _};
use std::sync::Arc;

use sandbox::one_line;

/// What a persona may speak of, in double braces.
pub const PERSONA_VARIABLES: [&str; 5] = ["cwd", "label", "provider", "model", "depth"];

/// The longest persona, in bytes.
const LIMIT: usize = 64 * 1024;

/// Who a child is, instead of who its deployment says: text in which `{{cwd}}`, `{{label}}`, `{{provider}}`, `{{model}}`
/// and `{{depth}}` stand for what is true of the child.
///
/// ```
/// use subagent::Persona;
/// assert!(Persona::new("You review what {{label}} asks for in {{cwd}}.").is_ok());
/// let wrong = Persona::new("You work for {{user}}.").unwrap_err();
/// assert!(wrong.to_string().starts_with("a persona knows no variable `user`; there are: cwd, label"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persona(Arc<[Piece]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Box<str>),
    /// One of [`PERSONA_VARIABLES`].
    Variable(usize),
}

/// What is true of a child, in the order of [`PERSONA_VARIABLES`].
pub(crate) struct Facts<'a>(pub(crate) [&'a dyn fmt::Display; 5]);

/// A text is no persona.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PersonaError {
    /// It says nothing.
    #[error("a persona must say something")]
    Empty,
    /// It is too long.
    #[error("a persona of {0} bytes; at most {LIMIT} are taken")]
    TooLong(usize),
    /// Nothing has this name.
    #[error("a persona knows no variable `{0}`; there are: {known}", known = PERSONA_VARIABLES.join(", "))]
    UnknownVariable(Box<str>),
    /// Two braces open and never close.
    #[error("`{{{{` without `}}}}` in a persona, at byte {0}")]
    Unclosed(usize),
}

impl Persona {
    /// Reads a persona.
    pub fn new(text: &str) -> Result<Self, PersonaError> {
        if text.trim().is_empty() {
            return Err(PersonaError::Empty);
        }
        if text.len() > LIMIT {
            return Err(PersonaError::TooLong(text.len()));
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let at = text.len() - after.len() - 2;
            let (name, behind) = after.split_once("}}").ok_or(PersonaError::Unclosed(at))?;
            let name = name.trim();
            let known = PERSONA_VARIABLES.iter().position(|known| *known == name);
            let shown = || PersonaError::UnknownVariable(one_line(name).to_string().into());
            pieces.extend([Piece::Text(before.into()), Piece::Variable(known.ok_or_else(shown)?)]);
            rest = behind;
        }
        pieces.push(Piece::Text(rest.into()));
        Ok(Self(pieces.into()))
    }

    /// The text for a child. A fact stays on its line, and what it says is not read as a persona again.
    pub(crate) fn of(&self, facts: &Facts<'_>) -> String {
        let mut text = String::new();
        for piece in &*self.0 {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Variable(which) => {
                    let _ = write!(text, "{}", one_line(&facts.0[*which].to_string()));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Result<&str, PersonaError>) {
        let persona = Persona::new(text);
        let told = persona.map(|persona| persona.of(&Facts([&"/home/me", &"{{cwd}}", &"a\n\u{1b}b", &"a/b", &2])));
        assert_eq!(told.as_deref(), want.as_ref().map(|text| &**text), "{text:?}");
    }

    #[test]
    fn variables_stand_for_what_is_true_of_the_child() {
        check("You review code.", Ok("You review code."));
        check(
            "In {{cwd}}, {{ provider }}\nruns {{model}} at {{depth}}.",
            Ok("In /home/me, a\\n\\u{1b}b\nruns a/b at 2."),
        );
        check("{{label}}", Ok("{{cwd}}"));
        check("{ {cwd} } }}", Ok("{ {cwd} } }}"));
    }

    #[test]
    fn what_is_no_persona_is_refused() {
        check(" \n", Err(PersonaError::Empty));
        check("{{who}}", Err(PersonaError::UnknownVariable("who".into())));
        check("{{}}", Err(PersonaError::UnknownVariable("".into())));
        check("{{cwd}} {{cwd", Err(PersonaError::Unclosed(8)));
        check(&"x".repeat(LIMIT + 1), Err(PersonaError::TooLong(LIMIT + 1)));
    }
}
