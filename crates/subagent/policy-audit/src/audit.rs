use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use session::{SessionId, SessionTitle, Snapshot};
use session_store::{ListError, NotFound, ReadError, Reading};
use subagent::Descriptor;

use crate::child::{Parent, check_with, missing};
use crate::digest::is_approval;
use crate::logs::diagnosis;
use crate::named::Named;
use crate::own::not_absent;
use crate::tree::{Place, Tree, Unplaced};
use crate::{Code, Finding, Logs, check_top_level};

/// What is audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every log.
    All,
    /// A session, against its parent if it has one, and everything below it.
    Below(SessionId),
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Every session in the scope: parents before children, older before younger.
    pub sessions: Vec<Audited>,
    /// Logs outside of it that might belong there: they cannot be read far enough to tell.
    pub unplaced: Vec<Unplaced>,
}

/// One session.
#[derive(Clone, Debug)]
pub struct Audited {
    /// Which.
    pub session: SessionId,
    /// The parent that its header names.
    pub parent: Option<SessionId>,
    /// How far it is below the root of what was audited.
    pub depth: usize,
    /// A few words for people, from the log.
    pub label: Option<Arc<str>>,
    /// What is wrong with it, at most [`Audited::MOST`].
    pub findings: Vec<Finding>,
    /// How many findings more there are.
    pub more: u64,
    /// Events of types that this program does not know. They are none of its business, and no finding.
    pub unknown: Vec<Unknown>,
}

/// A type of events that this program does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Its tag.
    pub tag: Box<str>,
    /// The first of them.
    pub seq: u64,
    /// How many there are.
    pub events: u64,
}

/// Why nothing was audited.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// There is no such session.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The logs cannot even be listed.
    #[error(transparent)]
    List(#[from] ListError),
}

/// Audits logs, a family at a time: a parent is read once for all of its children, and two logs are held at most.
///
/// What a log tells of its children is held against theirs: a child that it names must be there, and name it.
///
/// A log whose last line is not whole is one that is being written, and no finding. Somebody who rewrites all logs
/// consistently is not found.
pub async fn audit(logs: &dyn Logs, scope: Scope) -> Result<Report, AuditError> {
    let tree = Tree::of(logs).await?;
    let places = match scope {
        Scope::All => tree.all(),
        Scope::Below(root) => {
            if !tree.contains(root)
                && let Err(ReadError::NotFound(none)) = logs.read(root).await
            {
                return Err(none.into());
            }
            tree.below(root)
        }
    };
    let mut audited = Families::new(logs, &tree, &places).audit(&places).await;
    let circular = tree.circular();
    let sessions = places.iter().filter_map(|place| {
        let mut audited = audited.remove(&place.session)?;
        if circular.contains(&place.session) {
            let why = "its lineage goes in a circle: it is its own ancestor";
            audited.findings.insert(0, Finding::of_log(Code::LineageCircle, why));
        }
        Some(audited)
    });
    Ok(Report { sessions: sessions.collect(), unplaced: tree.unplaced(&places) })
}

/// An audit of sessions, and what of it is not known before all of them were looked at.
struct Families<'a> {
    logs: &'a dyn Logs,
    tree: &'a Tree,
    shown: HashSet<SessionId>,
    audited: HashMap<SessionId, Audited>,
    /// Whose descriptor says that no approval service was composed, and where.
    absent: BTreeMap<SessionId, u64>,
    /// For each parent a child whose log tells of an approval service, and where.
    approving: HashMap<SessionId, (SessionId, u64)>,
}

impl<'a> Families<'a> {
    fn new(logs: &'a dyn Logs, tree: &'a Tree, places: &[Place]) -> Self {
        let shown = places.iter().map(|place| place.session).collect();
        Self { logs, tree, shown, audited: HashMap::new(), absent: BTreeMap::new(), approving: HashMap::new() }
    }

    /// Audits the sessions at these places. One that is gone by now was discarded, and is left out.
    async fn audit(mut self, places: &[Place]) -> HashMap<SessionId, Audited> {
        let (mut families, mut alone) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        for place in places {
            match place.parent {
                Some(parent) => families.entry(parent).or_default().push(*place),
                None => drop(alone.insert(place.session, *place)),
            }
        }
        for (id, children) in families {
            let read = self.logs.read(id).await;
            if let Some(place) = alone.remove(&id) {
                self.one(place, &read, check_top_level).await;
            }
            let parent = read.map(|reading| Parent::of(reading.decoded.log().clone()));
            for place in children {
                let child = self.logs.read(place.session).await;
                self.one(place, &child, |log| check_below(&parent, log)).await;
            }
        }
        for (id, place) in alone {
            let read = self.logs.read(id).await;
            self.one(place, &read, check_top_level).await;
        }
        self.check_absent();
        self.audited
    }

    async fn one(
        &mut self,
        place: Place,
        read: &Result<Reading, ReadError>,
        check: impl FnOnce(&Snapshot) -> Vec<Finding>,
    ) {
        let Place { session, parent, depth } = place;
        let mut audited =
            Audited { session, parent, depth, label: None, findings: Vec::new(), more: 0, unknown: Vec::new() };
        match read.as_ref().map(|reading| reading.decoded.log()) {
            Err(ReadError::NotFound(_)) => return,
            Err(error) => audited.findings.push(Finding::of_log(Code::LogUnreadable, diagnosis(error))),
            Ok(log) => {
                audited.findings = check(log);
                let named = Named::of(log);
                audited
                    .findings
                    .extend(named.check(session, self.logs, self.tree, |id| self.shown.contains(&id)).await);
                audited.in_order();
                audited.label = label(log);
                audited.unknown = Unknown::all(log);
                self.note(place, log);
            }
        }
        self.audited.insert(session, audited);
    }

    /// What a log tells of approval services, for the look at its parent and its children.
    fn note(&mut self, place: Place, log: &Snapshot) {
        let own = log.header().seed_length();
        let Some(parent) = place.parent else { return };
        if let Some(event) = log.latest_event::<Descriptor>().filter(|event| event.seq() >= own)
            && event.get::<Descriptor>().is_some_and(|descriptor| descriptor.approval.is_some())
        {
            self.absent.insert(place.session, event.seq());
        }
        if !self.approving.contains_key(&parent)
            && let Some(event) = log.events_from(own).find(|event| is_approval(event))
        {
            self.approving.insert(parent, (place.session, event.seq()));
        }
    }

    /// A session without an approval service has no children that were made under one.
    fn check_absent(&mut self) {
        for (session, seq) in &self.absent {
            let Some((child, at)) = self.approving.get(session) else { continue };
            let Some(audited) = self.audited.get_mut(session) else { continue };
            let is_told = |finding: &Finding| matches!(finding.code, Code::ApprovalNotAbsent | Code::PinUnfounded);
            if !audited.findings.iter().any(is_told) {
                let why = not_absent(&format!("its child {child} has an event of one (seq {at})"));
                audited.findings.push(Finding::at(Code::ApprovalNotAbsent, *seq, why));
                audited.in_order();
            }
        }
    }
}

fn check_below(parent: &Result<Parent, ReadError>, log: &Snapshot) -> Vec<Finding> {
    let Some(lineage) = log.header().lineage() else { return check_top_level(log) };
    let parent = parent.as_ref().map_err(|error| match error {
        ReadError::NotFound(_) => missing(lineage),
        ReadError::Damaged(_) | ReadError::Io(_) => {
            let why = format!("the log of its parent {} cannot be read", lineage.parent());
            Finding::of_log(Code::ParentUnreadable, why)
        }
    });
    check_with(parent, lineage, log)
}

impl Report {
    /// How many findings there are.
    pub fn violations(&self) -> u64 {
        self.sessions.iter().map(|session| session.findings.len() as u64 + session.more).sum()
    }
}

impl Audited {
    /// How many findings of one session are told one by one.
    pub const MOST: usize = 100;

    /// Sorts the findings by their events, and leaves out those that are too many.
    fn in_order(&mut self) {
        self.findings.sort_by_key(|finding| finding.seq);
        self.more += self.findings.len().saturating_sub(Self::MOST) as u64;
        self.findings.truncate(Self::MOST);
    }
}

fn label(log: &Snapshot) -> Option<Arc<str>> {
    let descriptor = log.latest::<Descriptor>().filter(|_| log.header().lineage().is_some());
    let label = descriptor.and_then(|descriptor| descriptor.label.clone());
    label.or_else(|| log.latest::<SessionTitle>().map(|title| title.title.clone()))
}

impl Unknown {
    /// How many types are told.
    const MOST: usize = 32;

    fn all(log: &Snapshot) -> Vec<Self> {
        let (mut all, mut at) = (Vec::<Self>::new(), HashMap::<&str, usize>::new());
        for event in log.events().iter().filter(|event| !event.is_known()) {
            match at.get(event.tag()) {
                Some(index) => all[*index].events += 1,
                None if all.len() < Self::MOST => {
                    at.insert(event.tag(), all.len());
                    all.push(Self { tag: event.tag().into(), seq: event.seq(), events: 1 });
                }
                None => {}
            }
        }
        all
    }
}
