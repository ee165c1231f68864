//! The rows of `[[provider.acp]]`: agents that are programs of their own, a kind of child each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox::Network;

use crate::document::{Item, Keys};
use crate::rows::Row;
use crate::{Env, Place};

/// The longest name, in bytes: the tool is called `subagent_` and that.
const MAX_NAME: usize = 48;

/// An agent that speaks the Agent Client Protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// What the provider is called.
    pub name: Arc<str>,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What else it sees of the environment: each variable with a value, or with the name of one of the harness's.
    pub env: Vec<(String, Value)>,
    /// Where it runs, if not in its parent's directory. As it was written.
    pub cwd: Option<String>,
    /// The agent's own mode to select.
    pub session_mode: Option<Arc<str>>,
    /// The agent's own method to authenticate with.
    pub auth: Option<Arc<str>>,
    /// Whether its questions are answered with yes.
    pub allows: bool,
    /// Whether its parent's override confines it.
    pub confined: bool,
    /// Its own state, writable although it is confined. As it was written.
    pub writable: Vec<String>,
    /// What it may do on the network while it is confined.
    pub network: Option<Network>,
    /// Where it stands.
    pub place: Place,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// This text.
    Text(String),
    /// What the harness has under this name.
    Of(String),
}

impl Agent {
    /// The variables that it is given, those of the harness looked up; one that the harness does not have is not given.
    pub fn environment(&self, env: &Env) -> Vec<(OsString, OsString)> {
        let value = |value: &Value| match value {
            Value::Text(text) => Some(text.clone()),
            Value::Of(name) => env.get(name),
        };
        self.env.iter().filter_map(|(name, of)| Some((name.into(), value(of)?.into()))).collect()
    }

    /// A path of its row, `~/` standing for the person's home.
    pub fn path(written: &str, env: &Env) -> PathBuf {
        match (written.strip_prefix("~/"), env.os("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            (None, Some(home)) if written == "~" => home.into(),
            _ => written.into(),
        }
    }

    /// The tool that delegates to it, where no `[[subagent]]` does.
    pub(crate) fn row(&self) -> Row {
        let tool = format!("subagent_{}", self.name.replace('-', "_"));
        let config = tool_subagent::Config::new(tool, self.name.clone());
        Row { config, place: Some(self.place.clone()), persona: None, names: Vec::new() }
    }
}

pub(crate) fn read(rows: Vec<Keys<'_>>) -> Vec<Agent> {
    let mut read = Vec::<Agent>::new();
    for mut keys in rows {
        let agent = agent(&mut keys);
        if let Some(other) = agent.as_ref().and_then(|agent| read.iter().find(|other| other.name == agent.name)) {
            let (name, line) = (&other.name, other.place.line);
            keys.complain(format!("line {line} has a provider named `{name}` already: give each a name of its own"));
        }
        keys.finish();
        read.extend(agent);
    }
    read
}

fn agent(keys: &mut Keys<'_>) -> Option<Agent> {
    let name = keys.required("name").and_then(|item| item.parsed_by(provider_name));
    let command = keys.required("command").and_then(|item| command(&item));
    let env = keys.item("env").and_then(|item| item.table()).map(variables).unwrap_or_default();
    let text = |item: Item<'_>| item.string().map(|text| text.value.to_owned());
    let cwd = keys.item("cwd").and_then(text);
    let session_mode = keys.item("session_mode").and_then(text).map(Arc::from);
    let auth = keys.item("auth").and_then(text).map(Arc::from);
    let one_of = |item: Item<'_>, yes: &str, no: &str| {
        item.parsed_by(|said| match said {
            _ if said == yes => Ok(true),
            _ if said == no => Ok(false),
            _ => Err(format!("it is {yes} or {no}")),
        })
    };
    let allows = keys.item("permission").and_then(|item| one_of(item, "allow", "reject"));
    let confined = keys.item("confine").and_then(|item| one_of(item, "inherit", "none"));
    let writable = keys.item("writable").and_then(|item| item.strings()).unwrap_or_default();
    let network = keys.item("network").and_then(|item| item.parsed::<Network>());
    let (command, args) = command?;
    Some(Agent {
        name: name?.value,
        command,
        args,
        env,
        cwd,
        session_mode,
        auth,
        allows: allows.is_some_and(|allows| allows.value),
        confined: confined.is_none_or(|confined| confined.value),
        writable: writable.into_iter().map(|path| path.value.to_owned()).collect(),
        network: network.map(|network| network.value),
        place: keys.place(),
    })
}

/// A program and its arguments.
fn command(item: &Item<'_>) -> Option<(String, Vec<String>)> {
    let mut words = item.strings()?.into_iter().map(|word| word.value.to_owned());
    match words.next().filter(|program| !program.is_empty()) {
        Some(program) => Some((program, words.collect())),
        None => {
            item.complain("it names no program: write command = [\"program\", \"argument\"]");
            None
        }
    }
}

fn variables(keys: Keys<'_>) -> Vec<(String, Value)> {
    let variable = |(name, item): (&str, Item<'_>)| {
        let text = item.string()?.value;
        let value = match text.strip_prefix('$') {
            Some(of) => Value::Of(of.to_owned()),
            None => Value::Text(text.to_owned()),
        };
        Some((name.to_owned(), value))
    };
    keys.any().into_iter().filter_map(variable).collect()
}

fn provider_name(name: &str) -> Result<Arc<str>, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match name {
        "spawn" | "fork" => Err(format!("`{name}` is one of ours: choose another name")),
        _ if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(plain) => Ok(name.into()),
        _ => Err(format!("a provider's name is 1 to {MAX_NAME} ASCII letters, digits, `_` and `-`")),
    }
}
