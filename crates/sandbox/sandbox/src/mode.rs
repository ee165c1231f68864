use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much a session may do. Narrowest first, so `a < b` reads "`a` allows less than `b`".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Reads anything readable but Tether's home; writes nothing.
    ReadOnly,
    /// Also writes below the workspace root and the session's own temporary directory, but for protected paths.
    WorkspaceWrite,
    /// Not confined.
    DangerFullAccess,
}

/// Whether commands may use the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Like any program of the user's.
    Allowed,
    /// None but the sandbox's own loopback.
    Denied,
}

/// Who knows the mode that is in force now. Enforcers ask it at every operation and keep no copy, so that a switch
/// reaches the next call.
pub trait ModeSource: Send + Sync {
    /// The mode in force now, without any grant.
    fn mode(&self) -> Mode;
}

/// A text that is not the name of a mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sandbox mode named `{}`: use `read-only`, `workspace-write` or `danger-full-access`", .0.escape_debug())]
pub struct UnknownMode(pub String);

impl Mode {
    /// Every mode, narrowest first.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::WorkspaceWrite, Self::DangerFullAccess];

    /// Its name in logs, configuration and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }

    /// What commands may do on the network under this mode, unless configuration says otherwise.
    pub const fn network(self) -> Network {
        match self {
            Self::ReadOnly | Self::WorkspaceWrite => Network::Denied,
            Self::DangerFullAccess => Network::Allowed,
        }
    }
}

impl Network {
    /// Its name in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
        }
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Allowed, Self::Denied]
            .into_iter()
            .find(|network| network.as_str() == name)
            .ok_or("not an access to the network: it is allowed or denied")
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let named = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        named.ok_or_else(|| UnknownMode(text.chars().take(40).collect()))
    }
}

/// A mode that never changes.
impl ModeSource for Mode {
    fn mode(&self) -> Mode {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_has_one_name_everywhere() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
    }

    #[test]
    fn modes_are_ordered_narrowest_first() {
        assert!(Mode::ReadOnly < Mode::WorkspaceWrite && Mode::WorkspaceWrite < Mode::DangerFullAccess);
        assert!(Mode::ALL.is_sorted());
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let said = "Read\nOnly".parse::<Mode>().unwrap_err().to_string();
        let want = r"no sandbox mode named `Read\nOnly`: use `read-only`, `workspace-write` or `danger-full-access`";
        assert_eq!(said, want);
    }
}
