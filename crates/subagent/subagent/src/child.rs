//! What every in-process child has, whoever drives it, in one call.

use std::sync::Arc;

use agent::{Agent, AgentRef, AgentSetup, Agents, Input, Profile, Spec};
use async_trait::async_trait;
use context::BoxError;
use llm::Sampling;
use session::{Delegation, Seed, Session};
use system_prompt::{PERSONA_SECTION, Section, Text};
use tools::ToolFilter;
use user_approval::PolicySet;

use crate::persona::Facts;
use crate::structured::{offer, structured_in};
use crate::{
    ApprovalAbsent, ChildMode, DESCRIPTOR_VERSION, Descriptor, OutputSchema, Request, Start, StartError, filter,
};

/// A child that was composed.
pub struct Composed {
    /// The child. It was prompted.
    pub agent: Agent,
    /// Whether its result is the one that it hands in.
    pub structured: bool,
}

/// Makes the child's session from the delegation, which stamps it; describes it; gives it the parent's model where the
/// request names none, the persona, the tools and the way to hand its result in that the request asks for, and the
/// prompt; and publishes it once all of that and the parent's log up to the capture are durable. On any failure nothing
/// of it is left.
pub async fn compose(agents: &Agents, start: Start, seed: Seed) -> Result<Composed, StartError> {
    let Start { ctx, provider, parent, delegation, request, .. } = start;
    delegation.parent_session().flush().await.map_err(StartError::ParentLog)?;
    let profile = profile(parent.profile(), &request);
    let setup = Setup::of(&request, &delegation, &provider, &profile);
    let persona = setup.persona.as_deref();
    let session = session(delegation, seed, provider, &request, persona);
    let structured = setup.schema.is_some();
    let setup: Vec<Arc<dyn AgentSetup>> = match setup.is_empty() {
        true => Vec::new(),
        false => vec![Arc::new(setup)],
    };
    let prompt = Some(Input::prompt(&*request.prompt));
    let agent = agents.create(&ctx, Spec { session, profile, setup, prompt }).await?;
    Ok(Composed { agent, structured })
}

impl Composed {
    /// What a child handed in, from the log that it left.
    pub fn handed_in(session: &Session) -> Option<serde_json::Value> {
        structured_in(&session.snapshot(), session.first_live_seq())
    }
}

/// What a child has of its own in its scope.
#[derive(Default)]
struct Setup {
    filter: Option<ToolFilter>,
    persona: Option<Arc<str>>,
    schema: Option<OutputSchema>,
}

impl Setup {
    fn of(request: &Request, delegation: &Delegation, provider: &str, profile: &Profile) -> Self {
        let persona = request.persona.as_ref().map(|persona| {
            let (cwd, depth) = (delegation.parent().header().cwd(), delegation.depth());
            let label = request.label.as_deref().unwrap_or_default();
            persona.of(&Facts([cwd, &label, &provider, &profile.route, &depth])).into()
        });
        Self { filter: request.tool_filter.clone(), persona, schema: request.output_schema.clone() }
    }

    fn is_empty(&self) -> bool {
        self.filter.is_none() && self.persona.is_none() && self.schema.is_none()
    }
}

#[async_trait]
impl AgentSetup for Setup {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        let ctx = agent.ctx();
        if let Some(filter) = self.filter.clone() {
            ctx.register::<ToolFilter>(filter::DELEGATED, Arc::new(filter))?;
        }
        if let Some(persona) = &self.persona {
            ctx.register::<dyn Section>(PERSONA_SECTION, Text::new(0, &**persona))?;
        }
        if let Some(schema) = &self.schema {
            offer(ctx, schema.clone())?;
        }
        Ok(())
    }
}

/// Seed, stamps, descriptor, in that order.
fn session(
    delegation: Delegation,
    seed: Seed,
    provider: Arc<str>,
    request: &Request,
    persona: Option<&str>,
) -> Session {
    let approval = (!delegation.hands_down::<PolicySet>()).then_some(ApprovalAbsent::Absent);
    let session = Session::delegated(delegation, seed);
    let descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        mode: ChildMode::OneShot,
        provider,
        label: request.label.clone(),
        model: request.model.clone(),
        persona: persona.map(Into::into),
        tool_filter: request.tool_filter.clone(),
        max_depth: request.max_depth,
        approval,
    };
    session.append(descriptor).expect("nobody but us has seen this session, so nobody closed it");
    session
}

/// The parent's own where nothing else is asked for: resident children are many.
fn profile(parent: Arc<Profile>, request: &Request) -> Arc<Profile> {
    if request.model.is_none() && request.max_tokens.is_none() {
        return parent;
    }
    Arc::new(Profile {
        route: request.model.clone().unwrap_or_else(|| parent.route.clone()),
        sampling: Sampling {
            max_tokens: request.max_tokens.or(parent.sampling.max_tokens),
            temperature: parent.sampling.temperature,
        },
    })
}
