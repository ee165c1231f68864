//! What a session may do, and which events decided that.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sandbox_policy::ModeSet;
use session::SessionId;
use session_store::{ListError, NotFound, ReadError};
use user_approval::PolicySet;

use crate::digest::{Digest, Kept};
use crate::logs::diagnosis;
use crate::tree::{Place, Tree, Unplaced};
use crate::{Knob, Logs, name_of};

/// What decides for one session.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Which.
    pub session: SessionId,
    /// The sandbox mode.
    pub sandbox: Ruling,
    /// The approval policy.
    pub approval: Ruling,
}

/// What decides one knob of a session.
#[derive(Clone, Debug)]
pub struct Ruling {
    /// The knob's name.
    pub name: &'static str,
    /// The key of its value in JSON.
    pub key: &'static str,
    /// From the event that decides back to where it came from. Empty: no event decides, the deployment default does.
    pub links: Vec<Link>,
    /// Whether the way back goes on behind the last link.
    pub is_cut: bool,
    /// What explains it further.
    pub remarks: Vec<String>,
    /// What is not as a delegation would have left it, or cannot be known.
    pub problems: Vec<String>,
}

/// An event on the way from what decides to where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Whose log it is in.
    pub session: SessionId,
    /// Where it is in that log.
    pub seq: u64,
    /// Why it was written: `user` for a user's own switch.
    pub source: String,
    /// What it set.
    pub value: String,
    /// Whether it lies in history that a fork copied.
    pub is_seeded: bool,
}

/// A session of a tree that was explained.
#[derive(Debug)]
pub struct Branch {
    /// Which.
    pub session: SessionId,
    /// The parent that its header names.
    pub parent: Option<SessionId>,
    /// How far it is below the root of what is shown.
    pub depth: usize,
    /// What decides, or why that cannot be told.
    pub found: Result<Explained, ReadError>,
}

/// Why no tree was explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// There is no such session.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The logs cannot even be listed.
    #[error(transparent)]
    List(#[from] ListError),
}

/// How many links are followed for each session of a tree. Where a way is longer, the sessions above tell the rest.
const MOST_IN_TREE: usize = 32;

/// Explains one session, up to the root.
pub async fn explain(logs: &dyn Logs, id: SessionId) -> Result<Explained, ReadError> {
    Family::of(logs, usize::MAX).explain(id).await
}

/// Explains a session and everything below it, one at a time. Each log is read once, and only what decides is kept of it.
pub async fn explain_tree(logs: &dyn Logs, root: SessionId) -> Result<Branches<'_>, ExplainError> {
    let tree = Tree::of(logs).await?;
    let places = tree.below(root);
    if !tree.contains(root)
        && let Err(ReadError::NotFound(none)) = logs.read(root).await
    {
        return Err(none.into());
    }
    let unplaced = tree.unplaced(&places);
    Ok(Branches { family: Family::of(logs, MOST_IN_TREE), places: places.into_iter(), unplaced })
}

/// The sessions of a tree: parents before children, older before younger.
pub struct Branches<'a> {
    family: Family<'a>,
    places: std::vec::IntoIter<Place>,
    unplaced: Vec<Unplaced>,
}

impl Branches<'_> {
    /// The next one.
    pub async fn next(&mut self) -> Option<Branch> {
        loop {
            let Place { session, parent, depth } = self.places.next()?;
            match self.family.explain(session).await {
                // Discarded since the logs were listed.
                Err(ReadError::NotFound(_)) => {}
                found => return Some(Branch { session, parent, depth, found }),
            }
        }
    }

    /// Logs outside of the tree that might belong there: they cannot be read far enough to tell.
    pub fn unplaced(&self) -> &[Unplaced] {
        &self.unplaced
    }
}

/// What decides in the logs of sessions and their ancestors, each read once.
struct Family<'a> {
    logs: &'a dyn Logs,
    read: HashMap<SessionId, Result<Arc<Digest>, String>>,
    /// How many links are followed.
    most: usize,
}

impl<'a> Family<'a> {
    fn of(logs: &'a dyn Logs, most: usize) -> Self {
        Self { logs, read: HashMap::new(), most }
    }

    async fn explain(&mut self, id: SessionId) -> Result<Explained, ReadError> {
        if !matches!(self.read.get(&id), Some(Ok(_))) {
            let digest = Digest::of(self.logs.read(id).await?.decoded.log());
            self.read.insert(id, Ok(Arc::new(digest)));
        }
        let (sandbox, approval) = (rule::<ModeSet>(self, id).await, rule::<PolicySet>(self, id).await);
        Ok(Explained { session: id, sandbox, approval })
    }

    async fn get(&mut self, id: SessionId) -> Result<Arc<Digest>, String> {
        if let Some(read) = self.read.get(&id) {
            return read.clone();
        }
        let digest = self.logs.read(id).await.map(|reading| Arc::new(Digest::of(reading.decoded.log())));
        self.read.entry(id).or_insert(digest.map_err(|error| diagnosis(&error))).clone()
    }
}

async fn rule<K: Kept>(family: &mut Family<'_>, id: SessionId) -> Ruling {
    let mut ruling = Ruling::of::<K>();
    let Ok(log) = family.get(id).await else { return ruling };
    match log.last_before::<K>(log.len) {
        Some(decider) => ruling.trace::<K>(family, id, decider.seq).await,
        None => ruling.explain_default::<K>(family, &log).await,
    }
    ruling
}

/// Where an override was copied from.
enum Origin {
    /// It is this one, in the parent's log.
    Copied(SessionId, u64),
    /// It was copied from nowhere.
    End,
}

impl Ruling {
    fn of<K: Knob>() -> Self {
        let (links, remarks, problems) = (Vec::new(), Vec::new(), Vec::new());
        Self { name: K::NAME, key: K::KEY, links, is_cut: false, remarks, problems }
    }

    /// Follows an override to where it was copied from, as far up as it was copied.
    async fn trace<K: Kept>(&mut self, family: &mut Family<'_>, mut id: SessionId, mut seq: u64) {
        let mut met = HashSet::new();
        loop {
            if self.links.len() == family.most {
                self.is_cut = true;
                return;
            }
            met.insert(id);
            match self.step::<K>(family, id, seq, &met).await {
                Origin::Copied(parent, origin) => (id, seq) = (parent, origin),
                Origin::End => return,
            }
        }
    }

    async fn step<K: Kept>(
        &mut self,
        family: &mut Family<'_>,
        id: SessionId,
        seq: u64,
        met: &HashSet<SessionId>,
    ) -> Origin {
        let Ok(log) = family.get(id).await else { return Origin::End };
        let Some(set) = log.at::<K>(seq) else { return Origin::End };
        let header = &log.header;
        let (knob, value) = (set.set, name_of(&set.set.value()));
        let is_seeded = seq < header.seed_length();
        self.links.push(Link { session: id, seq, source: knob.source(), value: value.clone(), is_seeded });
        if !is_seeded && !knob.is_handed_down() {
            return Origin::End;
        }
        let Some(lineage) = header.lineage() else {
            return self.end(format!("seq {seq} says that a delegation wrote it, and {id} has no parent"));
        };
        let (parent, end) = (lineage.parent(), lineage.parent_seq());
        if let Some(pin) = K::PIN
            && !is_seeded
        {
            if knob.value() != pin {
                return self.end(format!("a delegation pins a child to {}; seq {seq} says {value}", name_of(&pin)));
            }
            self.remarks.push(format!("the delegation by {parent} pinned it, whatever applied there"));
            return Origin::End;
        }
        if met.contains(&parent) {
            return self.end(format!("the lineage goes in a circle: {parent} is its own ancestor"));
        }
        let parents = match family.get(parent).await {
            Ok(parents) => parents,
            Err(why) => return self.end(format!("where {id} seq {seq} was copied from is not known: {why}")),
        };
        if parents.len < end {
            let len = parents.len;
            self.problem(format!("{id} was delegated at seq {end} of {parent}, which has only {len} events"));
        }
        let origin = match is_seeded {
            true => parents.at::<K>(seq).filter(|origin| origin.line == set.line),
            false => parents.last_before::<K>(end),
        };
        if is_seeded {
            self.check_unstamped::<K>(&log, &parents, seq);
        }
        let Some(origin) = origin else {
            return self.end(match is_seeded {
                true => format!("{id} seq {seq} is not what {parent} has at seq {seq}, where its history is from"),
                false => {
                    format!(
                        "{id} seq {seq} says {value}, and {parent} had no override when it delegated (at seq {end})"
                    )
                }
            });
        };
        let (handed, at) = (name_of(&origin.set.value()), origin.seq);
        if handed != value {
            return self.end(format!(
                "{id} seq {seq} says {value}, and {parent} had {handed} (seq {at}) when it delegated (at seq {end})"
            ));
        }
        Origin::Copied(parent, at)
    }

    /// No event decides. For a child, whether that is as it should be.
    async fn explain_default<K: Kept>(&mut self, family: &mut Family<'_>, log: &Digest) {
        let Some(lineage) = log.header.lineage() else { return };
        let (id, parent, end) = (log.header.id(), lineage.parent(), lineage.parent_seq());
        if K::PIN.is_some() {
            return self.check_unpinned(log, parent);
        }
        match family.get(parent).await {
            Err(why) => self.problem(format!("whether its parent had an override is not known: {why}")),
            Ok(parents) => match parents.last_before::<K>(end) {
                None => self.remarks.push(format!("{parent} had no override either when it delegated (at seq {end})")),
                Some(origin) => {
                    let (had, at) = (name_of(&origin.set.value()), origin.seq);
                    self.problem(format!(
                        "{parent} had {had} (seq {at}) when it delegated, and no stamp says so in {id}"
                    ));
                }
            },
        }
    }

    /// Copied history decides, so the delegation wrote nothing: whether that is as it should be.
    fn check_unstamped<K: Kept>(&mut self, log: &Digest, parents: &Digest, seq: u64) {
        let Some(lineage) = log.header.lineage() else { return };
        let (id, parent, end) = (log.header.id(), lineage.parent(), lineage.parent_seq());
        if K::PIN.is_some() {
            return self.check_unpinned(log, parent);
        }
        if let Some(origin) = parents.last_before::<K>(end).filter(|origin| origin.seq != seq) {
            let (had, at) = (name_of(&origin.set.value()), origin.seq);
            self.problem(format!("{parent} had {had} (seq {at}) when it delegated, and no stamp says so in {id}"));
        }
    }

    fn check_unpinned(&mut self, log: &Digest, parent: SessionId) {
        let id = log.header.id();
        match log.descriptor_before(u64::MAX).is_some_and(|descriptor| descriptor.approval.is_some()) {
            true => self.remarks.push(format!("nobody could be asked when {id} was delegated, so it has no pin")),
            false => self.problem(format!("{id} has no pin from its delegation by {parent}")),
        }
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn end(&mut self, problem: String) -> Origin {
        self.problem(problem);
        Origin::End
    }
}
