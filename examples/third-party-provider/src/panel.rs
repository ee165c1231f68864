//! The provider: an author, and what becomes of its turns.

use std::sync::{Arc, Weak};

use agent::{AgentRef, Agents, Receipt, TurnOutcome};
use async_trait::async_trait;
use llm::{Content, Usage};
use session::{Seed, TurnReason};
use subagent::{
    Capability, Composed, Denials, RunResult, Start, StartError, Started, StopReason, SubagentProvider, Subagents,
    compose, denials_in,
};

use crate::Config;
use crate::review::{Review, Reviews, revision};

pub(crate) struct Provider {
    agents: Arc<Agents>,
    subagents: Weak<Subagents>,
    config: Arc<Config>,
}

impl Provider {
    pub(crate) fn new(agents: Arc<Agents>, subagents: Weak<Subagents>, config: Config) -> Self {
        Self { agents, subagents, config: Arc::new(config) }
    }
}

#[async_trait]
impl SubagentProvider for Provider {
    /// What `compose` does for the author, and the panel passes on. No schema: the author would hand its draft in.
    fn offers(&self) -> &'static [Capability] {
        &[Capability::DepthLimit, Capability::ToolFilter, Capability::Persona]
    }

    fn inherits_parent_context(&self) -> bool {
        false
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        let reviews = Reviews::new(&self.subagents, &self.config, &start.request);
        // From here on everything is the run's: the agent is in its scope, and goes with it.
        let Composed { mut agent, .. } = compose(&self.agents, start, Seed::Fresh).await?;
        let draft = agent.prompted().expect("the composition prompts the child");
        let author = agent.leave();
        Ok(Started { child: Some(author.id()), result: Box::pin(meet(author, draft, reviews)) })
    }
}

/// A draft, its reviews, and the author's last word. Every way out of it is a result.
async fn meet(author: AgentRef, draft: Receipt, reviews: Reviews) -> RunResult {
    let draft = draft.outcome().await;
    if draft.reason != TurnReason::Completed {
        return told(&author, [&draft], Denials::default(), None);
    }
    let mut denials = Denials::default();
    let (mut said, mut unsaid) = (Vec::new(), Vec::new());
    for Review { label, said: words, denied } in reviews.of(&author, &text(&draft)).await {
        denials.merge(denied);
        match words {
            Ok(words) => said.push((label, words)),
            Err(why) => unsaid.push(format!("{label}: {why}")),
        }
    }
    if author.ctx().cancelled().is_cancelled() {
        // The run was stopped while it was reviewed: a draft is not what was asked for.
        return stopped(&draft, denials);
    }
    let message = (!unsaid.is_empty()).then(|| format!("not reviewed for {}", unsaid.join("; ")));
    if said.is_empty() {
        return told(&author, [&draft], denials, message);
    }
    match author.followup(revision(&said)) {
        Ok(asked) => told(&author, [&draft, &asked.outcome().await], denials, message),
        // The run was stopped just now.
        Err(_) => stopped(&draft, denials),
    }
}

/// The result of a run that was stopped after its draft.
fn stopped(draft: &TurnOutcome, denials: Denials) -> RunResult {
    RunResult { output: output(draft), usage: draft.usage, denials, ..RunResult::ended(StopReason::Aborted) }
}

/// The result of the author's turns: it ended as the last one did, and its output is the last that it said.
fn told<const N: usize>(
    author: &AgentRef,
    turns: [&TurnOutcome; N],
    mut denials: Denials,
    message: Option<String>,
) -> RunResult {
    let last = turns[N - 1];
    let why = match &last.reason {
        TurnReason::Error { message } | TurnReason::Blocked { message } => message.clone(),
        TurnReason::Aborted { cause } => cause.clone(),
        TurnReason::Completed | TurnReason::MaxTokens | TurnReason::Interrupted => message.map(Into::into),
    };
    let mut usage = Usage::default();
    turns.iter().for_each(|turn| usage += turn.usage);
    let session = author.session();
    denials.merge(denials_in(&session.snapshot(), session.first_live_seq()));
    let output = turns.iter().rev().map(|turn| output(turn)).find(|output| !output.is_empty()).unwrap_or_default();
    RunResult { output, message: why, usage, denials, ..RunResult::ended((&last.reason).into()) }
}

/// What a turn said at last, without what was thought and called.
fn output(turn: &TurnOutcome) -> Vec<Content> {
    let content = turn.output.iter().flat_map(|message| &message.content);
    content.filter(|part| matches!(part, Content::Text { .. } | Content::Image { .. })).cloned().collect()
}

fn text(turn: &TurnOutcome) -> String {
    output(turn).iter().filter_map(Content::as_text).collect()
}
