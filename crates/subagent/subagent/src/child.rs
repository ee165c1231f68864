//! What every in-process child has, whoever drives it, in one call.

use std::sync::Arc;

use agent::{Agent, Agents, Input, Profile, Spec};
use llm::Sampling;
use session::{Delegation, Seed, Session};
use user_approval::PolicySet;

use crate::{ApprovalAbsent, ChildMode, DESCRIPTOR_VERSION, Descriptor, Request, Start, StartError};

/// Makes the child's session from the delegation, which stamps it; describes it; gives it the parent's model where the
/// request names none, and the prompt; and publishes it once all of that and the parent's log up to the capture are
/// durable. On any failure nothing of it is left.
pub async fn compose(agents: &Agents, start: Start, seed: Seed) -> Result<Agent, StartError> {
    let Start { ctx, provider, parent, delegation, request } = start;
    delegation.parent_session().flush().await.map_err(StartError::ParentLog)?;
    let profile = profile(parent.profile(), &request);
    let session = session(delegation, seed, provider, &request);
    let prompt = Some(Input::prompt(&*request.prompt));
    Ok(agents.create(&ctx, Spec { session, profile, setup: Vec::new(), prompt }).await?)
}

/// Seed, stamps, descriptor, in that order.
fn session(delegation: Delegation, seed: Seed, provider: Arc<str>, request: &Request) -> Session {
    let approval = (!delegation.hands_down::<PolicySet>()).then_some(ApprovalAbsent::Absent);
    let session = Session::delegated(delegation, seed);
    let descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        mode: ChildMode::OneShot,
        provider,
        label: request.label.clone(),
        model: request.model.clone(),
        persona: request.persona.clone(),
        tool_filter: request.tool_filter.clone(),
        approval,
    };
    session.append(descriptor).expect("nobody but us has seen this session, so nobody closed it");
    session
}

fn profile(parent: &Profile, request: &Request) -> Profile {
    Profile {
        route: request.model.clone().unwrap_or_else(|| parent.route.clone()),
        sampling: Sampling {
            max_tokens: request.max_tokens.or(parent.sampling.max_tokens),
            temperature: parent.sampling.temperature,
        },
    }
}
