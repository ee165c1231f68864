//! What a whole tree of agents may use, and what it has used.
//!
//! A tree is a top-level agent and everyone below it. A start that would pass a budget is refused; an agent whose tree has
//! spent its tokens or its time begins no other step.

mod keeper;
mod tree;

use std::time::Duration;

use session::SessionId;

pub(crate) use keeper::keep;
pub(crate) use tree::{Place, Trees};

/// What the deployment allows a tree of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How far below a top-level session a child may stand; 0 forbids delegation.
    pub max_depth: u32,
    /// How many children may be alive at once.
    pub max_children: Option<u64>,
    /// How many children there may be in total while the top-level agent lives.
    pub max_children_total: Option<u64>,
    /// How many tokens may be used, input and output together.
    pub tokens: Option<u64>,
    /// How long the tree may work, from the publication of its top-level agent.
    pub time: Option<Duration>,
}

/// One of the budgets that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Budget {
    /// Children alive at once.
    Children,
    /// Children in total.
    ChildrenTotal,
    /// Tokens.
    Tokens,
    /// Seconds.
    Time,
}

/// A budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the budget of {limit} {budget} for this tree of agents is used up: {used} used")]
pub struct BudgetSpent {
    /// Which.
    pub budget: Budget,
    /// How much of it is used; seconds for [`Budget::Time`].
    pub used: u64,
    /// How much there was.
    pub limit: u64,
}

/// A tree that works is stopped, since it has spent its tokens or its time. Emitted in the app's realm, once for a tree.
#[derive(Clone, Copy, Debug)]
pub struct BudgetReached {
    /// The session at the top of the tree.
    pub root: SessionId,
    /// What is spent.
    pub spent: BudgetSpent,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_depth: 3, max_children: None, max_children_total: None, tokens: None, time: None }
    }
}

impl Limits {
    /// Whether anything has to be counted.
    fn counts(&self) -> bool {
        self.max_children.is_some() || self.max_children_total.is_some() || self.stops_work()
    }

    /// Whether anything can stop an agent that works.
    fn stops_work(&self) -> bool {
        self.tokens.is_some() || self.time.is_some()
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Children => "children at once",
            Self::ChildrenTotal => "children in total",
            Self::Tokens => "tokens",
            Self::Time => "seconds",
        })
    }
}
