use std::path::Path;
use std::sync::Arc;

use session::SessionId;

/// The names of one session's files.
#[derive(Clone)]
pub(crate) struct Names {
    folder: Arc<Path>,
    id: SessionId,
}

const LOG: &str = ".jsonl";
const LOCK: &str = ".lock";
const SPARE: &str = "spare-";

impl Names {
    pub(crate) fn new(folder: Arc<Path>, id: SessionId) -> Self {
        Self { folder, id }
    }

    /// Those of another session beside it.
    pub(crate) fn of(&self, id: SessionId) -> Self {
        Self { folder: self.folder.clone(), id }
    }

    /// The session whose log has this name.
    pub(crate) fn id_of_log(name: &str) -> Option<SessionId> {
        name.strip_suffix(LOG)?.parse().ok()
    }

    /// The session whose lock has this name.
    pub(crate) fn id_of_lock(name: &str) -> Option<SessionId> {
        name.strip_suffix(LOCK)?.parse().ok()
    }

    /// The lock that a process keeps for its next session.
    pub(crate) fn spare(process: u32) -> String {
        format!("{SPARE}{process}{LOCK}")
    }

    /// Whether some process would keep a lock under this name.
    pub(crate) fn is_spare(name: &str) -> bool {
        let process = name.strip_prefix(SPARE).and_then(|name| name.strip_suffix(LOCK));
        process.is_some_and(|process| process.parse::<u32>().is_ok())
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    pub(crate) fn log(&self) -> String {
        format!("{}{LOG}", self.id)
    }

    pub(crate) fn lock(&self) -> String {
        format!("{}{LOCK}", self.id)
    }

    /// A log before it is whole.
    pub(crate) fn unfinished(&self) -> String {
        format!("{}{LOG}.new", self.id)
    }

    /// Where torn bytes are put aside, by the time in milliseconds since the Unix epoch.
    pub(crate) fn torn(&self, time: u64) -> String {
        format!("{}{LOG}.torn-{time}", self.id)
    }

    /// The log's path, for messages.
    pub(crate) fn place(&self) -> String {
        self.place_of(&self.log())
    }

    /// The path of one of its files, for messages.
    pub(crate) fn place_of(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}
