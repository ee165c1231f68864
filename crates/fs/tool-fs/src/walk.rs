//! Everything below a directory, in the order of its paths and within limits.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use fs::{Directory, FsError, Kind, MAX_FILE_BYTES};

use crate::ignored::{FILE, Rules};
use crate::search::{Start, Stop, TIME, Why};

/// The most entries that one search looks at.
const MAX_ENTRIES: usize = 100_000;

/// The most bytes that one search reads.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// How far down a search goes.
const MAX_DEPTH: usize = 64;

/// What a search sees, one file or link at a time.
pub(crate) struct Seen<'a> {
    pub(crate) directory: &'a dyn Directory,
    pub(crate) name: &'a OsStr,
    /// Absolute.
    pub(crate) path: &'a Path,
    pub(crate) kind: Kind,
}

/// What a search did not look at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) ignored: usize,
    pub(crate) binary: usize,
    pub(crate) large: usize,
    pub(crate) long_lines: usize,
    pub(crate) unreadable: usize,
    pub(crate) deep: usize,
    pub(crate) rules: usize,
    pub(crate) cut: Option<Cut>,
}

/// Why a search ended before it had seen everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Entries,
    Bytes,
    Time,
}

/// How far a walk goes.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) entries: usize,
    pub(crate) depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: MAX_ENTRIES, depth: MAX_DEPTH }
    }
}

struct Walk<'a, V> {
    rules: Rules,
    stop: &'a Stop,
    limits: Limits,
    entries: usize,
    skipped: Skipped,
    visit: V,
}

/// Visits what is below `start`. Links are seen and not followed; pipes, sockets and devices are not even seen.
///
/// # Errors
///
/// What keeps `start` itself from being looked at.
pub(crate) fn walk<V>(start: Start, stop: &Stop, limits: Limits, visit: V) -> Result<Skipped, FsError>
where
    V: FnMut(Seen<'_>, &mut Skipped),
{
    let Start { directory, path, rules } = start;
    let mut walk = Walk { rules, stop, limits, entries: 0, skipped: Skipped::default(), visit };
    walk.directory(&*directory, &path, 0)?;
    walk.skipped.rules = walk.rules.left_out;
    Ok(walk.skipped)
}

impl<V: FnMut(Seen<'_>, &mut Skipped)> Walk<'_, V> {
    fn directory(&mut self, directory: &dyn Directory, path: &Path, depth: usize) -> Result<(), FsError> {
        let found = directory.entries(self.limits.entries - self.entries)?;
        self.entries += found.names.len();
        let has_rules = found.names.contains(&(FILE.into(), Kind::File));
        let before = if has_rules { self.rules.enter(directory, path) } else { self.rules.before() };
        for (name, kind) in &found.names {
            if self.ends() {
                break;
            }
            let here = path.join(name);
            if self.rules.leave_out(&here, *kind == Kind::Directory) {
                self.skipped.ignored += 1;
                continue;
            }
            match kind {
                Kind::Directory if depth == self.limits.depth => self.skipped.deep += 1,
                Kind::Directory => {
                    let below = directory.directory(name).and_then(|below| self.directory(&*below, &here, depth + 1));
                    below.unwrap_or_else(|error| self.skipped.passed(&error));
                }
                Kind::File | Kind::Symlink => {
                    (self.visit)(Seen { directory, name, path: &here, kind: *kind }, &mut self.skipped);
                }
                Kind::Pipe | Kind::Socket | Kind::Device => {}
            }
        }
        self.rules.leave(before);
        if found.truncated {
            self.skipped.cut.get_or_insert(Cut::Entries);
        }
        Ok(())
    }

    fn ends(&mut self) -> bool {
        match self.stop.why() {
            Some(Why::Time) => self.skipped.cut = Some(Cut::Time),
            Some(Why::Left) => return true,
            None => {}
        }
        self.skipped.cut.is_some()
    }
}

impl Skipped {
    /// Notes what could not be looked at. What is gone meanwhile was never there, and of what is Tether's own nothing is
    /// said.
    pub(crate) fn passed(&mut self, error: &FsError) {
        match error {
            FsError::NotFound(_) | FsError::Denied(..) | FsError::Closing => {}
            FsError::TooLarge { .. } => self.large += 1,
            FsError::IsADirectory(_)
            | FsError::NotADirectory(_)
            | FsError::NotAFile { .. }
            | FsError::NotUtf8(_)
            | FsError::Full(_)
            | FsError::Changed(_)
            | FsError::InvalidPath { .. }
            | FsError::Refused(_)
            | FsError::Io { .. } => self.unreadable += 1,
        }
    }

    /// One line for each thing to know; nothing where everything was looked at.
    pub(crate) fn told(&self) -> String {
        let mut text = String::new();
        let cut = self.cut.map(|cut| match cut {
            Cut::Entries => format!("{MAX_ENTRIES} entries"),
            Cut::Bytes => format!("{} MiB", MAX_BYTES >> 20),
            Cut::Time => format!("{} seconds", TIME.as_secs()),
        });
        if let Some(cut) = cut {
            let _infallible = writeln!(text, "[stopped after {cut}, there is more: narrow it with `path`]");
        }
        let counts = [
            (self.binary, "binary".to_owned()),
            (self.large, format!("larger than {} MiB", MAX_FILE_BYTES >> 20)),
            (self.long_lines, "from an overlong line on".to_owned()),
            (self.unreadable, "unreadable".to_owned()),
            (self.deep, format!("deeper than {MAX_DEPTH} directories")),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>();
        if !counts.is_empty() {
            let _infallible = writeln!(text, "[not searched: {}]", counts.join(", "));
        }
        if self.rules > 0 {
            let _infallible = writeln!(text, "[{} .gitignore not heeded: too large or unreadable]", self.rules);
        }
        text
    }
}

#[cfg(test)]
mod tests;
