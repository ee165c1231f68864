use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::normal::Names;
use super::outcome::Outcome;
use crate::run::process::Ran;
use crate::run::terminal::say_yes;
use crate::run::world::World;

/// What is in `scenario.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// What it shows.
    about: String,
    /// The user's configuration.
    #[serde(default)]
    config: String,
    /// What is there before, by its path: `root` is the workspace.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The lines of `offline/file`.
    script: Option<String>,
    /// Whether requests are pinned word for word. Elsewhere they are numbered.
    #[serde(default)]
    whole_requests: bool,
    step: Vec<Step>,
}

/// One command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
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
}

impl Scenario {
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(super) fn about(&self) -> &str {
        &self.about
    }

    /// Runs every step in a world of its own, and tells what came of it.
    pub(super) fn play(&self) -> String {
        let world = World::new();
        world.config(&self.config);
        for (path, text) in &self.files {
            world.write(&format!("area/{path}"), text);
        }
        if let Some(script) = &self.script {
            world.write("script.jsonl", script);
        }
        let mut outcome = Outcome::default();
        for step in &self.step {
            let named = Names::of(&world.logs());
            let args: Vec<String> = step.args.iter().map(|arg| named.fill_in(arg)).collect();
            let mut command = world.command(&args);
            if self.script.is_some() {
                command.env("TETHER_OFFLINE_SCRIPT", world.path("script.jsonl"));
            }
            outcome.ran(&step.args);
            if step.terminal {
                let sat = say_yes(command);
                outcome.ended(sat.status, &sat.stdout);
                outcome.asked(&sat.questions);
            } else {
                let ran = Ran::fed(command, step.stdin.as_str());
                outcome.ended(ran.status, &ran.stdout);
                outcome.told(&ran.stderr, step.siblings);
            }
        }
        let logs = world.logs();
        let names = Names::of(&logs);
        outcome.files("area", &world, &names);
        outcome.files("home", &world, &names);
        for id in names.sessions() {
            outcome.log(id, &logs[id], self.whole_requests);
        }
        names.normal(outcome.text(), &world)
    }
}
