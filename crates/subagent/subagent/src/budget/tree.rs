use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::AgentRef;
use context::{Closing, Registration};
use llm::Usage;
use session::SessionId;
use tokio::time::Instant;

use super::{Budget, BudgetSpent, Limits};

/// The trees whose top-level agent is alive, by every agent in them.
pub(crate) struct Trees {
    limits: Limits,
    members: Arc<Members>,
}

type Members = Mutex<HashMap<SessionId, Arc<Tree>>>;

/// What one tree has used.
pub(crate) struct Tree {
    pub(super) root: SessionId,
    begun: Instant,
    used: Mutex<Used>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    alive: u64,
    total: u64,
    tokens: u64,
    stopped: bool,
}

/// A child's place in its tree, from the check on until it is left.
pub(crate) struct Place {
    tree: Arc<Tree>,
    members: Arc<Members>,
    child: SessionId,
    lived: AtomicBool,
    left: AtomicBool,
}

impl Trees {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, members: Arc::default() }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Counts a child, if nothing it would need is used up. Nothing is counted where nothing is limited.
    pub(crate) fn admit(
        &self,
        parent: &AgentRef,
        child: SessionId,
    ) -> Result<Result<Option<Arc<Place>>, BudgetSpent>, Closing> {
        if !self.limits.counts() {
            return Ok(Ok(None));
        }
        let tree = self.of(parent)?;
        if let Err(spent) = tree.take(&self.limits) {
            return Ok(Err(spent));
        }
        lock(&self.members).insert(child, tree.clone());
        let (members, lived, left) = (self.members.clone(), AtomicBool::new(false), AtomicBool::new(false));
        Ok(Ok(Some(Arc::new(Place { tree, members, child, lived, left }))))
    }

    /// The tree that an agent is in. Without one it is the top of its own, which is kept while the agent lives.
    pub(super) fn of(&self, agent: &AgentRef) -> Result<Arc<Tree>, Closing> {
        let id = agent.id();
        let tree = {
            let mut members = lock(&self.members);
            if let Some(tree) = members.get(&id) {
                return Ok(tree.clone());
            }
            let tree = Arc::new(Tree { root: id, begun: Instant::now(), used: Mutex::default() });
            members.insert(id, tree.clone());
            tree
        };
        let members = self.members.clone();
        agent.ctx().own(Registration::new(move || drop(lock(&members).remove(&id))))?;
        Ok(tree)
    }

    /// The tree that an agent is in, if one is counted.
    pub(super) fn find(&self, id: SessionId) -> Option<Arc<Tree>> {
        lock(&self.members).get(&id).cloned()
    }

    /// Everyone in a tree.
    pub(super) fn members_of(&self, tree: &Arc<Tree>) -> Vec<SessionId> {
        lock(&self.members).iter().filter(|(_, of)| Arc::ptr_eq(of, tree)).map(|(id, _)| *id).collect()
    }
}

impl Tree {
    /// Takes a place for one more child.
    fn take(&self, limits: &Limits) -> Result<(), BudgetSpent> {
        let mut used = self.lock();
        let within = |budget, used, limit: Option<u64>| match limit {
            Some(limit) if used >= limit => Err(BudgetSpent { budget, used, limit }),
            _ => Ok(()),
        };
        within(Budget::Children, used.alive, limits.max_children)?;
        within(Budget::ChildrenTotal, used.total, limits.max_children_total)?;
        self.spent(&used, limits).map_or(Ok(()), Err)?;
        used.alive += 1;
        used.total += 1;
        Ok(())
    }

    /// What a tree that works has used up.
    pub(super) fn is_spent(&self, limits: &Limits) -> Option<BudgetSpent> {
        self.spent(&self.lock(), limits)
    }

    fn spent(&self, used: &Used, limits: &Limits) -> Option<BudgetSpent> {
        let over = |budget, used, limit: Option<u64>| {
            limit.filter(|limit| used >= *limit).map(|limit| BudgetSpent { budget, used, limit })
        };
        over(Budget::Tokens, used.tokens, limits.tokens).or_else(|| {
            let (elapsed, limit) = (self.begun.elapsed(), limits.time?);
            let spent = BudgetSpent { budget: Budget::Time, used: elapsed.as_secs(), limit: limit.as_secs() };
            (elapsed >= limit).then_some(spent)
        })
    }

    pub(super) fn spend(&self, usage: Usage) {
        let mut used = self.lock();
        used.tokens = used.tokens.saturating_add(usage.input_tokens).saturating_add(usage.output_tokens);
    }

    /// True for the first who asks.
    pub(super) fn stop(&self) -> bool {
        !std::mem::replace(&mut self.lock().stopped, true)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The child was published: it counts in the total whatever becomes of it.
    pub(crate) fn lived(&self) {
        self.lived.store(true, Ordering::Relaxed);
    }

    /// Counts what a child used that has no log here.
    pub(crate) fn spend(&self, usage: Usage) {
        self.tree.spend(usage);
    }

    /// Makes room for another child.
    pub(crate) fn leave(&self) {
        if self.left.swap(true, Ordering::AcqRel) {
            return;
        }
        let gone = lock(&self.members).remove(&self.child);
        let mut used = self.tree.lock();
        used.alive -= 1;
        if !self.lived.load(Ordering::Relaxed) {
            used.total -= 1;
        }
        drop(used);
        drop(gone);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

fn lock(members: &Members) -> MutexGuard<'_, HashMap<SessionId, Arc<Tree>>> {
    members.lock().unwrap_or_else(PoisonError::into_inner)
}
