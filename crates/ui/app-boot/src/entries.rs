//! The configuration as a list, for people.

use sandbox::Mode;
use serde_json::{Value, json};
use user_approval::Policy;

use crate::{Agent, Config, Origin, Row, Setting};

/// A value of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key, as a file would have it.
    pub key: String,
    /// What counts; null where nothing does.
    pub value: Value,
    /// Who said so.
    pub from: Origin,
    /// What counted before a project narrowed it.
    pub narrowed_from: Option<(Value, Origin)>,
}

impl Entry {
    /// An entry of one's own.
    pub fn new(key: impl Into<String>, value: impl Into<Value>, from: Origin) -> Self {
        Self { key: key.into(), value: value.into(), from, narrowed_from: None }
    }

    fn of<T>(key: impl Into<String>, setting: &Setting<T>, show: impl Fn(&T) -> Value) -> Self {
        let narrowed_from = setting.narrowed_from.as_ref().map(|(value, from)| (show(value), from.clone()));
        Self { key: key.into(), value: show(&setting.value), from: setting.from.clone(), narrowed_from }
    }
}

impl Config {
    /// Every value, in the order of the documentation.
    pub fn entries(&self) -> Vec<Entry> {
        let model = |model: &Option<llm::Route>| model.as_ref().map(ToString::to_string).into();
        let number = |number: &Option<u64>| (*number).into();
        let mut entries = vec![
            Entry::of("model", &self.model, model),
            Entry::of("sandbox.default", &self.sandbox, |mode| self::json(*mode)),
            Entry::of("sandbox.initial_override", &self.initial_override, |record| (*record).into()),
        ];
        entries.push(Entry::of("sandbox.tmp", &self.tmp, |tmp| tmp.as_str().into()));
        entries.push(Entry::of("sandbox.network", &self.network, |network| network.as_str().into()));
        let path = |path: &std::path::PathBuf| path.to_string_lossy().into();
        entries.extend(self.protected.iter().map(|protected| Entry::of("sandbox.protected", protected, path)));
        entries.push(Entry::of("approval.default", &self.approval, |policy| approval(*policy)));
        entries.extend(self.presets.iter().map(|preset| {
            let key = format!("permission.presets.{}", preset.value.name);
            Entry::of(key, preset, |p| json!({"sandbox": p.sandbox.as_str(), "approval": approval(p.approval)}))
        }));
        entries.push(Entry::of("budget.max_depth", &self.max_depth, |depth| (*depth).into()));
        entries.push(Entry::of("budget.max_children", &self.max_children, number));
        entries.push(Entry::of("budget.max_children_total", &self.max_children_total, number));
        entries.push(Entry::of("budget.tokens", &self.tokens, number));
        entries.push(Entry::of("budget.seconds", &self.seconds, number));
        entries.extend(self.subagents.iter().map(|row| {
            let from = row.place.clone().map_or(Origin::Default, Origin::User);
            Entry::new(format!("subagent.{}", row.config.tool), shown(row), from)
        }));
        entries.extend(self.agents.iter().map(|agent| {
            let key = format!("provider.acp.{}", agent.name);
            Entry::new(key, told(agent), Origin::User(agent.place.clone()))
        }));
        if let Some(allow) = &self.tools.allow {
            entries.push(Entry::of("tools.allow", allow, |names| names.iter().map(|name| &**name).collect()));
        }
        entries.extend(self.tools.deny.iter().map(|name| Entry::of("tools.deny", name, |name| (**name).into())));
        entries.push(Entry::of("offline.script", &self.script, |file| file.as_ref().map(path).into()));
        entries
    }
}

/// A row as its file could have it.
fn shown(row: &Row) -> Value {
    let config = &row.config;
    let optional = [
        ("provider", Some((&*config.provider).into())),
        ("model", config.model.as_ref().map(|model| model.to_string().into())),
        ("persona", row.persona.as_deref().map(Value::from)),
        ("tools", config.tools.as_ref().map(|tools| serde_json::to_value(tools).expect("names serialize"))),
        ("max_depth", config.max_depth.map(Value::from)),
        ("output_schema", config.output_schema.as_ref().map(|schema| (**schema.as_value()).clone())),
    ];
    optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// An agent as its file could have it, but for the values of variables: those are keys, often.
fn told(agent: &Agent) -> Value {
    let command: Vec<_> = std::iter::once(&agent.command).chain(&agent.args).collect();
    let optional = [
        ("command", Some(json!(command))),
        ("env", (!agent.env.is_empty()).then(|| agent.env.iter().map(|(name, _)| Value::from(&**name)).collect())),
        ("cwd", agent.cwd.as_deref().map(Value::from)),
        ("session_mode", agent.session_mode.as_deref().map(Value::from)),
        ("auth", agent.auth.as_deref().map(Value::from)),
        ("permission", Some(if agent.allows { "allow" } else { "reject" }.into())),
        ("confine", Some(if agent.confined { "inherit" } else { "none" }.into())),
        ("writable", (!agent.writable.is_empty()).then(|| json!(agent.writable))),
        ("network", agent.network.map(|network| network.as_str().into())),
    ];
    optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

pub(crate) fn json(mode: Mode) -> Value {
    mode.as_str().into()
}

pub(crate) fn approval(policy: Policy) -> Value {
    match policy {
        Policy::Ask => "ask",
        Policy::Never => "never",
    }
    .into()
}
