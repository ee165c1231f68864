use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use crate::Place;

/// How many errors of one configuration are told. A file of nothing but mistakes says no more with the next thousand.
const LIMIT: usize = 50;

/// Why there is no configuration to work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file says something that it cannot.
    #[error("{place}: {message}")]
    File {
        /// Where.
        place: Place,
        /// What, and what would be right.
        message: String,
    },
    /// A file cannot be read.
    #[error("{}: {message}", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why.
        message: String,
    },
    /// A variable says something that it cannot.
    #[error("${name}: {message}")]
    Variable {
        /// Which.
        name: Cow<'static, str>,
        /// What, and what would be right.
        message: String,
    },
    /// There is no place to keep anything.
    #[error("neither $TETHER_HOME nor $HOME is set: say where sessions are kept with --home DIR")]
    NoHome,
    /// There is no place for a configuration: never one that depends on where the command was started.
    #[error(
        "nothing says where the configuration is: $XDG_CONFIG_HOME and $HOME are no absolute paths, and {} is relative; \
         name an absolute one",
        home.display()
    )]
    NoConfig {
        /// Where sessions are kept.
        home: PathBuf,
    },
}

/// Everything that is wrong with a configuration: at least one error, in the order of layers and lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigError {
    pub(crate) fn at(place: Place, message: impl Into<String>) -> Self {
        Self::File { place, message: message.into() }
    }
}

impl ConfigErrors {
    /// Nothing, if nothing is wrong.
    pub(crate) fn check(mut errors: Vec<ConfigError>) -> Result<(), Self> {
        errors.truncate(LIMIT);
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigError> {
        self.0.iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    /// The first, and how many others there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0[0])?;
        match self.0.len() - 1 {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

impl std::error::Error for ConfigErrors {}
