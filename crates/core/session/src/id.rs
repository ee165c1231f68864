use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One log's id: a UUID of version 7, so ids sort by the time they were minted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(Uuid);

/// Not a session id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a session id: it is a UUID, as `tether sessions list` prints them")]
pub struct SessionIdError(String);

/// A message's id, unique in its log: the `seq` of the event that brought it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub u64);

impl SessionId {
    /// A new one.
    pub fn mint() -> Self {
        Self(Uuid::now_v7())
    }
}

impl FromStr for SessionId {
    type Err = SessionIdError;
    /// Takes the canonical form only: an id is also a file's name.
    fn from_str(text: &str) -> Result<Self, SessionIdError> {
        match Uuid::try_parse(text) {
            Ok(id) if text.len() == 36 && id.to_string() == text => Ok(Self(id)),
            _ => Err(SessionIdError(text.chars().take(64).collect())),
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = SessionIdError;
    fn try_from(text: String) -> Result<Self, SessionIdError> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
