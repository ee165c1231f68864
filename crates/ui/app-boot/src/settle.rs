//! Whether what a configuration names is there, once everything is applied.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use context::{NameTaken, Realm};
use subagent::{Capability, Subagents};
use tool_subagent::ToolTwice;
use tools::Tool;

use crate::document::shown;
use crate::{Config, ConfigError, Located, Row};

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
pub(crate) fn blame(app: &Realm, config: &Config, failure: &(dyn Error + 'static)) -> Vec<ConfigError> {
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
        error = error.source()?;
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
        let known = tools.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
        ConfigError::at(name.place.clone(), format!("no tool named `{}`; there are: {known}", shown(&name.value)))
    };
    unknown.map(fault).collect()
}
