//! `tether doctor`: what this machine can enforce, which models can be asked, and what would be refused.

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use anyhow::anyhow;
use app_boot::{Config, Tmp};
use bundle::{Helper, Settings};
use sandbox::{CannotConfine, CommandLine, Confinement, Enforcement, Mode, SandboxProvider, Temp, Workspace, one_line};
use sandbox_linux::{LinuxSandbox, features};
use serde::Serialize;
use serde_json::json;
use subagent_subprocess::Confine;

use crate::cli::Configuring;
use crate::config::{default_model, root};
use crate::exit::{Exit, Failure, tell};
use crate::sandboxed::OTHER_TEMP;

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
    let settings = Settings::configured(&boot, &config);
    facts.extend(modes(&sandbox, &config, &workspace(&settings, config.tmp.value, &root)));
    facts.extend(models(&settings, &config)?);
    facts.extend(agents(&settings, &sandbox));
    facts.push(place("sessions", &boot.places.home.join("sessions")));
    facts.push(around(&root));
    facts.push(temporary(&std::env::temp_dir()));
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
fn modes(sandbox: &LinuxSandbox, config: &Config, workspace: &Workspace) -> Vec<Fact> {
    let (default, enforcement) = (config.sandbox.value, sandbox.enforcement());
    let refused = if default == Mode::DangerFullAccess { State::Notable } else { State::Bad };
    let fact = |mode: Mode| {
        let boundary = workspace.boundary(mode);
        let is_confined = boundary.is_confined();
        let temp = workspace.temp_dir().unwrap_or(workspace.root()).to_owned();
        let temp = match config.tmp.value {
            Tmp::Private => Temp::Private(temp),
            Tmp::Shared => Temp::Shared(temp),
        };
        let confinement = Confinement { boundary, network: config.network.value, temp };
        let command = CommandLine { argv: &["true".into()], cwd: workspace.root() };
        let (state, text) = match (&enforcement, sandbox.confine(&command, &confinement)) {
            _ if !is_confined => (State::Good, "commands run as you".to_owned()),
            // Why is said above.
            (Enforcement::None(_), _) => (refused, "every command is refused".to_owned()),
            (_, Err(CannotConfine { why })) => (refused, format!("every command is refused: {why}")),
            (Enforcement::Full, Ok(_)) => {
                (State::Good, format!("commands are confined; network {}", config.network.value))
            }
            (Enforcement::Partial(_), Ok(_)) => {
                (State::Good, format!("commands are confined in part; network {}", config.network.value))
            }
        };
        let state = if mode == default || state == State::Good { state } else { State::Notable };
        let is_default = if mode == default { " (default)" } else { "" };
        Fact::new("mode", format!("{mode}{is_default}"), state, text)
    };
    Mode::ALL.into_iter().map(fact).collect()
}

/// Where a session would work, as near as can be had without one.
fn workspace(settings: &Settings, tmp: Tmp, root: &Path) -> Workspace {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let machine = canonical(&std::env::temp_dir());
    let temp = match tmp {
        Tmp::Private => machine.join("tether"),
        Tmp::Shared => machine,
    };
    let workspace = settings.fence().workspace(root).temp(temp);
    workspace.try_map(|path| Ok::<_, Infallible>(canonical(path))).unwrap_or(workspace)
}

fn models(settings: &Settings, config: &Config) -> Result<Vec<Fact>, Failure> {
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
        None => default_model(settings)?,
    };
    let known = route.provider.as_ref() == "offline" || with_key.iter().any(|name| **name == *route.provider);
    let (state, text) = match llm_genai::Config::variables().find(|(provider, _)| *provider == &*route.provider) {
        _ if known => (State::Good, why.to_owned()),
        Some((_, variable)) => (State::Bad, format!("{why}, and would be refused: ${variable} is not set")),
        None => (State::Bad, format!("{why}, and would be refused: there is no such provider")),
    };
    facts.push(Fact::new("model", format!("{route} (default)"), state, text));
    Ok(facts)
}

/// The agents that are programs of their own: how they are held, and what of theirs stays writable then.
fn agents(settings: &Settings, sandbox: &LinuxSandbox) -> Vec<Fact> {
    let held = !matches!(sandbox.enforcement(), Enforcement::None(_));
    let fact = |config: &subagent_acp::Config| {
        let own = &config.settings;
        let gone = own.writable.iter().find(|path| !path.is_dir());
        let (state, text) = match (config.check(), gone, own.confine) {
            (Err(error), ..) => (State::Notable, format!("cannot be started: {error}")),
            (Ok(()), Some(gone), _) => {
                (State::Notable, format!("cannot be started while it is confined: {} is no directory", gone.display()))
            }
            (Ok(()), None, Confine::None) => {
                (State::Notable, "its parent's mode does not hold it: `confine = \"none\"`".to_owned())
            }
            (Ok(()), None, Confine::Inherit) if !held => {
                (State::Notable, "refused under a mode that confines: nothing here could hold it".to_owned())
            }
            (Ok(()), None, Confine::Inherit) => {
                let writable: Vec<_> = own.writable.iter().map(|path| path.display().to_string()).collect();
                let writable = if writable.is_empty() { "nothing".to_owned() } else { writable.join(", ") };
                let nested = "a sandbox of its own may fail inside";
                (State::Good, format!("held to its parent's mode; writable besides: {writable}; {nested}"))
            }
        };
        Fact::new("agent", &*config.name, state, text)
    };
    settings.agents.iter().map(fact).collect()
}

/// Whether sessions can be kept.
fn place(name: &str, dir: &Path) -> Fact {
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(dir);
    let path = dir.display().to_string();
    match writable(existing) {
        Ok(()) => Fact::new("place", name, State::Good, path),
        Err(error) => Fact::new("place", name, State::Bad, format!("{path} cannot be written: {error}")),
    }
}

/// What is below the workspace root is what a session may write.
fn around(root: &Path) -> Fact {
    let path = root.display();
    let (state, text) = match writable(root) {
        _ if root == Path::new("/") => (
            State::Notable,
            "/: everything is below it, so workspace-write lets file tools write all that you may; name a directory with --cwd"
                .to_owned(),
        ),
        Ok(()) => (State::Good, path.to_string()),
        Err(error) => (State::Notable, format!("{path} cannot be written by you, and so by no session: {error}")),
    };
    Fact::new("place", "workspace", state, text)
}

/// Every session has a directory of its own there.
fn temporary(dir: &Path) -> Fact {
    let path = dir.display();
    match writable(dir) {
        Ok(()) => Fact::new("place", "temporary", State::Good, path.to_string()),
        Err(error) => {
            let text = format!("{path} cannot be written, and no session can begin: {error}; {OTHER_TEMP}");
            Fact::new("place", "temporary", State::Bad, text)
        }
    }
}

fn writable(dir: &Path) -> io::Result<()> {
    if !dir.metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(rustix::fs::access(dir, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?)
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
