use std::fmt;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;

use crate::wire::LONGEST_FRAME;

/// What a child is asked, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Which version it speaks.
    Initialize,
    /// To log in.
    Authenticate,
    /// To open a session.
    NewSession,
    /// To select a mode.
    SetMode,
    /// To do its task.
    Prompt,
}

/// How a child failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// It took too long.
    #[error("it did not answer `{stage}` within {} s", after.as_secs_f32())]
    TimedOut {
        /// What it was asked.
        stage: Stage,
        /// How long it had.
        after: Duration,
    },
    /// It said no, in its own words.
    #[error("`{stage}` failed: {words}")]
    Refused {
        /// What it was asked.
        stage: Stage,
        /// What it said.
        words: String,
    },
    /// It speaks another version.
    #[error("it speaks version {0} of the protocol, and not version 1")]
    Version(ProtocolVersion),
    /// It has no such method to authenticate with.
    #[error("it has no way `{wanted}` to authenticate; it has: {}", .offered.join(", "))]
    NoAuth {
        /// What is configured.
        wanted: String,
        /// What it offers.
        offered: Vec<String>,
    },
    /// It has no such mode.
    #[error("it has no mode `{wanted}`; it has: {}", .offered.join(", "))]
    NoMode {
        /// What is configured.
        wanted: String,
        /// What it offers.
        offered: Vec<String>,
    },
    /// It stopped talking.
    #[error("it closed its output before it had answered `{stage}`")]
    Closed {
        /// What it was asked.
        stage: Stage,
    },
    /// It wrote too long a line.
    #[error("it wrote a frame of more than {LONGEST_FRAME} bytes")]
    TooLong,
    /// It writes, but nothing that the protocol knows.
    #[error("it writes what is no frame: {lines} lines so far")]
    NoFrames {
        /// How many of them were read.
        lines: usize,
    },
    /// It allowed itself more turns than it may have.
    #[error("it reached its own limit of requests in a turn")]
    TurnRequests,
    /// It ended its turn in a way that is not known.
    #[error("it ended its turn in a way that is not known")]
    UnknownEnd,
    /// The connection failed.
    #[error("the connection to it failed")]
    Connection,
    /// Nobody wants it any more.
    #[error("it is not wanted any more")]
    Stopped,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initialize => "initialize",
            Self::Authenticate => "authenticate",
            Self::NewSession => "session/new",
            Self::SetMode => "session/set_mode",
            Self::Prompt => "session/prompt",
        })
    }
}
