use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::SessionId;

/// The format that this crate writes, and the only one it reads.
pub const FORMAT: u32 = 1;

/// The first line of a log. Written once, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Header {
    pub(crate) id: SessionId,
    pub(crate) created_at: u64,
    pub(crate) cwd: Arc<str>,
    pub(crate) lineage: Option<Lineage>,
    pub(crate) seed_length: u64,
}

/// Where a child came from: all of it or none of it. Made only by a [`Delegation`](crate::Delegation) or by reading a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    pub(crate) parent: SessionId,
    pub(crate) parent_seq: u64,
    pub(crate) origin: Arc<str>,
    pub(crate) depth: u32,
}

/// What is wrong with a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Written by another version.
    #[error("format {0} is not one that this version reads; it reads {FORMAT}")]
    Format(u32),
    /// A parent, but not all that belongs to one.
    #[error("parentSession, parentSeq, origin and delegationDepth go together, and one of them is missing")]
    Lineage,
    /// A child's depth starts at 1.
    #[error("a session with a parent has a delegationDepth of 1 or more")]
    Depth,
    /// Only a child has a seed.
    #[error("seedLength without parentSession")]
    Seed,
}

impl Header {
    pub(crate) fn new(
        id: SessionId,
        cwd: Arc<str>,
        created_at: u64,
        lineage: Option<Lineage>,
        seed_length: u64,
    ) -> Self {
        Self { id, created_at, cwd, lineage, seed_length }
    }

    /// The session's id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// When it began, in milliseconds since the Unix epoch.
    pub fn created_at(&self) -> u64 {
        self.created_at
    }

    /// The workspace root, an absolute path.
    pub fn cwd(&self) -> &Arc<str> {
        &self.cwd
    }

    /// Where it came from; `None` for a top-level session.
    pub fn lineage(&self) -> Option<&Lineage> {
        self.lineage.as_ref()
    }

    /// How many events a fork copied from its parent; 0 without a seed.
    pub fn seed_length(&self) -> u64 {
        self.seed_length
    }

    /// How far below a top-level session it stands; 0 for one.
    pub fn depth(&self) -> u32 {
        self.lineage.as_ref().map_or(0, Lineage::depth)
    }
}

impl Lineage {
    /// The session that delegated.
    pub fn parent(&self) -> SessionId {
        self.parent
    }

    /// The length of the parent's log at the capture: it covers the parent's events with a smaller `seq`.
    pub fn parent_seq(&self) -> u64 {
        self.parent_seq
    }

    /// What kind of descent it is.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The parent's depth plus one.
    pub fn depth(&self) -> u32 {
        self.depth
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    format: u32,
    id: SessionId,
    created_at: u64,
    cwd: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed_length: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delegation_depth: Option<u32>,
}

impl From<Header> for Wire {
    fn from(header: Header) -> Self {
        let Header { id, created_at, cwd, lineage, seed_length } = header;
        let lineage = lineage.as_ref();
        Self {
            format: FORMAT,
            id,
            created_at,
            cwd,
            parent_session: lineage.map(|lineage| lineage.parent),
            parent_seq: lineage.map(|lineage| lineage.parent_seq),
            seed_length: (seed_length > 0).then_some(seed_length),
            origin: lineage.map(|lineage| lineage.origin.clone()),
            delegation_depth: lineage.map(|lineage| lineage.depth),
        }
    }
}

impl TryFrom<Wire> for Header {
    type Error = HeaderError;
    fn try_from(wire: Wire) -> Result<Self, HeaderError> {
        if wire.format != FORMAT {
            return Err(HeaderError::Format(wire.format));
        }
        let lineage = match (wire.parent_session, wire.parent_seq, wire.origin, wire.delegation_depth) {
            (None, None, None, None) => None,
            (Some(_), Some(_), Some(_), Some(0)) => return Err(HeaderError::Depth),
            (Some(parent), Some(parent_seq), Some(origin), Some(depth)) => {
                Some(Lineage { parent, parent_seq, origin, depth })
            }
            _ => return Err(HeaderError::Lineage),
        };
        let seed_length = wire.seed_length.unwrap_or(0);
        if seed_length > 0 && lineage.is_none() {
            return Err(HeaderError::Seed);
        }
        Ok(Self { id: wire.id, created_at: wire.created_at, cwd: wire.cwd, lineage, seed_length })
    }
}
