//! Who is below whom, from the first lines of all logs. Nothing here descends on the stack, however deep a lineage is.

use std::collections::{BTreeMap, HashMap, HashSet};

use session::SessionId;
use session_store::ListError;

use crate::Logs;
use crate::logs::diagnosis;

/// Every log there is, by its session.
pub(crate) struct Tree {
    nodes: BTreeMap<SessionId, Node>,
    children: HashMap<SessionId, Vec<SessionId>>,
}

struct Node {
    parent: Option<SessionId>,
    /// Why it is not known whose child it is.
    unplaced: Option<String>,
}

/// A session in the tree.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) session: SessionId,
    pub(crate) parent: Option<SessionId>,
    /// Counted from the root of what is shown.
    pub(crate) depth: usize,
}

/// A log of which nobody knows whose child it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// Which.
    pub session: SessionId,
    /// Why, in one line.
    pub why: String,
}

impl Tree {
    pub(crate) async fn of(logs: &dyn Logs) -> Result<Self, ListError> {
        let (mut nodes, mut children) = (BTreeMap::new(), HashMap::<_, Vec<_>>::new());
        for row in logs.list().await? {
            let header = match row.found {
                Ok(summary) => Ok(summary.header),
                Err(error) => logs.header(row.id).await.ok_or(error),
            };
            let node = match header {
                Ok(header) => Node { parent: header.lineage().map(|lineage| lineage.parent()), unplaced: None },
                Err(error) => Node { parent: None, unplaced: Some(diagnosis(&error)) },
            };
            if let Some(parent) = node.parent {
                children.entry(parent).or_default().push(row.id);
            }
            nodes.insert(row.id, node);
        }
        Ok(Self { nodes, children })
    }

    /// A session and everything below it: parents before children, older before younger, each once.
    pub(crate) fn below(&self, root: SessionId) -> Vec<Place> {
        let mut places = Vec::new();
        self.descend(root, &mut HashSet::new(), &mut places);
        places
    }

    /// Everything. Sessions whose parent is not there are roots; then come those that go in a circle.
    pub(crate) fn all(&self) -> Vec<Place> {
        let (mut places, mut met) = (Vec::new(), HashSet::new());
        let is_root = |node: &Node| node.parent.is_none_or(|parent| !self.nodes.contains_key(&parent));
        let roots = self.nodes.iter().filter(|(_, node)| is_root(node)).chain(self.nodes.iter());
        for (root, _) in roots {
            self.descend(*root, &mut met, &mut places);
        }
        places
    }

    /// Those that are their own ancestors.
    pub(crate) fn circular(&self) -> HashSet<SessionId> {
        let parent_of = |id: &SessionId| self.nodes.get(id).and_then(|node| node.parent);
        let (mut walks, mut circular) = (HashMap::new(), HashSet::new());
        for (walk, start) in self.nodes.keys().enumerate() {
            let mut at = Some(*start);
            while let Some(id) = at {
                match walks.get(&id) {
                    // Met on this very walk, so it leads back to itself.
                    Some(earlier) if *earlier == walk => {
                        let mut member = Some(id);
                        while let Some(id) = member.filter(|id| circular.insert(*id)) {
                            member = parent_of(&id);
                        }
                        break;
                    }
                    Some(_) => break,
                    None => {
                        walks.insert(id, walk);
                        at = parent_of(&id);
                    }
                }
            }
        }
        circular
    }

    /// Those that are nowhere in `shown`, and might belong there.
    pub(crate) fn unplaced(&self, shown: &[Place]) -> Vec<Unplaced> {
        let shown: HashSet<SessionId> = shown.iter().map(|place| place.session).collect();
        let unplaced = |(id, node): (&SessionId, &Node)| {
            let why = node.unplaced.clone().filter(|_| !shown.contains(id))?;
            Some(Unplaced { session: *id, why })
        };
        self.nodes.iter().filter_map(unplaced).collect()
    }

    /// The parent that a log's header names, or that this cannot be told; `None` if there is no such log.
    pub(crate) fn parent_of(&self, id: SessionId) -> Option<Result<Option<SessionId>, &str>> {
        let node = self.nodes.get(&id)?;
        Some(node.unplaced.as_deref().map_or(Ok(node.parent), Err))
    }

    pub(crate) fn contains(&self, id: SessionId) -> bool {
        self.nodes.contains_key(&id)
    }

    fn descend(&self, root: SessionId, met: &mut HashSet<SessionId>, places: &mut Vec<Place>) {
        let mut stack = vec![(root, 0)];
        while let Some((session, depth)) = stack.pop() {
            if !met.insert(session) {
                continue;
            }
            let parent = self.nodes.get(&session).and_then(|node| node.parent);
            places.push(Place { session, parent, depth });
            let below = self.children.get(&session).into_iter().flatten().rev();
            stack.extend(below.map(|child| (*child, depth + 1)));
        }
    }
}
