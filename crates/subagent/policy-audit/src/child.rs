//! One log against its parent's.

use session::{Header, Lineage, Snapshot};

use crate::digest::Digest;
use crate::finding::shown;
use crate::named::Mention;
use crate::own::{Handed, Own};
use crate::{Code, Finding, seed};

/// The only kind of descent that leaves a log here.
const ORIGIN: &str = "subagent";

/// A parent, looked through once for all of its children.
pub(crate) struct Parent {
    pub(crate) log: Snapshot,
    pub(crate) digest: Digest,
}

impl Parent {
    pub(crate) fn of(log: Snapshot) -> Self {
        Self { digest: Digest::of(&log), log }
    }
}

/// Everything in a child's log that is not as a delegation would have left it, in the order of its events; what is about
/// the header first. Works on the snapshot of a live session as on a log that was read.
///
/// `parent` is the log of the session that its header names, at any instant after the capture; `None` if that is not
/// known, which is a finding too. A session without a parent is checked as such.
/// Where the log of the parent says which call started the child, it must have been captured in that call.
///
/// A switch is widening if it allows more than the mode in force just before it. What an unswitched session follows is in
/// no log, so its switch to anything but the narrowest mode counts as well.
pub fn check_child(parent: Option<&Snapshot>, child: &Snapshot) -> Vec<Finding> {
    let Some(lineage) = child.header().lineage() else { return check_top_level(child) };
    match parent.filter(|parent| parent.header().id() == lineage.parent()) {
        Some(parent) => check_with(Ok(&Parent::of(parent.clone())), lineage, child),
        None => check_with(Err(missing(lineage)), lineage, child),
    }
}

/// The same for a session without a parent: it holds nothing that only a delegation writes.
pub fn check_top_level(log: &Snapshot) -> Vec<Finding> {
    let mut findings = Vec::new();
    crate::top::check(log, &mut findings);
    findings
}

/// The same, with a parent that many children share, or with what is to be said of one that cannot be looked at.
pub(crate) fn check_with(parent: Result<&Parent, Finding>, lineage: &Lineage, child: &Snapshot) -> Vec<Finding> {
    let mut findings = Vec::new();
    if lineage.origin() != ORIGIN {
        let origin = shown(lineage.origin());
        findings.push(Finding::of_log(Code::OriginUnknown, format!("the origin is {origin}, not `{ORIGIN}`")));
    }
    let parent = match parent {
        Ok(parent) => Some(parent),
        Err(finding) => {
            findings.push(finding);
            None
        }
    };
    if let Some(parent) = parent {
        check_header(&parent.digest, lineage, child.header(), &mut findings);
    }
    let own = seed::check(parent, lineage, child, &mut findings);
    match own.filter(|own| *own < child.len()) {
        Some(own) => {
            let handed = parent.map(|parent| Handed::at(&parent.digest, lineage.parent_seq()));
            Own::new(child, own, handed, &mut findings).check();
        }
        None => {
            let why = "the log of a child without an event of its own: it was never announced";
            findings.push(Finding::of_log(Code::NoOwnEvents, why));
        }
    }
    findings.sort_by_key(|finding| finding.seq);
    findings
}

pub(crate) fn missing(lineage: &Lineage) -> Finding {
    Finding::of_log(Code::ParentMissing, format!("there is no log of its parent {}", lineage.parent()))
}

fn check_header(parent: &Digest, lineage: &Lineage, child: &Header, findings: &mut Vec<Finding>) {
    let mut found = |code, message: String| findings.push(Finding::of_log(code, message));
    let depth = u64::from(parent.header.depth()) + 1;
    if u64::from(lineage.depth()) != depth {
        let (says, of) = (lineage.depth(), parent.header.depth());
        found(Code::DepthWrong, format!("the depth is {says}, and its parent's is {of}: it should be {depth}"));
    }
    if child.cwd() != parent.header.cwd() {
        let (own, its) = (shown(child.cwd()), shown(parent.header.cwd()));
        found(Code::CwdDiffers, format!("the working directory is {own}, and its parent's is {its}"));
    }
    if lineage.parent_seq() > parent.len {
        let (says, len) = (lineage.parent_seq(), parent.len);
        return found(
            Code::ParentSeqBeyond,
            format!("it was delegated at seq {says} of a log that has only {len} events"),
        );
    }
    let Some(Mention { seq, call }) = parent.named.mention(child.id()) else { return };
    let (at, id) = (lineage.parent_seq(), parent.header.id());
    if at > seq || call.is_some_and(|call| at <= call) {
        let started = match call {
            Some(call) => format!("{id} started it in a call (seq {call}) that was answered at seq {seq}"),
            None => format!("{id} names it at seq {seq} already"),
        };
        found(Code::CaptureElsewhere, format!("the header says that it was delegated at seq {at}, and {started}"));
    }
}
