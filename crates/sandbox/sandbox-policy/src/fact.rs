//! What the model is told of its mode. A fact that changes, so it is not in the system prompt.

use std::sync::Arc;

use sandbox::Mode;
use session::Session;
use system_prompt::RuntimeFact;

use crate::SandboxPolicy;

pub(crate) struct ModeFact(pub(crate) Arc<SandboxPolicy>);

impl RuntimeFact for ModeFact {
    fn order(&self) -> i32 {
        10
    }

    fn state(&self, session: &Session) -> Option<String> {
        let mode = self.0.effective(session);
        let meaning = match mode {
            Mode::ReadOnly => "you can read files and write none",
            Mode::WorkspaceWrite => {
                "you can write below the working directory and in the temporary \
                 directory ($TMPDIR in commands), and nowhere else"
            }
            Mode::DangerFullAccess => "files are not confined",
        };
        Some(format!("Sandbox mode: {mode} ({meaning})."))
    }
}
