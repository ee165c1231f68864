//! Where a value came from.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<Path>,
    /// Its line, from 1.
    pub line: usize,
}

/// What a file says, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// What.
    pub value: T,
    /// Where.
    pub place: Place,
}

/// Which layer a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The user's file.
    User(Place),
    /// The project's file.
    Project(Place),
    /// A variable of the environment.
    Variable(&'static str),
    /// A flag.
    Flag(&'static str),
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// What counts.
    pub value: T,
    /// Who said so.
    pub from: Origin,
    /// What counted before a project narrowed it.
    pub narrowed_from: Option<(T, Origin)>,
}

impl<T> Setting<T> {
    /// What counts where nobody says anything.
    pub fn default(value: T) -> Self {
        Self::new(value, Origin::Default)
    }

    pub(crate) fn new(value: T, from: Origin) -> Self {
        Self { value, from, narrowed_from: None }
    }

    /// A layer that may say anything.
    pub(crate) fn set(&mut self, value: T, from: Origin) {
        *self = Self::new(value, from);
    }

    /// What the user's file says, if it does.
    pub(crate) fn set_by_user<F: Into<T>>(&mut self, found: Option<Located<F>>) {
        if let Some(Located { value, place }) = found {
            self.set(value.into(), Origin::User(place));
        }
    }

    /// What a project says: taken if it is `narrower` than what counts, and handed back if it is wider.
    pub(crate) fn narrow(&mut self, found: Located<T>, narrower: impl Fn(&T, &T) -> bool) -> Option<Located<T>>
    where
        T: PartialEq,
    {
        if found.value == self.value {
            return None;
        }
        if !narrower(&found.value, &self.value) {
            return Some(found);
        }
        let Located { value, place } = found;
        let before = std::mem::replace(self, Self::new(value, Origin::Project(place)));
        self.narrowed_from = Some((before.value, before.from));
        None
    }
}

impl<T> Located<T> {
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Located<U> {
        Located { value: map(self.value), place: self.place }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(place) => write!(f, "{place}"),
            Self::Project(place) => write!(f, "project {place}"),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}
