//! `tether config show`: every value, and where it came from. Nothing is started for it, and no key is printed.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use anyhow::anyhow;
use app_boot::{Boot, Config, Entry, Origin, Place, Source};
use bundle::Settings;
use sandbox::one_line;
use serde_json::{Value, json};

use super::default_model;
use crate::exit::{Exit, Failure};

const DIM: Style = Style::new().dimmed();
const NOTABLE: Style = AnsiColor::Yellow.on_default();

/// The longest value that people are shown, in characters.
const SHOWN: usize = 80;

/// How wide the column of values is at most.
const VALUES: usize = 32;

/// What is printed, in order.
enum Row {
    Value(Entry, Option<&'static str>),
    /// What a project said in vain.
    NotTaken(&'static str, Value, Place),
    /// A variable that may hold a key, and who set it.
    Secret(String, Option<Source>),
}

pub(super) fn show(boot: &Boot, root: &Path, config: &Config, as_json: bool) -> Result<Exit, Failure> {
    let rows = rows(boot, root, config)?;
    let printed = match as_json {
        true => print_json(&rows, &mut io::BufWriter::new(io::stdout().lock())),
        false => print_text(&rows, &mut io::BufWriter::new(anstream::stdout().lock())),
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(anyhow!("could not write to standard output: {error}")))
        }
        _ => Ok(Exit::Done),
    }
}

fn rows(boot: &Boot, root: &Path, config: &Config) -> Result<Vec<Row>, Failure> {
    let path = |path: &Path| Value::from(path.to_string_lossy());
    let places = [
        Entry::new("root", path(root), Origin::Default),
        Entry::new("home", path(&boot.places.home), boot.places.home_from.clone()),
        Entry::new("config", path(&boot.places.config), boot.places.config_from.clone()),
    ];
    let mut rows: Vec<Row> = places.into_iter().map(|place| Row::Value(place, None)).collect();
    let (model, why) = default_model(&Settings::configured(boot, config))?;
    for entry in config.entries() {
        let not_taken = config.not_taken.iter().filter(|said| said.key == entry.key).cloned();
        let not_taken = not_taken.map(|said| Row::NotTaken(said.key, said.value, said.place)).collect::<Vec<_>>();
        rows.push(match entry.key == "model" && entry.value.is_null() {
            true => Row::Value(Entry { value: model.to_string().into(), ..entry }, Some(why)),
            false => Row::Value(entry, None),
        });
        rows.extend(not_taken);
    }
    rows.extend(secrets(boot).into_iter().map(|name| {
        let source = boot.env.source(&name);
        Row::Secret(name, source)
    }));
    Ok(rows)
}

/// The variables that the models' adapters ask for, but for proxies that nobody set.
fn secrets(boot: &Boot) -> Vec<String> {
    let asked = RefCell::new(Vec::new());
    let look_up = |name: &str| {
        let value = boot.env.get(name);
        if value.is_some() || !name.to_ascii_uppercase().ends_with("_PROXY") {
            asked.borrow_mut().push(name.to_owned());
        }
        value
    };
    let _ = llm_genai::Config::from_lookup(look_up);
    asked.into_inner()
}

fn print_json(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    for row in rows {
        let line = match row {
            Row::Value(Entry { key, value, from, narrowed_from }, why) => {
                let mut line = json!({ "key": key, "value": value, "from": origin(from) });
                if let Some((value, from)) = narrowed_from {
                    line["narrowedFrom"] = json!({ "value": value, "from": origin(from) });
                }
                if let Some(why) = why {
                    line["because"] = (*why).into();
                }
                line
            }
            Row::NotTaken(key, value, place) => {
                json!({ "key": key, "notTaken": value, "from": origin(&Origin::Project(place.clone())) })
            }
            Row::Secret(name, source) => {
                let from = source.as_ref().map(|source| match source {
                    Source::Process => json!({ "layer": "environment", "variable": name }),
                    Source::File(file) => json!({ "layer": "env-file", "file": file.to_string_lossy() }),
                });
                json!({ "variable": name, "set": source.is_some(), "from": from })
            }
        };
        writeln!(out, "{line}")?;
    }
    out.flush()
}

fn origin(from: &Origin) -> Value {
    let file =
        |layer, place: &Place| json!({ "layer": layer, "file": place.file.to_string_lossy(), "line": place.line });
    match from {
        Origin::Default => json!({ "layer": "default" }),
        Origin::User(place) => file("user", place),
        Origin::Project(place) => file("project", place),
        Origin::Variable(name) => json!({ "layer": "environment", "variable": name }),
        Origin::Flag(flag) => json!({ "layer": "flag", "flag": flag }),
    }
}

fn print_text(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<Line> = rows.iter().map(line).collect();
    let width = |of: fn(&Line) -> &str| lines.iter().map(|line| of(line).chars().count()).max().unwrap_or_default();
    let (keys, values) = (width(|line| &line.key), width(|line| &line.value).min(VALUES));
    for Line { key, value, told, style } in &lines {
        match told.is_empty() {
            true => writeln!(out, "{key:<keys$}  {value}")?,
            false => writeln!(out, "{key:<keys$}  {value:<values$}  {style}{told}{style:#}")?,
        }
    }
    out.flush()
}

/// What people are shown of a row. Files that somebody else wrote name keys, values and places: nothing of them moves a
/// cursor.
struct Line {
    key: String,
    value: String,
    told: String,
    style: Style,
}

fn line(row: &Row) -> Line {
    let (key, value, told, style) = match row {
        Row::Value(Entry { key, value, from, narrowed_from }, why) => {
            let narrowed =
                narrowed_from.as_ref().map(|(value, from)| format!(", narrowed from {} ({from})", brief(value)));
            let why = why.map(|why| format!(": {why}"));
            let told = format!("{from}{}{}", narrowed.unwrap_or_default(), why.unwrap_or_default());
            (key.as_str(), brief(value), told, DIM)
        }
        Row::NotTaken(key, value, place) => {
            let from = Origin::Project(place.clone());
            (*key, brief(value), format!("not taken from {from}: a project can narrow, never widen"), NOTABLE)
        }
        Row::Secret(name, None) => (name.as_str(), "not set".to_owned(), String::new(), DIM),
        Row::Secret(name, Some(Source::Process)) => (name.as_str(), "set".to_owned(), "environment".to_owned(), DIM),
        Row::Secret(name, Some(Source::File(file))) => {
            (name.as_str(), "set".to_owned(), file.to_string_lossy().into_owned(), DIM)
        }
    };
    Line {
        key: one_line(key).to_string(),
        value: one_line(&value).to_string(),
        told: one_line(&told).to_string(),
        style,
    }
}

fn brief(value: &Value) -> String {
    if value.is_null() {
        return "unset".to_owned();
    }
    let mut text = value.to_string();
    if let Some((cut, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(cut);
        text.push('…');
    }
    text
}
