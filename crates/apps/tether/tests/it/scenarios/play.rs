use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::log::Shown;
use super::normal::Names;
use super::outcome::Outcome;
use super::promises::Promise;
use crate::acp::recorded::Recorded;
use crate::run::process::Ran;
use crate::run::terminal::say_yes;
use crate::run::world::World;

/// So much can be read at once, and a promise that takes more to show is not shown but buried.
const PAGE: usize = 60;

/// An agent that speaks the protocol, a shell's program. Beside it stands what it does.
const AGENT: &str = include_str!("agent.sh");

/// What is in `scenario.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// What it shows.
    pub(super) about: String,
    /// The promises that it shows, and that it would show broken.
    #[serde(default)]
    pub(super) promises: Vec<Promise>,
    /// The user's configuration.
    #[serde(default)]
    config: String,
    /// What is there before, by its path: `root` is the workspace.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// What an agent of another kind does, in the language of its [program](AGENT).
    agent: Option<String>,
    /// The lines of `offline/file`.
    script: Option<String>,
    /// Types of events that are pinned whole beside those about policy, by session: `$1`, or `all`.
    #[serde(default)]
    events: BTreeMap<String, Vec<String>>,
    /// Whether every event is pinned whole.
    #[serde(default)]
    whole_logs: bool,
    /// Whether requests are pinned word for word. Elsewhere they are numbered.
    #[serde(default)]
    whole_requests: bool,
    /// Why its outcome is longer than a page.
    longer: Option<String>,
    step: Vec<Step>,
}

/// What is done, one after the other.
#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Run(Run),
    Connect(Connect),
    Configure(Configure),
    Remove(Remove),
    Replace(Replace),
}

/// One command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    /// Its arguments; `$1` is the first session, `$2` the second, in the order in which the outcome names them.
    args: Vec<String>,
    #[serde(default)]
    stdin: String,
    /// A person sits in front of it and says yes to everything.
    #[serde(default)]
    terminal: bool,
    /// Agents run side by side, and the order in which they report is not said.
    #[serde(default)]
    siblings: bool,
    /// It prints JSON, and these types of lines are told.
    #[serde(default)]
    lines: Vec<String>,
}

/// A client connects to `tether acp`, works in one session, and then, beside it, in another.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Connect {
    /// What it is asked, one after the other.
    prompts: Vec<Prompt>,
    /// Arguments behind `acp`.
    #[serde(default)]
    args: Vec<String>,
}

/// What a session is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    text: String,
    /// It is cancelled as soon as this is shown.
    cancel_at: Option<String>,
}

/// The user writes another configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configure {
    config: String,
}

/// A file is removed, by its path below everything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remove {
    remove: String,
}

/// Somebody forges a file: what it has there once becomes something else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replace {
    replace: String,
    what: String,
    by: String,
}

impl Scenario {
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Runs every step in a world of its own, and tells what came of it.
    pub(super) fn play(&self) -> String {
        // Where commands see what is around the workspace.
        let world = World::beside_tmp();
        world.config(&names_to_places(&self.config, &world));
        fs::create_dir(world.path("agent")).unwrap();
        if let Some(agent) = &self.agent {
            world.write("agent/agent.sh", AGENT);
            world.write("agent/does.sh", agent);
        }
        for (path, text) in &self.files {
            world.write(&format!("area/{path}"), text);
        }
        if let Some(script) = &self.script {
            world.write("script.jsonl", script);
        }
        let (mut outcome, mut names) = (Outcome::default(), Names::default());
        for step in &self.step {
            names.meet(&world.logs());
            match step {
                Step::Run(run) => self.run(run, &world, &names, &mut outcome),
                Step::Connect(connect) => connect.converse(&world, &mut outcome),
                Step::Configure(Configure { config }) => {
                    world.config(&names_to_places(config, &world));
                    outcome.changed("the configuration is now", config.trim().lines());
                }
                Step::Remove(Remove { remove }) => {
                    fs::remove_file(world.path(names.fill_in(remove))).unwrap();
                    outcome.changed(&format!("{remove} is removed"), []);
                }
                Step::Replace(Replace { replace, what, by }) => {
                    let path = world.path(names.fill_in(replace));
                    let text = fs::read_to_string(&path).unwrap();
                    assert_eq!(text.matches(what).count(), 1, "`{what}` in {text}");
                    fs::write(path, text.replace(what, by)).unwrap();
                    outcome.changed(&format!("in {replace}, this becomes that"), [what.as_str(), by]);
                }
            }
        }
        let logs = world.logs();
        names.meet(&logs);
        outcome.files(["area", "home"], &world, &names);
        for (at, id) in names.sessions().enumerate().filter(|(_, id)| logs.contains_key(*id)) {
            outcome.log(id, &logs[id], &self.shown(at + 1), self.whole_requests);
        }
        names.normal(outcome.text(), &world)
    }

    /// What is told of a session, counted from 1.
    fn shown(&self, session: usize) -> Shown<'_> {
        if self.whole_logs {
            return Shown::Everything;
        }
        let keys = [format!("${session}"), "all".to_owned()];
        Shown::These(keys.iter().filter_map(|key| self.events.get(key)).flatten().map(String::as_str).collect())
    }

    fn run(&self, run: &Run, world: &World, names: &Names, outcome: &mut Outcome) {
        let args: Vec<String> = run.args.iter().map(|arg| names.fill_in(arg)).collect();
        let mut command = world.command(&args);
        if self.script.is_some() {
            command.env("TETHER_OFFLINE_SCRIPT", world.path("script.jsonl"));
        }
        outcome.ran(&run.args);
        if run.terminal {
            let sat = say_yes(command);
            outcome.ended(sat.status, &sat.stdout);
            outcome.asked(&sat.questions);
        } else {
            let ran = Ran::fed(command, run.stdin.as_str());
            match run.lines.is_empty() {
                true => outcome.ended(ran.status, &ran.stdout),
                false => outcome.ended_with_lines(ran.status, &ran.stdout, &run.lines),
            }
            outcome.told(&ran.stderr, run.siblings);
        }
    }

    /// An outcome is a page, or it is said why not.
    #[track_caller]
    pub(super) fn check_length(&self, outcome: &str) {
        let lines = outcome.lines().count();
        match &self.longer {
            Some(why) => assert!(lines > PAGE && !why.is_empty(), "{lines} lines are a page: take `longer` away"),
            None => assert!(lines <= PAGE, "{lines} lines, and a page has {PAGE}: split it, or say why in `longer`"),
        }
    }
}

impl Connect {
    fn converse(&self, world: &World, outcome: &mut Outcome) {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let mut connection = Recorded::start(world, &args);
        let session = connection.open();
        for Prompt { text, cancel_at } in &self.prompts {
            connection.prompt(&session, text, cancel_at.as_deref());
        }
        // Whatever became of that.
        let other = connection.open();
        connection.prompt(&other, "say on", None);
        outcome.connected(&self.args, &connection.end());
    }
}

/// Places, in a configuration, in the place of the names that the outcome has for them.
fn names_to_places(config: &str, world: &World) -> String {
    config.replace("<base>", world.base().to_str().unwrap())
}

#[test]
#[should_panic(expected = "61 lines, and a page has 60")]
fn more_than_a_page_is_an_error() {
    scenario("about = ''\nstep = []").check_length(&"line\n".repeat(PAGE + 1));
}

#[test]
#[should_panic(expected = "60 lines are a page: take `longer` away")]
fn an_excuse_for_a_page_is_an_error() {
    scenario("about = ''\nlonger = 'why'\nstep = []").check_length(&"line\n".repeat(PAGE));
}

fn scenario(text: &str) -> Scenario {
    toml::from_str(text).unwrap()
}
