use sandbox::Denial;
use serde::{Deserialize, Serialize};
use session::Payload;

/// The sandbox denied something that goes on behind its call, such as a command in the background: no result of a call tells
/// of it for certain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Denied(pub Denial);

impl Payload for Denied {
    const TAG: &'static str = "sandbox/denied";
    const IGNORABLE: bool = true;
}
