use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr;

use super::ConfigError;
use super::file::LIMIT;

/// The environment, read once at the edge; and, behind it, a file of variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    process: HashMap<String, OsString>,
    file: HashMap<String, String>,
}

impl Env {
    /// The environment of this process.
    pub(crate) fn of_process() -> Self {
        let named = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
        Self { process: std::env::vars_os().filter_map(named).collect(), file: HashMap::new() }
    }

    /// An environment of one's own.
    #[cfg(test)]
    pub(crate) fn of(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), OsString::from(*value));
        Self { process: variables.iter().map(owned).collect(), file: HashMap::new() }
    }

    /// Reads a file of `NAME=value` lines, for what the environment does not have. Never looked for in a working
    /// directory: a repository could ship one, and send a key to a stranger.
    pub(crate) fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let unreadable = |message: String| ConfigError::Unreadable { file: path.to_owned(), message };
        let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
        let mut text = Vec::new();
        file.take(LIMIT + 1).read_to_end(&mut text).map_err(|error| unreadable(error.to_string()))?;
        if text.len() as u64 > LIMIT {
            return Err(unreadable(format!("more than {LIMIT} bytes")));
        }
        for line in dotenvy::from_read_iter(&*text) {
            let (name, value) = line.map_err(|error| unreadable(brief(&error)))?;
            if name.starts_with("TETHER_") {
                return Err(unreadable(format!("{name} is not for a file of keys: set it in the environment")));
            }
            self.file.insert(name, value);
        }
        Ok(())
    }

    /// A variable that is set, not empty and UTF-8.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let process = self.process.get(name).and_then(|value| value.to_str()).map(str::to_owned);
        process.filter(|value| !value.is_empty()).or_else(|| self.file.get(name).filter(|v| !v.is_empty()).cloned())
    }

    /// A variable that says where something is.
    pub(crate) fn path(&self, name: &str) -> Option<OsString> {
        self.process.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// A variable of our own.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, ConfigError> {
        let parse = |value: String| value.parse().map_err(|error: T::Err| error.to_string());
        let parsed = self.get(name).map(parse).transpose();
        parsed.map_err(|message| ConfigError::Variable { name, message })
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
