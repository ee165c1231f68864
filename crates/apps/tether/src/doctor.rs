//! `tether doctor`: what this machine can enforce, which models can be asked, and what would be refused.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use anyhow::anyhow;
use app_boot::{Boot, Config};
use bundle::{Helper, Settings};
use sandbox::{Enforcement, Mode, SandboxProvider, one_line};
use sandbox_linux::{LinuxSandbox, features};
use serde::Serialize;
use serde_json::json;

use crate::cli::Configuring;
use crate::config::{default_model, root};
use crate::exit::{Exit, Failure, tell};

/// What was found out.
struct Fact {
    topic: &'static str,
    name: String,
    state: State,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Good,
    /// Less than there could be.
    Notable,
    /// A session with the defaults would be refused something that it needs.
    Bad,
}

/// `tether doctor`.
pub(crate) fn doctor(
    configuring: &Configuring,
    as_json: bool,
    home: Option<PathBuf>,
    helper: &Helper,
) -> Result<Exit, Failure> {
    let boot = configuring.boot(home)?;
    let root = root(configuring.cwd.as_deref())?;
    let config = match configuring.configure(&boot, &root) {
        Ok(config) => config,
        Err(errors) => {
            errors.iter().for_each(|error| tell(Failure::usage(error.clone())));
            return Ok(Exit::Usage);
        }
    };
    let sandbox = LinuxSandbox::with_helper(helper.path());
    let mut facts = machine(&sandbox);
    facts.extend(modes(&sandbox.enforcement(), &config));
    facts.extend(models(&boot, &config)?);
    facts.push(place("sessions", &boot.places.home.join("sessions")));
    let printed = match as_json {
        true => print_json(&facts, &mut io::BufWriter::new(io::stdout().lock())),
        false => print_text(&facts, &mut io::BufWriter::new(anstream::stdout().lock())),
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(anyhow!("could not write to standard output: {error}")))
        }
        _ if facts.iter().any(|fact| fact.state == State::Bad) => Ok(Exit::Failed),
        _ => Ok(Exit::Done),
    }
}

impl Fact {
    fn new(topic: &'static str, name: impl Into<String>, state: State, text: impl Into<String>) -> Self {
        Self { topic, name: name.into(), state, text: text.into() }
    }
}

/// What the kernel has, and what of it holds a command.
fn machine(sandbox: &LinuxSandbox) -> Vec<Fact> {
    let mut facts = Vec::new();
    for feature in features() {
        let state = if feature.available { State::Good } else { State::Notable };
        facts.push(Fact::new("kernel", feature.name, state, feature.text));
    }
    match sandbox.enforcement() {
        Enforcement::Full => {
            facts.push(Fact::new("sandbox", sandbox.name(), State::Good, "full: the whole set-up was tried and held"));
        }
        Enforcement::Partial(open) => {
            facts.push(Fact::new("sandbox", sandbox.name(), State::Notable, "partial: what follows stays open"));
            facts.extend(open.into_iter().map(|open| Fact::new("sandbox", "open", State::Notable, open)));
        }
        Enforcement::None(why) => facts.push(Fact::new("sandbox", sandbox.name(), State::Bad, format!("none: {why}"))),
    }
    let nested = "not inside this one: programs that make a sandbox of their own fail in a confined command";
    facts.push(Fact::new("sandbox", "nesting", State::Notable, nested));
    facts
}

/// What each mode means for commands here.
fn modes(enforcement: &Enforcement, config: &Config) -> Vec<Fact> {
    let default = config.sandbox.value;
    let fact = |mode: Mode| {
        let confined = mode != Mode::DangerFullAccess;
        let (state, text) = match enforcement {
            _ if !confined => (State::Good, "commands run as you".to_owned()),
            Enforcement::None(_) if mode == default => (State::Bad, "every command is refused".to_owned()),
            Enforcement::None(_) => (State::Notable, "every command is refused".to_owned()),
            Enforcement::Full | Enforcement::Partial(_) => {
                let held = if let Enforcement::Full = enforcement { "confined" } else { "confined in part" };
                (State::Good, format!("commands are {held}; network {}", config.network.value))
            }
        };
        let is_default = if mode == default { " (default)" } else { "" };
        Fact::new("mode", format!("{mode}{is_default}"), state, text)
    };
    Mode::ALL.into_iter().map(fact).collect()
}

fn models(boot: &Boot, config: &Config) -> Result<Vec<Fact>, Failure> {
    let settings = Settings::configured(boot, config);
    let with_key: Vec<String> =
        settings.models.providers_with_key().iter().map(|route| route.provider.to_string()).collect();
    let mut facts: Vec<Fact> = llm_genai::Config::variables()
        .map(|(provider, variable)| match with_key.iter().any(|name| name == provider) {
            true => Fact::new("model", provider, State::Good, "can be asked"),
            false => Fact::new("model", provider, State::Notable, format!("would be refused: ${variable} is not set")),
        })
        .collect();
    let (route, why) = match &config.model.value {
        Some(route) => (route.clone(), "configured"),
        None => default_model(&settings)?,
    };
    let known = route.provider.as_ref() == "offline" || with_key.iter().any(|name| **name == *route.provider);
    let state = if known { State::Good } else { State::Bad };
    let text =
        if known { why.to_owned() } else { format!("{why}, and would be refused: its provider cannot be asked") };
    facts.push(Fact::new("model", format!("{route} (default)"), state, text));
    Ok(facts)
}

/// Whether sessions can be kept.
fn place(name: &str, dir: &Path) -> Fact {
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(dir);
    let path = dir.display().to_string();
    match rustix::fs::access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
        Ok(()) => Fact::new("place", name, State::Good, path),
        Err(error) => Fact::new("place", name, State::Bad, format!("{path} cannot be written: {error}")),
    }
}

fn print_json(facts: &[Fact], out: &mut dyn Write) -> io::Result<()> {
    for Fact { topic, name, state, text } in facts {
        writeln!(out, "{}", json!({ "topic": topic, "name": name, "state": state, "text": text }))?;
    }
    out.flush()
}

fn print_text(facts: &[Fact], out: &mut dyn Write) -> io::Result<()> {
    let width = facts.iter().map(|fact| fact.name.chars().count()).max().unwrap_or_default();
    let mut topic = "";
    for fact in facts {
        if fact.topic != topic {
            topic = fact.topic;
            writeln!(out, "{topic}")?;
        }
        let (mark, style) = match fact.state {
            State::Good => ("✓", AnsiColor::Green.on_default()),
            State::Notable => ("·", Style::new().dimmed()),
            State::Bad => ("✗", AnsiColor::Red.on_default()),
        };
        writeln!(
            out,
            "  {style}{mark}{style:#} {:width$}  {}",
            one_line(&fact.name).to_string(),
            one_line(&fact.text)
        )?;
    }
    out.flush()
}
