//! Stopping trees that work and have spent what they may.

use std::sync::Arc;

use agent::{AgentPublished, AgentRef, Agents, BeforeStep, Inbox, Rejected, StepInput};
use async_trait::async_trait;
use context::{Around, BoxError, Ctx, Next, Stop};
use session::{AssistantMessage, UserMessage};

use super::tree::Tree;
use super::{BudgetReached, BudgetSpent, Trees};

/// Watches every agent of the app, where there is a budget that can stop one.
pub(crate) fn keep(ctx: &Ctx, trees: &Arc<Trees>) -> Result<(), BoxError> {
    if !trees.limits().stops_work() {
        return Ok(());
    }
    let keeper = Arc::new(Keeper { ctx: ctx.clone(), trees: trees.clone() });
    let watching = keeper.clone();
    ctx.own(ctx.realm().on(move |AgentPublished(agent)| watching.watch(agent)))?;
    Ok(ctx.own(ctx.realm().around::<BeforeStep>(Gate(keeper)))?)
}

struct Keeper {
    ctx: Ctx,
    trees: Arc<Trees>,
}

impl Keeper {
    /// Counts what an agent uses, and the time of a tree from its top-level agent on.
    fn watch(self: &Arc<Self>, agent: &AgentRef) {
        let Ok(tree) = self.trees.of(agent) else { return };
        // Whoever heard of it first may have started children already, so it is not the tree's absence that tells.
        let is_root = tree.root == agent.id();
        let counted = tree.clone();
        let session = agent.session();
        let observed = session.observe(session.first_live_seq(), move |event| {
            if let Some(AssistantMessage { usage: Some(usage), .. }) = event.get() {
                counted.spend(*usage);
            }
        });
        // An agent that closes has nothing left to count.
        let _ = agent.ctx().own(observed);
        if let (true, Some(time)) = (is_root, self.trees.limits().time) {
            let keeper = self.clone();
            let timer = async move {
                tokio::time::sleep(time).await;
                keeper.stop(&tree);
            };
            let _ = agent.ctx().spawn("budget of time", Stop::Abort, timer);
        }
    }

    /// Stops everyone in a tree whose budget is spent.
    fn stop(&self, tree: &Arc<Tree>) {
        let Some(spent) = tree.is_spent(&self.trees.limits()) else { return };
        self.announce(tree, spent);
        let Some(agents) = self.ctx.get::<Agents>() else { return };
        for agent in self.trees.members_of(tree).into_iter().filter_map(|id| agents.get(id)) {
            agent.cancel(spent.to_string(), Inbox::Keep);
        }
    }

    fn announce(&self, tree: &Tree, spent: BudgetSpent) {
        if tree.stop() {
            self.ctx.realm().emit(&BudgetReached { root: tree.root, spent });
        }
    }
}

/// Before a step: an agent whose tree has spent what it may begins none.
struct Gate(Arc<Keeper>);

#[async_trait]
impl Around<BeforeStep> for Gate {
    async fn around(&self, input: StepInput, next: Next<'_, BeforeStep>) -> Result<Vec<UserMessage>, Rejected> {
        let Self(keeper) = self;
        let tree = keeper.trees.find(input.agent.id());
        let spent = tree.and_then(|tree| Some((tree.is_spent(&keeper.trees.limits())?, tree)));
        if let Some((spent, tree)) = spent {
            keeper.announce(&tree, spent);
            if input.agent.cancel(spent.to_string(), Inbox::Keep) {
                // The turn is given up where it waits for this.
                std::future::pending::<()>().await;
            }
        }
        next.run(input).await
    }
}
