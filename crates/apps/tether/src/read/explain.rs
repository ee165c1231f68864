//! `tether policy explain`: what a session may do, and which events decided that, from logs alone.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use sandbox_policy::ModeSet;
use serde_json::{Value, json};
use session::{Event, SessionId, Snapshot};
use subagent::Descriptor;
use user_approval::PolicySet;

use super::knob::{Knob, decided, last_before, name};
use super::style::{BAD, BOLD, DIM};
use super::{Logs, Notes, Stop, diagnosis};

/// What decides one knob of a session.
struct Ruling {
    name: &'static str,
    key: &'static str,
    /// From the event that decides back to where it came from. Empty: no event decides.
    links: Vec<Link>,
    /// What explains it further.
    remarks: Vec<String>,
    /// What is not as a delegation would have left it, or cannot be known.
    problems: Vec<String>,
}

/// An event in the chain.
struct Link {
    session: SessionId,
    seq: u64,
    source: String,
    value: String,
    /// Whether it lies in history that a fork copied.
    seeded: bool,
}

/// Logs of a session and its ancestors, each read once.
struct Family<'a> {
    logs: &'a Logs,
    read: HashMap<SessionId, Result<Snapshot, String>>,
}

pub(super) fn json(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    let (sandbox, approval) = explain(logs, id)?;
    let explanation = json!({ "session": id, sandbox.name: sandbox.to_json(), approval.name: approval.to_json() });
    writeln!(out, "{explanation}")?;
    Ok(Notes::new())
}

pub(super) fn text(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    let (sandbox, approval) = explain(logs, id)?;
    writeln!(out, "session   {id}")?;
    sandbox.tell(out)?;
    approval.tell(out)?;
    Ok(Notes::new())
}

fn explain(logs: &Logs, id: SessionId) -> Result<(Ruling, Ruling), Stop> {
    let log = logs.read(id)?.decoded.log().clone();
    let mut family = Family { logs, read: HashMap::from([(id, Ok(log.clone()))]) };
    Ok((rule::<ModeSet>(&mut family, log.clone()), rule::<PolicySet>(&mut family, log)))
}

fn rule<K: Knob>(family: &mut Family<'_>, log: Snapshot) -> Ruling {
    let mut ruling =
        Ruling { name: K::NAME, key: K::KEY, links: Vec::new(), remarks: Vec::new(), problems: Vec::new() };
    match decided::<K>(&log).map(|(event, _)| event.clone()) {
        Some(event) => ruling.trace::<K>(family, log, event),
        None => ruling.explain_default::<K>(family, &log),
    }
    ruling
}

impl Ruling {
    /// Follows an override to where it was copied from, as far up as it was copied.
    fn trace<K: Knob>(&mut self, family: &mut Family<'_>, mut log: Snapshot, mut event: Event) {
        let mut met = HashSet::new();
        loop {
            let header = log.header().clone();
            let (id, seq) = (header.id(), event.seq());
            let knob = event.get::<K>().expect("only overrides are traced");
            let seeded = seq < header.seed_length();
            let (source, value) = (knob.source(), name(&knob.value()));
            self.links.push(Link { session: id, seq, source, value: value.clone(), seeded });
            met.insert(id);
            if !seeded && !knob.handed_down() {
                return;
            }
            let Some(lineage) = header.lineage() else {
                return self.problem(format!("seq {seq} says that a delegation wrote it, and {id} has no parent"));
            };
            let (parent, end) = (lineage.parent(), lineage.parent_seq());
            if let Some(pin) = K::PIN
                && !seeded
            {
                let pin_name = name(&pin);
                match knob.value() == pin {
                    true => self.remarks.push(format!("the delegation by {parent} pinned it, whatever applied there")),
                    false => self.problem(format!("a delegation pins a child to {pin_name}; seq {seq} says {value}")),
                }
                return;
            }
            if met.contains(&parent) {
                return self.problem(format!("the lineage goes in a circle: {parent} is its own ancestor"));
            }
            let parents = match family.read(parent) {
                Ok(parents) => parents,
                Err(why) => return self.problem(format!("where {id} seq {seq} was copied from is not known: {why}")),
            };
            if parents.len() < end {
                let len = parents.len();
                self.problem(format!("{id} was delegated at seq {end} of {parent}, which has only {len} events"));
            }
            let origin = match seeded {
                true => parents.event(seq).filter(|origin| origin.to_json() == event.to_json()),
                false => last_before::<K>(&parents, end).map(|(origin, _)| origin),
            };
            if seeded {
                self.check_unstamped::<K>(&log, &parents, seq);
            }
            let Some(origin) = origin.cloned() else {
                return self.problem(match seeded {
                    true => format!("{id} seq {seq} is not what {parent} has at seq {seq}, where its history is from"),
                    false => format!(
                        "{id} seq {seq} says {value}, and {parent} had no override when it delegated (at seq {end})"
                    ),
                });
            };
            let handed = origin.get::<K>().map(|knob| name(&knob.value())).unwrap_or_default();
            if handed != value {
                let at = origin.seq();
                return self.problem(format!(
                    "{id} seq {seq} says {value}, and {parent} had {handed} (seq {at}) when it delegated (at seq {end})"
                ));
            }
            (log, event) = (parents, origin);
        }
    }

    /// No event decides. For a child, whether that is as it should be.
    fn explain_default<K: Knob>(&mut self, family: &mut Family<'_>, log: &Snapshot) {
        let Some(lineage) = log.header().lineage() else { return };
        let (id, parent, end) = (log.header().id(), lineage.parent(), lineage.parent_seq());
        if K::PIN.is_some() {
            return self.check_unpinned(log, parent);
        }
        match family.read(parent) {
            Err(why) => self.problem(format!("whether its parent had an override is not known: {why}")),
            Ok(parents) => match last_before::<K>(&parents, end) {
                None => self.remarks.push(format!("{parent} had no override either when it delegated (at seq {end})")),
                Some((origin, knob)) => {
                    let (had, at) = (name(&knob.value()), origin.seq());
                    self.problem(format!(
                        "{parent} had {had} (seq {at}) when it delegated, and no stamp says so in {id}"
                    ));
                }
            },
        }
    }

    /// Copied history decides, so the delegation wrote nothing: whether that is as it should be.
    fn check_unstamped<K: Knob>(&mut self, log: &Snapshot, parents: &Snapshot, seq: u64) {
        let Some(lineage) = log.header().lineage() else { return };
        let (id, parent, end) = (log.header().id(), lineage.parent(), lineage.parent_seq());
        if K::PIN.is_some() {
            return self.check_unpinned(log, parent);
        }
        if let Some((origin, knob)) = last_before::<K>(parents, end).filter(|(origin, _)| origin.seq() != seq) {
            let (had, at) = (name(&knob.value()), origin.seq());
            self.problem(format!("{parent} had {had} (seq {at}) when it delegated, and no stamp says so in {id}"));
        }
    }

    fn check_unpinned(&mut self, log: &Snapshot, parent: SessionId) {
        let id = log.header().id();
        match log.latest::<Descriptor>().is_some_and(|descriptor| descriptor.approval.is_some()) {
            true => self.remarks.push(format!("nobody could be asked when {id} was delegated, so it has no pin")),
            false => self.problem(format!("{id} has no pin from its delegation by {parent}")),
        }
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn to_json(&self) -> Value {
        let link = |Link { session, seq, source, value, seeded }: &Link| {
            let mut link = json!({ "session": session, "seq": seq, "source": source, self.key: value });
            if *seeded {
                link["seeded"] = true.into();
            }
            link
        };
        let decided_by = match self.links.is_empty() {
            true => json!("deployment default"),
            false => self.links.iter().map(link).collect(),
        };
        let mut ruling =
            json!({ self.key: self.links.first().map(|decider| &*decider.value), "decidedBy": decided_by });
        if !self.problems.is_empty() {
            ruling["problems"] = json!(self.problems);
        }
        ruling
    }

    fn tell(&self, out: &mut dyn Write) -> io::Result<()> {
        let value = self.links.first().map_or("deployment default", |decider| &decider.value);
        writeln!(out, "{:<8}  {BOLD}{value}{BOLD:#}", self.name)?;
        if self.links.is_empty() {
            writeln!(out, "  no event decides")?;
        }
        for (index, Link { session, seq, source, seeded, .. }) in self.links.iter().enumerate() {
            let how = if index == 0 { "decided by" } else { "copied from" };
            let seeded = if *seeded { ", in history that was copied" } else { "" };
            writeln!(out, "  {how} {session} seq {seq} ({source}{seeded})")?;
        }
        for remark in &self.remarks {
            writeln!(out, "  {DIM}{remark}{DIM:#}")?;
        }
        for problem in &self.problems {
            writeln!(out, "  {BAD}✗ {problem}{BAD:#}")?;
        }
        Ok(())
    }
}

impl Family<'_> {
    fn read(&mut self, id: SessionId) -> Result<Snapshot, String> {
        let logs = self.logs;
        let read = || match logs.read(id) {
            Ok(reading) => Ok(reading.decoded.log().clone()),
            Err(error) => Err(diagnosis(&error)),
        };
        self.read.entry(id).or_insert_with(read).clone()
    }
}
