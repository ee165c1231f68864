use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use crate::{ConfigError, text};

/// The environment, read once at the edge; and, behind it, a file of variables.
#[derive(Clone, Debug, Default)]
pub struct Env {
    process: BTreeMap<String, OsString>,
    file: Option<(Arc<Path>, BTreeMap<String, String>)>,
}

/// Who set a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The environment of the process.
    Process,
    /// A file of variables.
    File(Arc<Path>),
}

impl Env {
    /// The environment of this process.
    pub fn of_process() -> Self {
        let named = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
        Self { process: std::env::vars_os().filter_map(named).collect(), file: None }
    }

    /// An environment of one's own.
    pub fn of<N: AsRef<str>, V: AsRef<OsStr>>(variables: &[(N, V)]) -> Self {
        let owned = |(name, value): &(N, V)| (name.as_ref().to_owned(), value.as_ref().to_owned());
        Self { process: variables.iter().map(owned).collect(), file: None }
    }

    /// Takes a file that was named on purpose. See [`Env::add`].
    pub(crate) fn add_named(&mut self, path: &Path) -> Result<(), ConfigError> {
        self.add(path, &text::read_named(path)?)
    }

    /// Takes the file of the configuration directory, if it is there.
    pub(crate) fn add_users(&mut self, path: &Path) -> Result<(), ConfigError> {
        text::read_users(path)?.map_or(Ok(()), |text| self.add(path, text.as_bytes()))
    }

    /// Takes `NAME=value` lines, for what the environment does not have. Never looked for in a working directory: a
    /// repository could ship one, and send a key to a stranger.
    fn add(&mut self, path: &Path, text: &[u8]) -> Result<(), ConfigError> {
        let unreadable = |message: String| ConfigError::Unreadable { file: path.to_owned(), message };
        let mut variables = BTreeMap::new();
        for line in dotenvy::from_read_iter(text) {
            let (name, value) = line.map_err(|error| unreadable(brief(&error)))?;
            if name.starts_with("TETHER_") {
                return Err(unreadable(format!("{name} is not for a file of keys: set it in the environment")));
            }
            variables.insert(name, value);
        }
        self.file = Some((path.into(), variables));
        Ok(())
    }

    /// A variable that is set, not empty and UTF-8.
    pub fn get(&self, name: &str) -> Option<String> {
        self.find(name).map(|(value, _)| value.to_owned())
    }

    /// Who set what [`Env::get`] gives.
    pub fn source(&self, name: &str) -> Option<Source> {
        self.find(name).map(|(_, source)| source)
    }

    fn find(&self, name: &str) -> Option<(&str, Source)> {
        let process = self.process.get(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty());
        process.map(|value| (value, Source::Process)).or_else(|| {
            let (path, variables) = self.file.as_ref()?;
            let value = variables.get(name).filter(|value| !value.is_empty())?;
            Some((value, Source::File(path.clone())))
        })
    }

    /// A variable of the process itself that is set and not empty, whatever is in it: one that says where something is.
    pub fn os(&self, name: &str) -> Option<&OsStr> {
        self.process.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The names of our own that the process has, in order.
    pub(crate) fn own(&self) -> impl Iterator<Item = &str> {
        let set = self.process.iter().filter(|(_, value)| !value.is_empty());
        set.map(|(name, _)| name.as_str()).filter(|name| name.starts_with("TETHER_"))
    }
}

/// What is wrong with a file of variables, without the line itself: it may hold a key.
fn brief(error: &dotenvy::Error) -> String {
    match error {
        dotenvy::Error::Io(error) => error.to_string(),
        dotenvy::Error::LineParse(_, at) => format!("a line is not NAME=value (at its character {at})"),
        _ => "not a file of NAME=value lines".to_owned(),
    }
}
