//! Whether what a configuration names is there, once everything is applied.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use context::{BootError, NameTaken, Realm, RegisterError};
use subagent::{Capability, RESULT_TOOL, Subagents};
use tool_subagent::ToolTwice;
use tools::Tool;

use crate::document::shown;
use crate::{Config, ConfigError, Located, Origin, Row};

/// The plugin that reads `offline.script`.
const SCRIPTED: &str = "llm-script";

/// Everything that is named and not there.
pub(crate) fn unsettled(app: &Realm, config: &Config) -> Vec<ConfigError> {
    let tools: BTreeSet<Arc<str>> = app.all_named::<dyn Tool>().into_iter().map(|(name, _)| name).collect();
    let mut wrong = Vec::new();
    for row in &config.subagents {
        wrong.extend(row_faults(app, row));
        wrong.extend(no_tools(&tools, &row.names));
    }
    wrong.extend(no_tools(&tools, &config.tools.names));
    wrong
}

/// What in a configuration made a plugin fail, if that is where the fault is.
pub(crate) fn blame(app: &Realm, config: &Config, failure: &BootError) -> Vec<ConfigError> {
    if let Some(fault) = script_fault(config, failure) {
        return vec![fault];
    }
    let rows = config.subagents.iter();
    match taken(failure) {
        Some(name) => {
            let row = rows.filter(|row| row.config.tool == *name).find_map(|row| row.place.clone());
            let message = format!("there is another tool named `{name}`: give this one a name of its own");
            row.map(|place| ConfigError::at(place, message)).into_iter().collect()
        }
        // The tools of what failed are not there, so a filter that names them may be right.
        None => rows.flat_map(|row| row_faults(app, row)).collect(),
    }
}

/// The name that somebody else had, if that is what went wrong.
fn taken<'a>(mut error: &'a (dyn Error + 'static)) -> Option<&'a Arc<str>> {
    loop {
        if let Some(ToolTwice(name)) = error.downcast_ref() {
            return Some(name);
        }
        if let Some(NameTaken(name)) = error.downcast_ref() {
            return Some(name);
        }
        // It passes its own source on as if it were that.
        if let Some(RegisterError::NameTaken(NameTaken(name))) = error.downcast_ref() {
            return Some(name);
        }
        error = error.source()?;
    }
}

/// What a project denies that is not there: worth a word, and no failure.
pub fn denied_in_vain(app: &Realm, config: &Config) -> Option<String> {
    let tools: BTreeSet<Arc<str>> = app.all_named::<dyn Tool>().into_iter().map(|(name, _)| name).collect();
    let mut unknown = config.tools.denied_by_project.iter().filter(|name| !tools.contains(&name.value));
    let Located { value, place } = unknown.next()?;
    let more = match unknown.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(format!("{place}: no tool named `{}`{more}, so nothing is denied by that", shown(value)))
}

fn script_fault(config: &Config, failure: &BootError) -> Option<ConfigError> {
    let BootError::Failed { name: SCRIPTED, source } = failure else { return None };
    let mut told = source.to_string();
    let mut cause = source.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    match &config.script.from {
        Origin::User(place) => Some(ConfigError::at(place.clone(), format!("`offline.script`: {told}"))),
        Origin::Variable(name) => Some(ConfigError::Variable { name: (*name).into(), message: told }),
        Origin::Default | Origin::Project(_) | Origin::Flag(_) => None,
    }
}

fn row_faults(app: &Realm, row: &Row) -> Vec<ConfigError> {
    let (Some(place), Some(subagents)) = (&row.place, app.get::<Subagents>()) else { return Vec::new() };
    let (config, mut faults) = (&row.config, Vec::new());
    match subagents.providers().get(&config.provider) {
        None => {
            let known = subagents.providers().list().into_iter().map(|(name, _)| name.to_string());
            let known = known.collect::<Vec<_>>().join(", ");
            faults.push(format!("no subagent provider named `{}`; there are: {known}", shown(&config.provider)));
        }
        Some(provider) => {
            let needs = [
                (Capability::Persona, config.persona.is_some()),
                (Capability::ToolFilter, config.tools.is_some()),
                (Capability::DepthLimit, config.max_depth.is_some()),
                (Capability::OutputSchema, config.output_schema.is_some()),
            ];
            let offers = provider.offers();
            let lacks = needs.into_iter().filter(|(need, asked)| *asked && !offers.contains(need));
            faults.extend(lacks.map(|(need, _)| format!("`{}` does not support {need}", config.provider)));
        }
    }
    if let Some(Err(unknown)) = config.model.as_ref().map(|model| model.adapter(app)) {
        faults.push(unknown.to_string());
    }
    faults.into_iter().map(|fault| ConfigError::at(place.clone(), fault)).collect()
}

fn no_tools(tools: &BTreeSet<Arc<str>>, names: &[Located<Arc<str>>]) -> Vec<ConfigError> {
    let unknown = names.iter().filter(|name| !tools.contains(&name.value));
    let fault = |name: &Located<Arc<str>>| {
        if *name.value == *RESULT_TOOL {
            let told = format!(
                "`{RESULT_TOOL}` can be neither allowed nor denied: a child that is asked for a result has it, and no other agent"
            );
            return ConfigError::at(name.place.clone(), told);
        }
        let known = tools.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
        ConfigError::at(name.place.clone(), format!("no tool named `{}`; there are: {known}", shown(&name.value)))
    };
    unknown.map(fault).collect()
}
