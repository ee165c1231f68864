//! From an escalation request to a grant, the same way for every tool.

use sandbox::{EscalationRequest, Grant, NotGranted};
use tools::Call;

use crate::{Approval, Ask, Outcome};

/// Asks for a wider mode for one call, before anything of it has run. `operation` names exactly what the call would do,
/// as in `write /etc/hosts`; it is what a person decides on.
///
/// Without an approval service nobody can be asked.
pub async fn escalate(call: &Call, operation: &str, request: &EscalationRequest) -> Result<Grant, NotGranted> {
    let Some(approval) = call.ctx.get::<Approval>() else { return Err(NotGranted::Unavailable) };
    let mode = request.sandbox_permissions();
    let reason = format!("{operation} under {mode}");
    let ask = Ask::new(call.name.clone(), reason).because(request.justification()).for_call(&call.call_id);
    match approval.request(&call.session, ask, &call.cancelled).await {
        Ok(Outcome::AllowedOnce) => Ok(Grant::new(mode)),
        Ok(Outcome::Rejected) => Err(NotGranted::Rejected),
        Ok(Outcome::Cancelled) => Err(NotGranted::Cancelled),
        Ok(Outcome::Unavailable) => Err(NotGranted::Unavailable),
        Err(error) => {
            tracing::error!(session = %call.session.id(), %error, "an ask failed");
            Err(NotGranted::Unavailable)
        }
    }
}
