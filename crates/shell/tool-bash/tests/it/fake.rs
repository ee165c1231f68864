//! A provider that holds commands by not running them, and an answerer that looks at the disk first.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sandbox::{CannotConfine, CommandLine, Confinement, Denial, Enforcement, Launch, Operation, SandboxProvider};
use session::SessionId;
use subprocess::guard;
use tokio_util::sync::CancellationToken;
use user_approval::{Answer, Answerer, Question};

/// Runs a command only if every file that it redirects its output to may be written.
pub(crate) enum Fake {
    Holds(Enforcement),
    Refuses,
    /// Starts something that never starts the command.
    FailsToStart,
}

impl Fake {
    fn denied(command: &CommandLine<'_>, confinement: &Confinement) -> Option<PathBuf> {
        let line = command.argv.last()?.to_str()?;
        let targets = line.split("> ").skip(1).filter_map(|rest| rest.split([' ', ';', '\n']).next());
        let writable = confinement.boundary.writable_roots();
        let is_writable = |target: &PathBuf| writable.iter().any(|root| target.starts_with(root));
        targets.map(|target| command.cwd.join(target)).find(|target| !is_writable(target))
    }
}

impl SandboxProvider for Fake {
    fn name(&self) -> &str {
        "fake"
    }

    fn enforcement(&self) -> Enforcement {
        match self {
            Self::Holds(enforcement) => enforcement.clone(),
            Self::Refuses | Self::FailsToStart => Enforcement::Full,
        }
    }

    fn confine(&self, command: &CommandLine<'_>, confinement: &Confinement) -> Result<Launch, CannotConfine> {
        let argv = match (self, Self::denied(command, confinement)) {
            (Self::Refuses, _) => return Err(CannotConfine { why: "the moon is full".into() }),
            (Self::FailsToStart, _) => vec!["/no/such/program".into()],
            (Self::Holds(_), None) => command.argv.to_vec(),
            (Self::Holds(_), Some(path)) => {
                vec!["sh".into(), "-c".into(), format!("echo cannot write {}; exit 1", path.display()).into()]
            }
        };
        let (program, args, plan) = guard(Path::new("/proc/self/exe"), &argv, command.cwd);
        Ok(Launch { program, args, plan, temp: confinement.temp.path().to_owned() })
    }

    fn evidence(&self, _: &CommandLine<'_>, confinement: &Confinement, said: &str) -> Option<Denial> {
        let path = said.lines().find_map(|line| line.strip_prefix("cannot write "))?;
        Some(Denial::new(Operation::Write, path, confinement.boundary.mode()))
    }
}

/// Reads a file when it is asked, and answers.
pub(crate) struct Looks {
    pub(crate) file: PathBuf,
    pub(crate) says: Says,
    /// What the file held at each question, and what was asked.
    pub(crate) seen: Mutex<Vec<(String, String)>>,
}

pub(crate) enum Says {
    This(Answer),
    Nothing,
    /// The turn is cancelled while the question is open.
    Cancels(CancellationToken),
}

impl Looks {
    pub(crate) fn new(file: &Path, says: Says) -> Arc<Self> {
        Arc::new(Self { file: file.to_owned(), says, seen: Mutex::default() })
    }
}

#[async_trait]
impl Answerer for Looks {
    fn owns(&self, _: SessionId) -> bool {
        true
    }

    async fn answer(&self, question: &Question) -> Option<Answer> {
        let asked = question.asked.reason.as_deref().unwrap_or_default().to_owned();
        self.seen.lock().unwrap().push((std::fs::read_to_string(&self.file).unwrap_or_default(), asked));
        match &self.says {
            Says::This(answer) => Some(*answer),
            Says::Nothing => None,
            Says::Cancels(token) => {
                token.cancel();
                std::future::pending().await
            }
        }
    }
}
