//! `tether sessions tree`: who delegated to whom, under what, and what came of it.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::sync::Arc;

use llm::Usage;
use policy_audit::{Knob, decided, name_of};
use sandbox::Denial;
use sandbox_policy::ModeSet;
use serde::Serialize;
use serde_json::{Value, json};
use session::{AssistantMessage, SessionId, SessionTitle, Snapshot, TurnEnd, TurnReason, TurnStart};
use session_store::Reading;
use subagent::{Descriptor, denial_of};
use user_approval::PolicySet;

use super::style::{BAD, BOLD, DIM, GOOD, NOTABLE};
use super::text::{brief, count};
use super::{Logs, Notes, Stop, diagnosis};

/// How many denials of a session are told one by one.
const DENIALS: usize = 3;
/// The longest label, in characters.
const LABEL: usize = 60;
/// The longest target of a denial, or message of an error, in characters.
const TARGET: usize = 200;

/// A session in the tree.
struct Node<'a> {
    id: SessionId,
    /// Counted from the root of what is shown.
    depth: usize,
    /// Whether nobody follows below the same parent.
    last: bool,
    /// What its log tells, or why it is not told.
    facts: Result<&'a Facts, String>,
}

/// What a log tells of its session, copied history left out.
struct Facts {
    log: Snapshot,
    holder: Option<u32>,
    outcome: Outcome,
    usage: Usage,
    denials: u64,
    first_denials: Vec<Denial>,
}

/// How far a session has come.
enum Outcome {
    /// It has not begun.
    NoTurn,
    /// A process is at it.
    Running,
    /// A turn is open, and no process holds the session.
    LeftOpen(u32),
    /// Its last turn is closed.
    Ended(TurnReason),
}

pub(super) fn json(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    walk(logs, id, |node| {
        let line = match &node.facts {
            Ok(facts) => facts.to_json(node.id, node.depth),
            Err(error) => json!({ "session": node.id, "depth": node.depth, "error": error }),
        };
        writeln!(out, "{line}")
    })
}

pub(super) fn text(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    // Whether the branch at each depth goes on below this line.
    let mut goes_on = Vec::new();
    walk(logs, id, |node| {
        goes_on.truncate(node.depth.saturating_sub(1));
        let above: String = goes_on.iter().map(|goes_on| if *goes_on { "│  " } else { "   " }).collect();
        let (branch, below) = match (node.depth, node.last) {
            (0, _) => ("", ""),
            (_, false) => ("├─ ", "│  "),
            (_, true) => ("└─ ", "   "),
        };
        if node.depth > 0 {
            goes_on.push(!node.last);
        }
        write!(out, "{DIM}{above}{branch}{DIM:#}")?;
        match &node.facts {
            Ok(facts) => facts.tell(out, node.id, &format!("{above}{below}")),
            Err(error) => writeln!(out, "{}  {BAD}{error}{BAD:#}", node.id),
        }
    })
}

/// Tells every session below `root`, parents before children, older before younger.
fn walk(logs: &Logs, root: SessionId, mut tell: impl FnMut(&Node<'_>) -> io::Result<()>) -> Result<Notes, Stop> {
    let reading = logs.read(root)?;
    let (mut children, notes) = children(logs)?;
    let facts = Facts::of(&reading);
    tell(&Node { id: root, depth: 0, last: true, facts: Ok(&facts) })?;
    drop((reading, facts));
    let mut told = HashSet::from([root]);
    let mut stack = Vec::new();
    let mut descend = |stack: &mut Vec<_>, id, depth| {
        let below = children.remove(&id).unwrap_or_default();
        stack.extend(below.into_iter().enumerate().map(|(index, child)| (child, depth, index == 0)));
    };
    descend(&mut stack, root, 1);
    while let Some((id, depth, last)) = stack.pop() {
        let node = |facts| Node { id, depth, last, facts };
        if !told.insert(id) {
            tell(&node(Err("its lineage goes in a circle: it is told above".to_owned())))?;
            continue;
        }
        match logs.read(id) {
            Ok(reading) => tell(&node(Ok(&Facts::of(&reading))))?,
            Err(error) => tell(&node(Err(format!("unreadable: {}", diagnosis(&error)))))?,
        }
        descend(&mut stack, id, depth + 1);
    }
    Ok(notes)
}

/// Who is below whom, youngest first; and what could not be placed.
fn children(logs: &Logs) -> Result<(BTreeMap<SessionId, Vec<SessionId>>, Notes), Stop> {
    let (mut children, mut notes) = (BTreeMap::<_, Vec<_>>::new(), Notes::new());
    for row in logs.list()?.into_iter().rev() {
        let header = match row.found {
            Ok(summary) => Ok(summary.header),
            Err(error) => logs.header(row.id).map(Arc::new).ok_or(error),
        };
        match header {
            Ok(header) => {
                if let Some(lineage) = header.lineage() {
                    children.entry(lineage.parent()).or_default().push(row.id);
                }
            }
            Err(error) => notes.push(format!("where this one belongs is not known: {}", diagnosis(&error))),
        }
    }
    Ok((children, notes))
}

impl Facts {
    fn of(reading: &Reading) -> Self {
        let log = reading.decoded.log();
        let (mut usage, mut denials, mut first_denials) = (Usage::default(), 0, Vec::new());
        for event in log.events_from(log.header().seed_length()) {
            if let Some(AssistantMessage { usage: Some(more), .. }) = event.get() {
                add(&mut usage, more);
            } else if let Some(denial) = denial_of(event) {
                denials += 1;
                if first_denials.len() < DENIALS {
                    first_denials.push(denial);
                }
            }
        }
        let outcome = Outcome::of(log, reading.holder);
        Self { log: log.clone(), holder: reading.holder, outcome, usage, denials, first_denials }
    }

    fn descriptor(&self) -> Option<&Descriptor> {
        self.log.latest::<Descriptor>().filter(|_| self.log.header().lineage().is_some())
    }

    fn label(&self) -> Option<&str> {
        let label = self.descriptor().and_then(|descriptor| descriptor.label.as_deref());
        label.or_else(|| self.log.latest::<SessionTitle>().map(|title| &*title.title))
    }

    fn tell(&self, out: &mut dyn Write, id: SessionId, below: &str) -> io::Result<()> {
        let provider = self.descriptor().map_or("session", |descriptor| &descriptor.provider);
        let label = brief(self.label().unwrap_or(provider), LABEL);
        write!(out, "{BOLD}{label}{BOLD:#}  {DIM}{id}{DIM:#}  {}", in_words::<ModeSet>(&self.log))?;
        write!(out, " · approval {} · ", in_words::<PolicySet>(&self.log))?;
        self.outcome.tell(out)?;
        write!(out, " · {} tokens", count(self.usage.input_tokens.saturating_add(self.usage.output_tokens)))?;
        match self.denials {
            0 => {}
            1 => write!(out, " · {BAD}1 denial{BAD:#}")?,
            more => write!(out, " · {BAD}{more} denials{BAD:#}")?,
        }
        if let (Some(pid), false) = (self.holder, matches!(self.outcome, Outcome::Running)) {
            write!(out, " · {NOTABLE}open in process {pid}{NOTABLE:#}")?;
        }
        writeln!(out)?;
        for denial in &self.first_denials {
            let Denial { operation, target, mode } = denial;
            let target = brief(target, TARGET);
            writeln!(out, "{DIM}{below}{DIM:#}    {BAD}denied: {operation} {target} (mode {mode}){BAD:#}")?;
        }
        match self.denials.saturating_sub(self.first_denials.len() as u64) {
            0 => Ok(()),
            more => writeln!(out, "{DIM}{below}{DIM:#}    {BAD}and {more} more{BAD:#}"),
        }
    }

    fn to_json(&self, session: SessionId, depth: usize) -> Value {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a> {
            session: SessionId,
            depth: usize,
            #[serde(skip_serializing_if = "Option::is_none")]
            parent: Option<SessionId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            label: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            provider: Option<&'a str>,
            sandbox: Value,
            approval: Value,
            outcome: Option<&'static str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            open_turn: Option<u32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            holder: Option<u32>,
            usage: Usage,
            denials: u64,
            first_denials: &'a [Denial],
        }
        let line = Line {
            session,
            depth,
            parent: self.log.header().lineage().map(|lineage| lineage.parent()),
            label: self.label(),
            provider: self.descriptor().map(|descriptor| &*descriptor.provider),
            sandbox: setting::<ModeSet>(&self.log),
            approval: setting::<PolicySet>(&self.log),
            outcome: self.outcome.word(),
            open_turn: match self.outcome {
                Outcome::LeftOpen(turn) => Some(turn),
                Outcome::NoTurn | Outcome::Running | Outcome::Ended(_) => None,
            },
            holder: self.holder,
            usage: self.usage,
            denials: self.denials,
            first_denials: &self.first_denials,
        };
        serde_json::to_value(line).expect("names and numbers are JSON")
    }
}

impl Outcome {
    fn of(log: &Snapshot, holder: Option<u32>) -> Self {
        let own = log.header().seed_length();
        let started = log.latest_event::<TurnStart>().filter(|event| event.seq() >= own);
        let ended = log.latest_event::<TurnEnd>().filter(|event| event.seq() >= own);
        let open = started.filter(|started| ended.is_none_or(|ended| ended.seq() < started.seq()));
        match (open.and_then(|event| event.get::<TurnStart>()), ended.and_then(|event| event.get::<TurnEnd>())) {
            (Some(_), _) | (None, None) if holder.is_some() => Self::Running,
            (Some(start), _) => Self::LeftOpen(start.turn),
            (None, Some(end)) => Self::Ended(end.reason.clone()),
            (None, None) => Self::NoTurn,
        }
    }

    fn word(&self) -> Option<&'static str> {
        match self {
            Self::NoTurn => None,
            Self::Running => Some("running"),
            Self::LeftOpen(_) => Some("interrupted"),
            Self::Ended(reason) => Some(ending(reason).0),
        }
    }

    fn tell(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::NoTurn => write!(out, "no turn yet"),
            Self::Running => write!(out, "{NOTABLE}running{NOTABLE:#}"),
            Self::LeftOpen(turn) => write!(out, "{BAD}interrupted (turn {turn} is still open){BAD:#}"),
            Self::Ended(TurnReason::Completed) => write!(out, "{GOOD}completed{GOOD:#}"),
            Self::Ended(reason) => match ending(reason) {
                (word, Some(why)) => write!(out, "{BAD}{word}: {}{BAD:#}", brief(why, TARGET)),
                (word, None) => write!(out, "{BAD}{word}{BAD:#}"),
            },
        }
    }
}

/// How a turn ended: its kind on the wire, and why where that is known.
pub(super) fn ending(reason: &TurnReason) -> (&'static str, Option<&str>) {
    match reason {
        TurnReason::Completed => ("completed", None),
        TurnReason::MaxTokens => ("max-tokens", None),
        TurnReason::Aborted { cause } => ("aborted", cause.as_deref()),
        TurnReason::Blocked { message } => ("blocked", message.as_deref()),
        TurnReason::Error { message } => ("error", message.as_deref()),
        TurnReason::Interrupted => ("interrupted", None),
    }
}

/// Adds tokens. A log may claim any number of them.
pub(super) fn add(usage: &mut Usage, more: &Usage) {
    usage.input_tokens = usage.input_tokens.saturating_add(more.input_tokens);
    usage.output_tokens = usage.output_tokens.saturating_add(more.output_tokens);
    usage.cached_input_tokens = usage.cached_input_tokens.saturating_add(more.cached_input_tokens);
}

fn setting<K: Knob>(log: &Snapshot) -> Value {
    match decided::<K>(log) {
        Some((_, knob)) => json!({ K::KEY: name_of(&knob.value()), "source": knob.source() }),
        None => json!({ K::KEY: null, "source": "deployment default" }),
    }
}

/// The value and why, in a few words.
fn in_words<K: Knob>(log: &Snapshot) -> String {
    match decided::<K>(log) {
        Some((_, knob)) => format!("{} ({})", name_of(&knob.value()), knob.source()),
        None => "deployment default".to_owned(),
    }
}
