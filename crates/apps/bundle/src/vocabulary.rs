//! Every word that logs of this composition are written in.

use std::sync::Arc;

use jobs::JobBegan;
use permission::PresetChosen;
use sandbox_policy::{Denied, ModeSet};
use session::Sessions;
use subagent::{BackgroundReport, Descriptor};
use subagent_subprocess::Unconfined;
use user_approval::{ApprovalAsked, ApprovalDecided, PolicySet};

/// Sessions that know every payload of the whole composition, for whoever reads logs and runs no app.
///
/// ```
/// let line = r#"{"seq":0,"time":0,"type":"sandbox/mode","data":{"mode":"read-only"}}"#;
/// assert!(session::Sessions::new().vocabulary().decode_event(line).is_ok_and(|event| !event.is_known()));
/// assert!(bundle::sessions().vocabulary().decode_event(line).is_ok_and(|event| event.is_known()));
/// ```
pub fn sessions() -> Arc<Sessions> {
    let sessions = Sessions::new();
    let learned = (|| {
        sessions.learn::<ModeSet>()?;
        sessions.learn::<Denied>()?;
        sessions.learn::<PolicySet>()?;
        sessions.learn::<ApprovalAsked>()?;
        sessions.learn::<ApprovalDecided>()?;
        sessions.learn::<PresetChosen>()?;
        sessions.learn::<JobBegan>()?;
        sessions.learn::<BackgroundReport>()?;
        sessions.learn::<Unconfined>()?;
        sessions.learn::<Descriptor>()
    })();
    learned.expect("the tags of our own crates differ from each other");
    sessions
}
