//! The history that a fork copied: how long it is, where it ends, and whether it is the parent's.

use session::{EndSeed, Lineage, Snapshot};

use crate::child::Parent;
use crate::{Code, Finding};

/// Where the copied history really ends.
struct Extent {
    /// How many events were copied.
    copied: u64,
    /// Where the log's own events begin.
    own: u64,
}

/// Checks it, and says where the log's own events begin; `None` if the log ends before that.
pub(crate) fn check(
    parent: Option<&Parent>,
    lineage: &Lineage,
    child: &Snapshot,
    findings: &mut Vec<Finding>,
) -> Option<u64> {
    let says = child.header().seed_length();
    if says > child.len() {
        let len = child.len();
        let why = format!("the header says that {says} events were copied, and the log has only {len}");
        findings.push(Finding::of_log(Code::SeedLengthWrong, why));
        return None;
    }
    let known = findings.len();
    let extent = extent(parent, child, says, findings);
    let is_told = findings[known..].iter().any(|finding| finding.code == Code::SeedLengthWrong);
    if let Some(parent) = parent {
        if says > 0 && !is_told {
            check_length(parent, lineage, says, findings);
        }
        compare(&parent.log, child, extent.copied, findings);
    }
    Some(extent.own)
}

/// The last mark tells where the history ends. Marks inside of it came with it.
fn extent(parent: Option<&Parent>, child: &Snapshot, says: u64, findings: &mut Vec<Finding>) -> Extent {
    let is_mark = |log: &Snapshot, seq| log.event(seq).is_some_and(|event| event.get::<EndSeed>().is_some());
    let mark = child.latest_event::<EndSeed>().map(session::Event::seq);
    let as_said = Extent { copied: says, own: says };
    if says > 0 && is_mark(child, says) {
        let again = child.events_from(says + 1).filter(|event| event.get::<EndSeed>().is_some());
        let again = again.map(|event| Finding::at(Code::EndSeedDuplicated, event.seq(), "the seed has ended before"));
        findings.extend(again);
        return Extent { own: says + 1, ..as_said };
    }
    // A mark that the parent has there too came with the history.
    let came = |mark| mark < says && parent.is_some_and(|parent| is_mark(&parent.log, mark));
    let is_copy = |mark| parent.is_none_or(|parent| mark > 0 && differs(&parent.log, child, mark).is_none());
    match mark.filter(|mark| !came(*mark)) {
        Some(mark) if says == 0 && !is_copy(mark) => {
            let marks = child.events().iter().filter(|event| event.get::<EndSeed>().is_some());
            let why = "the end of copied history, and nothing was copied";
            findings.extend(marks.map(|event| Finding::at(Code::EndSeedUnfounded, event.seq(), why)));
            as_said
        }
        Some(mark) => {
            let why = match says {
                0 => format!("the header says that nothing was copied, and a seed ends at seq {mark}"),
                _ => format!("the header says that {says} events were copied, and the seed ends at seq {mark}"),
            };
            findings.push(Finding::at(Code::SeedLengthWrong, mark, why));
            Extent { copied: mark, own: mark + 1 }
        }
        None if says > 0 => {
            let why = format!("{says} events were copied, and no session/end-seed stands behind them");
            findings.push(Finding::at(Code::EndSeedMissing, says, why));
            as_said
        }
        None => as_said,
    }
}

fn check_length(parent: &Parent, lineage: &Lineage, says: u64, findings: &mut Vec<Finding>) {
    let (id, end) = (lineage.parent(), lineage.parent_seq());
    let closed = parent.digest.closed_before(end);
    if says == closed {
        return;
    }
    let why = format!(
        "the header says that {says} events were copied, and {id} had closed its last turn at seq {closed} when it \
         delegated (at seq {end})"
    );
    findings.push(Finding::of_log(Code::SeedLengthWrong, why));
}

fn compare(parent: &Snapshot, child: &Snapshot, copied: u64, findings: &mut Vec<Finding>) {
    if let Some(seq) = differs(parent, child, copied) {
        let why = format!("the copied history is not what {} has from seq {seq} on", parent.header().id());
        findings.push(Finding::at(Code::SeedDiffers, seq, why));
    }
}

/// Where the first `length` events are not the same, line by line: a copy is the same byte for byte.
fn differs(parent: &Snapshot, child: &Snapshot, length: u64) -> Option<u64> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    let mut both = child.events().iter().zip(parent.events().iter()).take(length);
    let first = both.find(|(event, original)| {
        own.clear();
        theirs.clear();
        event.write(&mut own);
        original.write(&mut theirs);
        own != theirs
    });
    first.map(|(event, _)| event.seq())
}
