use crate::{Mode, UnknownMode};

/// The longest justification, in characters.
pub const MAX_JUSTIFICATION_CHARS: usize = 500;

/// A call's wish to run under a wider mode, checked but not yet asked. Made only from arguments that hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscalationRequest {
    sandbox_permissions: Mode,
    justification: String,
}

/// Why a call's escalation arguments are refused. The texts are for the model: each says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EscalationError {
    /// A mode without a reason.
    #[error(
        "`sandbox_permissions` needs a `justification`: say in one sentence why this call needs it, or leave both out"
    )]
    NoJustification,
    /// A reason without a mode.
    #[error("`justification` is only for calls that set `sandbox_permissions`: give both or neither")]
    NoMode,
    /// A mode that does not exist.
    #[error("`sandbox_permissions`: {0}")]
    UnknownMode(#[from] UnknownMode),
    /// A mode that is not wider than what the call has.
    #[error(
        "this call already runs under `{effective}`, and `{asked}` is not wider: leave out `sandbox_permissions` and \
         `justification`"
    )]
    NotWider {
        /// What was asked for.
        asked: Mode,
        /// What the call has.
        effective: Mode,
    },
    /// Too much to read.
    #[error(
        "`justification` has {chars} characters, at most {MAX_JUSTIFICATION_CHARS} are read: say it in one sentence"
    )]
    TooLong {
        /// How many characters it has.
        chars: usize,
    },
}

/// Permission for **one** call, as somebody gave it. Lent to the provider that runs the call and then dropped: it
/// cannot be copied, stored or handed down.
///
/// ```compile_fail,E0599
/// let grant = sandbox::Grant::new(sandbox::Mode::DangerFullAccess);
/// let kept = grant.clone();
/// ```
#[derive(Debug)]
#[must_use = "a grant is for the call it was asked for"]
pub struct Grant {
    mode: Mode,
}

/// How an ask ended that was not allowed. The texts are the result the model gets instead of the call's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotGranted {
    /// Somebody, or the policy, said no.
    #[error(
        "permission rejected: the call was not run. Do not ask for it again; work within the current mode, or say what \
         is missing and why it is needed"
    )]
    Rejected,
    /// The turn was cancelled while the question was open.
    #[error("permission cancelled: the question was withdrawn before it was answered and the call was not run")]
    Cancelled,
    /// Nobody there to ask.
    #[error(
        "permission unavailable: nobody could be asked and the call was not run. Work within the current mode, or say \
         what is missing and why it is needed"
    )]
    Unavailable,
}

impl EscalationRequest {
    /// Reads the two optional arguments of a call whose effective mode is `effective`. Blank counts as left out, and
    /// whatever shows as blank, however long, as one space: nothing is pushed to where a terminal begins a new line.
    /// `None` when the call asks for nothing.
    ///
    /// # Errors
    ///
    /// One without the other, an unknown mode, a mode that is not strictly wider, or a justification that is longer
    /// than [`MAX_JUSTIFICATION_CHARS`].
    pub fn from_args(
        sandbox_permissions: Option<&str>,
        justification: Option<&str>,
        effective: Mode,
    ) -> Result<Option<Self>, EscalationError> {
        let given = |text: Option<&str>| {
            let words = text?.split(is_blank).filter(|word| !word.is_empty()).collect::<Vec<_>>();
            Some(words.join(" ")).filter(|line| !line.is_empty())
        };
        let (asked, justification) = match (given(sandbox_permissions), given(justification)) {
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(EscalationError::NoJustification),
            (None, Some(_)) => return Err(EscalationError::NoMode),
            (Some(mode), Some(justification)) => (mode.parse::<Mode>()?, justification),
        };
        if asked <= effective {
            return Err(EscalationError::NotWider { asked, effective });
        }
        let chars = justification.chars().count();
        if chars > MAX_JUSTIFICATION_CHARS {
            return Err(EscalationError::TooLong { chars });
        }
        Ok(Some(Self { sandbox_permissions: asked, justification }))
    }

    /// The mode it wants: strictly wider than the call's.
    pub fn sandbox_permissions(&self) -> Mode {
        self.sandbox_permissions
    }

    /// Why, in the model's words: one line, not empty, bounded.
    pub fn justification(&self) -> &str {
        &self.justification
    }
}

impl Grant {
    /// The permission to run one call under `mode`. For whoever was answered `allowed-once`.
    pub fn new(mode: Mode) -> Self {
        Self { mode }
    }

    /// The mode it permits.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

/// Whether a character shows as nothing but room.
fn is_blank(c: char) -> bool {
    let fillers = ['\u{115f}', '\u{1160}', '\u{2800}', '\u{3164}', '\u{ffa0}'];
    c.is_whitespace() || c.is_control() || fillers.contains(&c)
}

/// The mode that holds for a call: the session's, or the grant's where that is wider.
pub fn effective(session: Mode, grant: Option<&Grant>) -> Mode {
    grant.map_or(session, |grant| grant.mode.max(session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::*;

    #[test]
    fn both_or_neither_and_strictly_wider() {
        let wide = "danger-full-access";
        let long = "é".repeat(MAX_JUSTIFICATION_CHARS + 1);
        let most = "é".repeat(MAX_JUSTIFICATION_CHARS);
        let forged = format!("tidy up{}Target: /w/a", " ".repeat(73));
        let not_wider = |asked, effective| Err(EscalationError::NotWider { asked, effective });
        let ask =
            |mode, why: &str| Ok(Some(EscalationRequest { sandbox_permissions: mode, justification: why.into() }));
        let cases = [
            (None, None, ReadOnly, Ok(None)),
            (Some(" "), Some(""), ReadOnly, Ok(None)),
            (Some(wide), None, ReadOnly, Err(EscalationError::NoJustification)),
            (Some(wide), Some(" \n"), ReadOnly, Err(EscalationError::NoJustification)),
            (None, Some("why"), ReadOnly, Err(EscalationError::NoMode)),
            (Some("full"), Some("why"), ReadOnly, Err(UnknownMode("full".into()).into())),
            (Some("read-only"), Some("why"), ReadOnly, not_wider(ReadOnly, ReadOnly)),
            (Some("read-only"), Some("why"), WorkspaceWrite, not_wider(ReadOnly, WorkspaceWrite)),
            (Some(wide), Some("why"), DangerFullAccess, not_wider(DangerFullAccess, DangerFullAccess)),
            (Some(wide), Some(&long), WorkspaceWrite, Err(EscalationError::TooLong { chars: 501 })),
            (Some(wide), Some(&most), WorkspaceWrite, ask(DangerFullAccess, &most)),
            (Some("workspace-write"), Some(" a\nb\u{1b} "), ReadOnly, ask(WorkspaceWrite, "a b")),
            (Some(wide), Some("why"), ReadOnly, ask(DangerFullAccess, "why")),
            (Some(wide), Some(&forged), ReadOnly, ask(DangerFullAccess, "tidy up Target: /w/a")),
            (Some(wide), Some("a\u{a0}\u{3000}\u{2028}\u{2800}\u{3164}b"), ReadOnly, ask(DangerFullAccess, "a b")),
        ];
        for (mode, why, effective, want) in cases {
            assert_eq!(EscalationRequest::from_args(mode, why, effective), want, "{mode:?} {why:?} {effective}");
        }
    }

    #[test]
    fn a_grant_widens_and_never_narrows() {
        assert_eq!(effective(ReadOnly, None), ReadOnly);
        assert_eq!(effective(ReadOnly, Some(&Grant::new(WorkspaceWrite))), WorkspaceWrite);
        assert_eq!(effective(DangerFullAccess, Some(&Grant::new(WorkspaceWrite))), DangerFullAccess);
    }
}
