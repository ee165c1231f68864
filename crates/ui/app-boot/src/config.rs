use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use llm::Route;
use permission::{Preset, Presets};
use sandbox::{Mode, Network};
use serde_json::Value;
use subagent::Limits;
use tools::ToolFilter;
use user_approval::Policy;

use crate::entries::{approval, json};
use crate::file::{File, ToolNames};
use crate::{Agent, ConfigError, ConfigErrors, Env, Located, Origin, Place, Places, Row, Setting, variables};

/// How many paths a configuration can protect. The fence takes more, and needs them for what git is led to.
const MAX_PROTECTED: usize = 128;

/// The effective configuration, with where every value came from.
#[derive(Clone, Debug)]
pub struct Config {
    /// `model`: which model serves, if one is named.
    pub model: Setting<Option<Route>>,
    /// `sandbox.default`: the mode of sessions that nobody switched.
    pub sandbox: Setting<Mode>,
    /// `sandbox.initial_override`: whether a new top-level session records the mode it starts with.
    pub initial_override: Setting<bool>,
    /// `sandbox.tmp`: what confined commands have as their temporary directory.
    pub tmp: Setting<Tmp>,
    /// `sandbox.network`: what confined commands may do on the network.
    pub network: Setting<Network>,
    /// `sandbox.protected`: more paths that may not be written.
    pub protected: Vec<Setting<PathBuf>>,
    /// `approval.default`: the approval policy of sessions that nobody switched.
    pub approval: Setting<Policy>,
    /// `permission.presets`: the built-in ones, then the user's. Never empty, each with a name of its own.
    pub presets: Vec<Setting<Preset>>,
    /// `budget.max_depth`
    pub max_depth: Setting<u32>,
    /// `budget.max_children`
    pub max_children: Setting<Option<u64>>,
    /// `budget.max_children_total`
    pub max_children_total: Setting<Option<u64>>,
    /// `budget.tokens`
    pub tokens: Setting<Option<u64>>,
    /// `budget.seconds`
    pub seconds: Setting<Option<u64>>,
    /// `[[subagent]]`: the delegation tools.
    pub subagents: Vec<Row>,
    /// `[[provider.acp]]`: agents that are programs of their own.
    pub agents: Vec<Agent>,
    /// `[tools]`: which tools anybody may use.
    pub tools: ToolRules,
    /// `offline.script`: scripted replies for the model `offline/file`.
    pub script: Setting<Option<PathBuf>>,
    /// What a project said in vain.
    pub not_taken: Vec<NotTaken>,
}

/// Whose temporary directory a confined command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tmp {
    /// The session's own.
    Private,
    /// The machine's.
    Shared,
}

/// Which tools may be used, of those that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// Only these, if anybody said so.
    pub allow: Option<Setting<Vec<Arc<str>>>>,
    /// None of these.
    pub deny: Vec<Setting<Arc<str>>>,
    /// Every name that a file speaks of, but for what a project denies.
    pub(crate) names: Vec<Located<Arc<str>>>,
    /// What a project denies. A repository is for deployments with other tools too, so none of it need be there.
    pub(crate) denied_by_project: Vec<Located<Arc<str>>>,
}

/// A project's value that would have widened.
#[derive(Clone, Debug, PartialEq)]
pub struct NotTaken {
    /// The key.
    pub key: &'static str,
    /// What it says.
    pub value: Value,
    /// Where.
    pub place: Place,
}

/// What a command line says.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--model`
    pub model: Option<Route>,
    /// `--max-depth`
    pub max_depth: Option<u32>,
    /// `--max-children`
    pub max_children: Option<u64>,
    /// `--budget-tokens`
    pub tokens: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            model: Setting::default(None),
            sandbox: Setting::default(Mode::ReadOnly),
            initial_override: Setting::default(true),
            tmp: Setting::default(Tmp::Private),
            network: Setting::default(Network::Denied),
            protected: Vec::new(),
            approval: Setting::default(Policy::Ask),
            presets: Presets::default().iter().cloned().map(Setting::default).collect(),
            max_depth: Setting::default(limits.max_depth),
            max_children: Setting::default(limits.max_children),
            max_children_total: Setting::default(limits.max_children_total),
            tokens: Setting::default(limits.tokens),
            seconds: Setting::default(limits.time.map(|time| time.as_secs())),
            subagents: Row::defaults(),
            agents: Vec::new(),
            tools: ToolRules::default(),
            script: Setting::default(None),
            not_taken: Vec::new(),
        }
    }
}

impl Config {
    pub(crate) fn load(env: &Env, places: &Places, root: &Path, flags: Flags) -> Result<Self, ConfigErrors> {
        let (mut config, mut wrong) = (Self::default(), Vec::new());
        match File::of_user(places) {
            Ok(file) => config.apply(file),
            Err(errors) => wrong.extend(errors),
        }
        match File::of_project(root) {
            Ok(file) => config.narrow(file),
            Err(errors) => wrong.extend(errors),
        }
        wrong.extend(config.too_many_protected());
        variables::apply(&mut config, env, &mut wrong);
        config.apply_flags(flags);
        ConfigErrors::check(wrong)?;
        Ok(config)
    }

    /// What the budgets allow a tree of agents.
    pub fn limits(&self) -> Limits {
        Limits {
            max_depth: self.max_depth.value,
            max_children: self.max_children.value,
            max_children_total: self.max_children_total.value,
            tokens: self.tokens.value,
            time: self.seconds.value.map(Duration::from_secs),
        }
    }

    /// The table of presets.
    pub fn presets(&self) -> Presets {
        let presets = self.presets.iter().map(|preset| preset.value.clone()).collect();
        Presets::new(presets).expect("each was checked, and each has a name of its own")
    }

    fn apply(&mut self, file: File) {
        self.model.set_by_user(file.model);
        self.sandbox.set_by_user(file.sandbox);
        self.initial_override.set_by_user(file.initial_override);
        self.tmp.set_by_user(file.tmp);
        self.network.set_by_user(file.network);
        self.approval.set_by_user(file.approval);
        self.max_depth.set_by_user(file.max_depth);
        self.max_children.set_by_user(file.max_children);
        self.max_children_total.set_by_user(file.max_children_total);
        self.tokens.set_by_user(file.tokens);
        self.seconds.set_by_user(file.seconds);
        self.script.set_by_user(file.script);
        self.protect(file.protected, Origin::User);
        for Located { value, place } in file.presets {
            let preset = Setting::new(value, Origin::User(place));
            match self.presets.iter_mut().find(|built_in| built_in.value.name == preset.value.name) {
                Some(replaced) => *replaced = preset,
                None => self.presets.push(preset),
            }
        }
        self.subagents = file.subagents.unwrap_or(std::mem::take(&mut self.subagents));
        self.agents = file.agents;
        for agent in &self.agents {
            let row = agent.row();
            let serves = |other: &Row| other.config.provider == agent.name || other.config.tool == row.config.tool;
            if !self.subagents.iter().any(serves) {
                self.subagents.push(row);
            }
        }
        self.tools.set_by_user(file.tools);
    }

    /// Takes what narrows. What only a user may say has been refused.
    fn narrow(&mut self, file: File) {
        let not_taken = &mut self.not_taken;
        let mut narrow = |key, wider: Option<(Value, Place)>| {
            not_taken.extend(wider.map(|(value, place)| NotTaken { key, value, place }));
        };
        let less = |setting: &mut Setting<Option<u64>>, found: Option<Located<u64>>| {
            let lower = |new: &Option<u64>, old: &Option<u64>| new.unwrap_or(u64::MAX) < old.unwrap_or(u64::MAX);
            let wider = setting.narrow(found?.map(Some), lower)?;
            Some((Value::from(wider.value), wider.place))
        };
        let narrower = |new: &Mode, old: &Mode| new < old;
        let wider = file.sandbox.and_then(|found| self.sandbox.narrow(found, narrower));
        narrow("sandbox.default", wider.map(|wider| (json(wider.value), wider.place)));
        let narrower = |new: &Tmp, _: &Tmp| *new == Tmp::Private;
        let wider = file.tmp.and_then(|found| self.tmp.narrow(found, narrower));
        narrow("sandbox.tmp", wider.map(|wider| (wider.value.as_str().into(), wider.place)));
        let narrower = |new: &Network, _: &Network| *new == Network::Denied;
        let wider = file.network.and_then(|found| self.network.narrow(found, narrower));
        narrow("sandbox.network", wider.map(|wider| (wider.value.as_str().into(), wider.place)));
        let narrower = |new: &Policy, _: &Policy| *new == Policy::Never;
        let wider = file.approval.and_then(|found| self.approval.narrow(found, narrower));
        narrow("approval.default", wider.map(|wider| (approval(wider.value), wider.place)));
        let wider = file.max_depth.and_then(|found| self.max_depth.narrow(found, |new, old| new < old));
        narrow("budget.max_depth", wider.map(|wider| (wider.value.into(), wider.place)));
        narrow("budget.max_children", less(&mut self.max_children, file.max_children));
        narrow("budget.max_children_total", less(&mut self.max_children_total, file.max_children_total));
        narrow("budget.tokens", less(&mut self.tokens, file.tokens));
        narrow("budget.seconds", less(&mut self.seconds, file.seconds));
        self.protect(file.protected, Origin::Project);
        let wider = self.tools.narrow(file.tools);
        self.not_taken.extend(wider.map(|(value, place)| NotTaken { key: "tools.allow", value, place }));
    }

    /// Before there is a session: its fence could not be opened.
    fn too_many_protected(&self) -> Option<ConfigError> {
        let (Origin::User(place) | Origin::Project(place)) = &self.protected.get(MAX_PROTECTED)?.from else {
            return None;
        };
        let count = self.protected.len();
        let message = format!(
            "`sandbox.protected`: {count} paths with those of every file, and at most {MAX_PROTECTED} can be protected: name \
             the directories above them instead"
        );
        Some(ConfigError::at(place.clone(), message))
    }

    fn protect(&mut self, paths: Vec<Located<PathBuf>>, origin: fn(Place) -> Origin) {
        self.protected.extend(paths.into_iter().map(|path| Setting::new(path.value, origin(path.place))));
    }

    fn apply_flags(&mut self, flags: Flags) {
        let Flags { model, max_depth, max_children, tokens } = flags;
        if model.is_some() {
            self.model.set(model, Origin::Flag("--model"));
        }
        if let Some(depth) = max_depth {
            self.max_depth.set(depth, Origin::Flag("--max-depth"));
        }
        if max_children.is_some() {
            self.max_children.set(max_children, Origin::Flag("--max-children"));
        }
        if tokens.is_some() {
            self.tokens.set(tokens, Origin::Flag("--budget-tokens"));
        }
    }
}

impl Tmp {
    /// Its name in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
        }
    }
}

impl FromStr for Tmp {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Private, Self::Shared]
            .into_iter()
            .find(|tmp| tmp.as_str() == name)
            .ok_or("not a temporary directory: it is private or shared")
    }
}

impl ToolRules {
    /// What everybody's filter admits; `None` if it takes nothing away.
    pub fn filter(&self) -> Option<ToolFilter> {
        let allow = self.allow.as_ref().map(|allow| allow.value.iter().cloned().collect());
        let filter = ToolFilter { allow, deny: self.deny.iter().map(|name| name.value.clone()).collect() };
        (!filter.admits_all()).then_some(filter)
    }

    fn set_by_user(&mut self, ToolNames { allow, deny }: ToolNames) {
        self.names.extend(allow.iter().flat_map(|allow| &allow.value).chain(&deny).cloned());
        self.allow = allow.map(|allow| Setting::new(distinct(allow.value), Origin::User(allow.place)));
        self.deny(deny, Origin::User);
    }

    /// Takes what is allowed already, and everything that is denied. Gives what would have widened.
    fn narrow(&mut self, ToolNames { allow, deny }: ToolNames) -> Option<(Value, Place)> {
        self.names.extend(allow.iter().flat_map(|allow| &allow.value).cloned());
        self.denied_by_project.extend(deny.iter().cloned());
        self.deny(deny, Origin::Project);
        let Located { value, place } = allow?;
        let names = distinct(value);
        let Some(allow) = &mut self.allow else {
            self.allow = Some(Setting::new(names, Origin::Project(place)));
            return None;
        };
        let admitted: BTreeSet<_> = allow.value.iter().cloned().collect();
        let (taken, wider): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| admitted.contains(name));
        if taken.len() < admitted.len() {
            let before = std::mem::replace(allow, Setting::new(taken, Origin::Project(place.clone())));
            allow.narrowed_from = Some((before.value, before.from));
        }
        (!wider.is_empty()).then(|| (wider.iter().map(|name| &**name).collect(), place))
    }

    fn deny(&mut self, names: Vec<Located<Arc<str>>>, origin: fn(Place) -> Origin) {
        let mut denied: BTreeSet<_> = self.deny.iter().map(|name| name.value.clone()).collect();
        for Located { value, place } in names {
            if denied.insert(value.clone()) {
                self.deny.push(Setting::new(value, origin(place)));
            }
        }
    }
}

fn distinct(names: Vec<Located<Arc<str>>>) -> Vec<Arc<str>> {
    let mut seen = BTreeSet::new();
    names.into_iter().map(|name| name.value).filter(|name| seen.insert(name.clone())).collect()
}
