use std::sync::Arc;

use serde::{Deserialize, Serialize};
use session::Payload;

use crate::JobId;

/// A job was begun. The log holds it so that no other job of the session is ever called the same; what it does is in no
/// log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobBegan {
    /// Its id.
    pub job: JobId,
    /// What kind of work it is.
    pub kind: Arc<str>,
    /// A few words for people, in one line.
    pub label: Arc<str>,
}

impl Payload for JobBegan {
    const TAG: &'static str = "jobs/began";
    const IGNORABLE: bool = true;
}
