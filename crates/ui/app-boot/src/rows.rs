//! The rows of `[[subagent]]`: a delegation tool each.

use std::sync::Arc;

use subagent::{OutputSchema, Persona, RESULT_TOOL};
use tools::ToolFilter;

use crate::document::Keys;
use crate::file::tool_names;
use crate::{Located, Place};

/// The longest name of a tool that every model takes, in bytes.
const MAX_NAME: usize = 64;

/// A delegation tool.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub config: tool_subagent::Config,
    /// Where it stands; nowhere if it is one of the defaults.
    pub place: Option<Place>,
    /// Its persona, as it was written.
    pub(crate) persona: Option<Box<str>>,
    /// The tools that its filter names.
    pub(crate) names: Vec<Located<Arc<str>>>,
}

impl Row {
    /// The rows of a deployment that has none of its own.
    pub(crate) fn defaults() -> Vec<Self> {
        let row = |config| Self { config, place: None, persona: None, names: Vec::new() };
        tool_subagent::defaults().into_iter().map(row).collect()
    }
}

pub(crate) fn read(rows: Vec<Keys<'_>>) -> Vec<Row> {
    let mut read = Vec::<Row>::new();
    for mut keys in rows {
        let Some(row) = row(&mut keys) else {
            keys.finish();
            continue;
        };
        let tool = &row.config.tool;
        if let Some(place) = read.iter().find(|other| other.config.tool == *tool).and_then(|other| other.place.as_ref())
        {
            let line = place.line;
            keys.complain(format!("line {line} has a tool named `{tool}` already: give each a name of its own"));
        }
        keys.finish();
        read.push(row);
    }
    read
}

fn row(keys: &mut Keys<'_>) -> Option<Row> {
    let tool = keys.required("tool").and_then(|item| item.parsed_by(tool_name));
    let provider = keys.required("provider").and_then(|item| item.string());
    if let Some(item) = keys.item("mode") {
        // There are no others, so nothing is kept of it.
        let _ = item.parsed_by(|mode| match mode {
            "one-shot" => Ok(()),
            "continuable" => Err("`continuable` is not supported by this version: leave it out, or say one-shot"),
            _ => Err("not a kind of child: it is one-shot"),
        });
    }
    let model = keys.item("model").and_then(|item| item.parsed());
    let persona = keys
        .item("persona")
        .and_then(|item| item.parsed_by(|text| Persona::new(text).map(|persona| (persona, Box::<str>::from(text)))));
    let (persona, written) = persona.map(|persona| persona.value).unzip();
    let filter = keys.item("tools").and_then(|item| item.table()).map(tool_names).unwrap_or_default();
    let max_depth = keys.item("max_depth").and_then(|item| item.whole(0));
    let output_schema = keys.item("output_schema").and_then(|item| {
        let schema = OutputSchema::new(item.json()?);
        schema.map_err(|error| item.complain(error)).ok()
    });
    let names: Vec<_> = filter.allow.iter().flat_map(|allow| &allow.value).chain(&filter.deny).cloned().collect();
    let allow = filter.allow.map(|allow| allow.value.into_iter().map(|name| name.value).collect());
    let tools = ToolFilter { allow, deny: filter.deny.into_iter().map(|name| name.value).collect() };
    let config = tool_subagent::Config {
        model: model.map(|model| model.value),
        persona,
        tools: (!tools.admits_all()).then_some(tools),
        max_depth: max_depth.map(|depth| depth.value),
        output_schema,
        ..tool_subagent::Config::new(tool?.value, provider?.value)
    };
    Some(Row { config, place: Some(keys.place()), persona: written, names })
}

/// A name that every model takes.
fn tool_name(name: &str) -> Result<Arc<str>, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name == RESULT_TOOL {
        return Err(format!("`{RESULT_TOOL}` is the tool that a child hands its result in with: choose another name"));
    }
    match (1..=MAX_NAME).contains(&name.len()) && name.chars().all(plain) {
        true => Ok(name.into()),
        false => Err(format!("a tool's name is 1 to {MAX_NAME} ASCII letters, digits, `_` and `-`")),
    }
}
