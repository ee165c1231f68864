use std::fmt::Write as _;

/// Which events of the logs are told whole. Of others, their types are.
pub(super) enum Shown<'a> {
    Everything,
    /// These types, and those that tell of policy.
    These(Vec<&'a str>),
}

/// What every scenario tells of.
const POLICY: [&str; 7] = [
    "approval/asked",
    "approval/decided",
    "approval/policy",
    "permission/preset",
    "sandbox/mode",
    "session/end-seed",
    "subagent/descriptor",
];

impl Shown<'_> {
    pub(super) fn has(&self, tag: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::These(tags) => POLICY.contains(&tag) || tags.contains(&tag),
        }
    }
}

/// The types of neighbouring events that are not told whole, as one line.
#[derive(Default)]
pub(super) struct Gap<'a> {
    /// The first and the last of them.
    seqs: Option<(u64, u64)>,
    /// Each type, and how often it comes in a row.
    tags: Vec<(&'a str, usize)>,
}

impl<'a> Gap<'a> {
    pub(super) fn add(&mut self, seq: u64, tag: &'a str) {
        let first = self.seqs.map_or(seq, |(first, _)| first);
        self.seqs = Some((first, seq));
        match self.tags.last_mut() {
            Some((last, times)) if *last == tag => *times += 1,
            _ => self.tags.push((tag, 1)),
        }
    }

    /// The line, unless there was none.
    pub(super) fn take(&mut self) -> Option<String> {
        let Self { seqs, tags } = std::mem::take(self);
        let mut line = match seqs? {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}…{last}"),
        };
        for (tag, times) in tags {
            write!(line, " {tag}").unwrap();
            if times > 1 {
                write!(line, "×{times}").unwrap();
            }
        }
        Some(line)
    }
}

#[test]
fn a_gap_is_a_line() {
    let mut gap = Gap::default();
    assert_eq!(gap.take(), None);
    [(3, "a"), (4, "b"), (5, "b")].into_iter().for_each(|(seq, tag)| gap.add(seq, tag));
    assert_eq!(gap.take().unwrap(), "3…5 a b×2");
    gap.add(7, "a");
    assert_eq!(gap.take().unwrap(), "7 a");
    assert_eq!(gap.take(), None);
}
