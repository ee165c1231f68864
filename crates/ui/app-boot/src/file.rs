//! The keys of a configuration file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm::Route;
use permission::{Preset, Presets};
use sandbox::{Mode, Network};
use user_approval::Policy;

use crate::agents::{self, Agent};
use crate::document::{Document, Item, Keys, shown};
use crate::rows::{self, Row};
use crate::{ConfigError, Located, Places, Tmp, text};

/// What a configuration file says.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) model: Option<Located<Route>>,
    pub(crate) sandbox: Option<Located<Mode>>,
    pub(crate) initial_override: Option<Located<bool>>,
    pub(crate) tmp: Option<Located<Tmp>>,
    pub(crate) network: Option<Located<Network>>,
    pub(crate) protected: Vec<Located<PathBuf>>,
    pub(crate) approval: Option<Located<Policy>>,
    pub(crate) presets: Vec<Located<Preset>>,
    pub(crate) max_depth: Option<Located<u32>>,
    pub(crate) max_children: Option<Located<u64>>,
    pub(crate) max_children_total: Option<Located<u64>>,
    pub(crate) tokens: Option<Located<u64>>,
    pub(crate) seconds: Option<Located<u64>>,
    pub(crate) subagents: Option<Vec<Row>>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) tools: ToolNames,
    pub(crate) script: Option<Located<PathBuf>>,
}

/// What a filter says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolNames {
    /// Where it says `allow`, and what.
    pub(crate) allow: Option<Located<Vec<Located<Arc<str>>>>>,
    pub(crate) deny: Vec<Located<Arc<str>>>,
}

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    User,
    Project,
}

/// The longest path that the system takes, in bytes.
const MAX_PATH: usize = 4095;

/// The longest name in a path, in bytes.
const MAX_NAME: usize = 255;

const USERS_ALONE: &str = "is for the user's own configuration: a project can narrow, never widen";

impl File {
    /// The user's, if there is one.
    pub(crate) fn of_user(places: &Places) -> Result<Self, Vec<ConfigError>> {
        let path = places.users_file();
        Self::parse(&path, text::read_users(&path), Whose::User)
    }

    /// The project's, if there is one.
    pub(crate) fn of_project(root: &Path) -> Result<Self, Vec<ConfigError>> {
        let (dir, name) = (".tether", "config.toml");
        Self::parse(&root.join(dir).join(name), text::read_projects(root, dir, name), Whose::Project)
    }

    fn parse(path: &Path, text: Result<Option<String>, ConfigError>, whose: Whose) -> Result<Self, Vec<ConfigError>> {
        match text.map_err(|error| vec![error])? {
            Some(text) => Document::read(path, &text, |keys| read(keys, whose)),
            None => Ok(Self::default()),
        }
    }
}

fn read(mut keys: Keys<'_>, whose: Whose) -> File {
    let mut file = File::default();
    if whose == Whose::Project {
        for key in ["model", "permission", "subagent", "provider", "offline"] {
            keys.refuse(key, USERS_ALONE);
        }
    } else {
        file.model = keys.item("model").and_then(|item| item.parsed());
        if let Some(mut permission) = section(&mut keys, "permission") {
            let presets = permission.item("presets").and_then(|item| item.table());
            file.presets = presets.map(|presets| presets.any()).into_iter().flatten().filter_map(preset).collect();
            permission.finish();
        }
        let rows = keys.item("subagent").and_then(|item| item.rows());
        file.subagents = rows.map(rows::read);
        if let Some(mut provider) = section(&mut keys, "provider") {
            let rows = provider.item("acp").and_then(|item| item.rows());
            file.agents = rows.map(agents::read).unwrap_or_default();
            provider.finish();
        }
        if let Some(mut offline) = section(&mut keys, "offline") {
            file.script = offline.item("script").and_then(|item| item.string()).map(|text| text.map(PathBuf::from));
            offline.finish();
        }
    }
    if let Some(sandbox) = section(&mut keys, "sandbox") {
        read_sandbox(sandbox, whose, &mut file);
    }
    if let Some(mut approval) = section(&mut keys, "approval") {
        file.approval = approval.item("default").and_then(|item| item.parsed_by(parse_approval));
        approval.finish();
    }
    if let Some(mut budget) = section(&mut keys, "budget") {
        file.max_depth = budget.item("max_depth").and_then(|item| item.whole(0));
        file.max_children = budget.item("max_children").and_then(|item| item.whole(0));
        file.max_children_total = budget.item("max_children_total").and_then(|item| item.whole(0));
        file.tokens = budget.item("tokens").and_then(|item| item.whole(1));
        file.seconds = budget.item("seconds").and_then(|item| item.whole(1));
        budget.finish();
    }
    if let Some(tools) = section(&mut keys, "tools") {
        file.tools = tool_names(tools);
    }
    keys.later(&["plugins"]).finish();
    file
}

fn section<'d>(keys: &mut Keys<'d>, key: &'static str) -> Option<Keys<'d>> {
    keys.item(key)?.table()
}

fn read_sandbox(mut sandbox: Keys<'_>, whose: Whose, file: &mut File) {
    file.sandbox = sandbox.item("default").and_then(|item| item.parsed());
    match whose {
        Whose::User => file.initial_override = sandbox.item("initial_override").and_then(|item| item.boolean()),
        Whose::Project => sandbox.refuse("initial_override", USERS_ALONE),
    }
    file.tmp = sandbox.item("tmp").and_then(|item| item.parsed());
    file.network = sandbox.item("network").and_then(|item| item.parsed());
    if let Some(item) = sandbox.item("protected") {
        file.protected = item.each_parsed_by(protectable).unwrap_or_default();
    }
    sandbox.finish();
}

/// A path that something can have: another would protect nothing, or make every write fail.
fn protectable(path: &str) -> Result<PathBuf, String> {
    if path.trim().is_empty() {
        return Err("an empty path protects nothing: name a file or a directory".to_owned());
    }
    if path.contains('\0') {
        return Err(format!("`{}` holds a NUL, which no path can", shown(path)));
    }
    if path.len() > MAX_PATH {
        return Err(format!("a path of {} bytes: it has at most {MAX_PATH}", path.len()));
    }
    match path.split('/').find(|name| name.len() > MAX_NAME) {
        Some(name) => Err(format!("`{}` has {} bytes: a name has at most {MAX_NAME}", shown(name), name.len())),
        None => Ok(path.into()),
    }
}

fn preset((name, item): (&str, Item<'_>)) -> Option<Located<Preset>> {
    let mut keys = item.table()?;
    let sandbox = keys.required("sandbox").and_then(|item| item.parsed::<Mode>());
    let approval = keys.required("approval").and_then(|item| item.parsed_by(parse_approval));
    keys.finish();
    let preset = Preset::new(name, sandbox?.value, approval?.value);
    // Alone, so that the line of what is wrong is known.
    match Presets::new(vec![preset.clone()]) {
        Ok(_) => Some(Located { value: preset, place: item.place() }),
        Err(error) => {
            item.complain(error);
            None
        }
    }
}

/// `allow` and `deny`.
pub(crate) fn tool_names(mut keys: Keys<'_>) -> ToolNames {
    let names = |item: &Item<'_>| {
        let names = item.strings().unwrap_or_default();
        names.into_iter().map(|name| name.map(Arc::from)).collect::<Vec<_>>()
    };
    let allow = keys.item("allow").map(|item| Located { value: names(&item), place: item.place() });
    let deny = keys.item("deny").map(|item| names(&item)).unwrap_or_default();
    keys.finish();
    ToolNames { allow, deny }
}

/// An approval policy by its name, for flags, variables and files.
pub fn parse_approval(name: &str) -> Result<Policy, &'static str> {
    match name {
        "ask" => Ok(Policy::Ask),
        "never" => Ok(Policy::Never),
        _ => Err("not an approval policy: it is ask or never"),
    }
}
