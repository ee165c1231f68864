use std::sync::Arc;
use std::time::Duration;

use subagent_subprocess::{BadSettings, Settings};

/// One kind of children: an agent, and how it is used.
#[derive(Clone, Debug)]
pub struct Config {
    /// The provider's name.
    pub name: Arc<str>,
    /// How its process is started, held and ended.
    pub settings: Settings,
    /// The agent's own mode that is selected in each session, if one is.
    pub session_mode: Option<Arc<str>>,
    /// The agent's own method to authenticate with, if it takes one.
    pub auth: Option<Arc<str>>,
    /// How its questions are answered.
    pub permission: Permission,
    /// How long it has for each step of its start.
    pub patience: Duration,
}

/// How a child's questions for permission are answered. Nobody is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permission {
    /// With no, one time where there is the choice.
    #[default]
    Reject,
    /// With yes, one time where there is the choice.
    Allow,
}

/// A configuration with which no child could be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ACP provider `{name}`: {source}")]
pub struct BadConfig {
    /// The provider's name.
    pub name: Arc<str>,
    /// What is wrong.
    pub source: BadSettings,
}

impl Config {
    /// An agent that is used as it comes.
    pub fn new(name: impl Into<Arc<str>>, settings: Settings) -> Self {
        Self {
            name: name.into(),
            settings,
            session_mode: None,
            auth: None,
            permission: Permission::default(),
            patience: Duration::from_secs(60),
        }
    }

    /// Whether children can be started with it, as far as that can be told without one.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn check(&self) -> Result<(), BadConfig> {
        self.settings.check().map_err(|source| BadConfig { name: self.name.clone(), source })
    }
}
