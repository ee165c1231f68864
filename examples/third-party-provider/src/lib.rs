//! A provider of subagents that is nobody's but its own, on public API alone.
//!
//! *Owns:* the provider `panel`: an author who does the task, reviewers who read what it says, and the author's last word.
//! *Never:* a capture of its own, a policy, a cleanup that closing the run's scope would not do.
#![doc = include_str!("../README.md")]

mod panel;
mod review;

use std::sync::Arc;

use agent::Agents;
use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use subagent::{Persona, PersonaError, Subagents};

use panel::Provider;

/// The name of the provider.
pub const NAME: &str = "panel";

/// Registers the provider.
pub struct Panel;

/// Who sits on the panel.
#[derive(Clone, Debug)]
pub struct Config {
    /// Those who read what the author says.
    pub reviewers: Vec<Reviewer>,
    /// The provider that runs them. One whose children honour a persona.
    pub provider: Arc<str>,
}

/// One who reads what the author says.
#[derive(Clone, Debug)]
pub struct Reviewer {
    /// What it looks at, in a word, for people and for the author.
    pub label: Arc<str>,
    /// Who it is.
    pub persona: Persona,
}

impl Reviewer {
    /// A reviewer who looks at one thing.
    pub fn new(label: &str, persona: &str) -> Result<Self, PersonaError> {
        Ok(Self { label: label.into(), persona: Persona::new(persona)? })
    }
}

impl Default for Config {
    /// Two reviewers, run by `spawn`: one for what is wrong, one for what is missing.
    fn default() -> Self {
        let reviewer =
            |label, persona| Reviewer::new(label, persona).expect("it says something, and nothing in braces");
        let errors = "You review the answer of a colleague. Look for what is wrong in it, check it against the files, and \
            name each error in one line. If there is none, say so. Change no file.";
        let gaps = "You review the answer of a colleague. Look for what the task asked and the answer lacks, and name each \
            gap in one line. If there is none, say so. Change no file.";
        Self { reviewers: vec![reviewer("errors", errors), reviewer("gaps", gaps)], provider: "spawn".into() }
    }
}

#[async_trait]
impl Plugin for Panel {
    type Config = Config;

    fn name(&self) -> &'static str {
        "third-party-panel"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Subagents>(), Need::of::<Agents>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let subagents = ctx.get::<Subagents>().ok_or("no `Subagents` service")?;
        let agents = ctx.get::<Agents>().ok_or("no `Agents` service")?;
        // Weak, since the registry holds the provider: two that hold each other would never go.
        let provider = Provider::new(agents, Arc::downgrade(&subagents), config);
        Ok(ctx.own(subagents.register(NAME, Arc::new(provider))?)?)
    }
}
