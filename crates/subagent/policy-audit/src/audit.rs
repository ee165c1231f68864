use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use session::{SessionId, SessionTitle, Snapshot};
use session_store::{ListError, NotFound, ReadError};
use subagent::Descriptor;

use crate::child::{Parent, check_with, missing};
use crate::logs::diagnosis;
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
    let mut audited = families(logs, &places).await;
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

/// Audits the sessions at these places. One that is gone by now was discarded, and is left out.
async fn families(logs: &dyn Logs, places: &[Place]) -> HashMap<SessionId, Audited> {
    let (mut families, mut alone) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
    for place in places {
        match place.parent {
            Some(parent) => families.entry(parent).or_default().push(*place),
            None => drop(alone.insert(place.session, *place)),
        }
    }
    let mut audited = HashMap::new();
    for (id, children) in families {
        let read = logs.read(id).await;
        if let Some(place) = alone.remove(&id) {
            let log = read.as_ref().map(|reading| reading.decoded.log());
            audited.extend(Audited::of(place, log, check_top_level));
        }
        let parent = read.map(|reading| Parent::of(reading.decoded.log().clone()));
        for place in children {
            let child = logs.read(place.session).await;
            let check = |log: &Snapshot| check_below(&parent, log);
            audited.extend(Audited::of(place, child.as_ref().map(|reading| reading.decoded.log()), check));
        }
    }
    for (id, place) in alone {
        let read = logs.read(id).await;
        audited.extend(Audited::of(place, read.as_ref().map(|reading| reading.decoded.log()), check_top_level));
    }
    audited
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

    fn of(
        place: Place,
        log: Result<&Snapshot, &ReadError>,
        check: impl FnOnce(&Snapshot) -> Vec<Finding>,
    ) -> Option<(SessionId, Self)> {
        let Place { session, parent, depth } = place;
        let mut audited =
            Self { session, parent, depth, label: None, findings: Vec::new(), more: 0, unknown: Vec::new() };
        match log {
            Err(ReadError::NotFound(_)) => return None,
            Err(error) => audited.findings.push(Finding::of_log(Code::LogUnreadable, diagnosis(error))),
            Ok(log) => {
                audited.findings = check(log);
                audited.more = audited.findings.len().saturating_sub(Self::MOST) as u64;
                audited.findings.truncate(Self::MOST);
                audited.label = label(log);
                audited.unknown = Unknown::all(log);
            }
        }
        Some((session, audited))
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
