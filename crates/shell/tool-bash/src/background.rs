//! A command that goes on behind its call: a job of its agent's.

use std::sync::Arc;

use agent::{AgentRef, Agents};
use jobs::{Jobs, NewJob, Opening, Outcome, StartError, Working};
use sandbox::Grant;
use shell::{Line, Shell, ShellError};
use tools::{Call, ToolOutput, code};

use crate::text;

/// Where there are jobs, and whose.
pub(crate) struct Background {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) agents: Arc<Agents>,
}

/// A place for a command that has not begun.
pub(crate) struct Place<'a> {
    jobs: &'a Jobs,
    owner: AgentRef,
    opening: Opening,
}

impl Background {
    pub(crate) fn place(&self, line: &Line, call: &Call) -> Result<Place<'_>, ToolOutput> {
        let no_agent = || ToolOutput::error(code::FAILED, "this session has no live agent that could have jobs");
        let owner = self.agents.get(call.session.id()).ok_or_else(no_agent)?;
        let opening = self.jobs.open(&owner, job(line, None)).map_err(not_started)?;
        Ok(Place { jobs: &self.jobs, owner, opening })
    }
}

impl Place<'_> {
    /// Starts the command, wholly under the grant if there is one, and answers at once. From then on it ends with its job
    /// and not with the turn.
    pub(crate) fn start(
        self,
        shell: Arc<dyn Shell>,
        line: Line,
        grant: Option<Grant>,
    ) -> Result<ToolOutput, ToolOutput> {
        let Self { jobs, owner, opening } = self;
        let opening = match &grant {
            None => opening,
            // Its title says under what it runs, which nobody knew before the answer.
            Some(grant) => {
                drop(opening);
                jobs.open(&owner, job(&line, Some(grant))).map_err(not_started)?
            }
        };
        let granted = grant.as_ref().map(Grant::mode);
        let id = opening.start(move |job| follow(shell, line, grant, job)).map_err(not_started)?;
        Ok(text::started(id, granted))
    }
}

async fn follow(shell: Arc<dyn Shell>, line: Line, grant: Option<Grant>, job: Working) -> Outcome {
    let timeout = line.timeout;
    let ran = shell.run(line, grant.as_ref(), job.cancelled(), &mut |piece| job.push(piece)).await;
    match ran {
        Ok(ran) if text::is_good(&ran) => Outcome::completed(text::last_word(&ran, timeout)),
        Ok(ran) => {
            let outcome = Outcome::failed(text::last_word(&ran, timeout));
            ran.denial.into_iter().fold(outcome, Outcome::denied)
        }
        Err(ShellError::Denied(denial)) => {
            Outcome::failed(ShellError::Denied(denial.clone()).to_string()).denied(denial)
        }
        Err(error) => Outcome::failed(error.to_string()),
    }
}

fn job(line: &Line, grant: Option<&Grant>) -> NewJob {
    let label = match grant {
        None => line.command.clone(),
        Some(grant) => format!("under {}: {}", grant.mode(), line.command),
    };
    NewJob::new("bash", label)
}

fn not_started(error: StartError) -> ToolOutput {
    ToolOutput::error(code::FAILED, format!("the command was not started: {error}"))
}
