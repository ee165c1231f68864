use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use sandbox::Network;
use subprocess::Environment;

use crate::BadSettings;

/// The most that the graces of one child may be together: the scope that owns it has a patience of its own.
pub const LONGEST_GRACES: Duration = Duration::from_secs(25);

/// How the children of a provider are started.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The executable that holds their trees: one whose `main` begins with `subprocess::helper::run_if_asked`.
    pub helper: PathBuf,
    /// The program: an absolute path, or a name that is looked for along `PATH`.
    pub command: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// What it sees of the harness's environment, if not what is allowed of it.
    pub base: Environment,
    /// What else it sees, by name. These may be secrets: they are the operator's to give.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs, if not in its parent's directory. What confines it stays around the parent's.
    pub cwd: Option<PathBuf>,
    /// Whether a parent's override confines it.
    pub confine: Confine,
    /// Directories of its own state, writable although it is confined. Absolute; they must be there.
    pub writable: Vec<PathBuf>,
    /// What it may do on the network while it is confined, where that is not up to the mode.
    pub network: Option<Network>,
    /// How much time it has to end.
    pub graces: Graces,
}

/// Whether a parent's override confines its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confine {
    /// With the kernel, or the start is refused.
    #[default]
    Inherit,
    /// Not at all. The operator has said so.
    None,
}

/// How much time a child has for each step of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graces {
    /// To stop what it does, once it was asked to.
    pub cancel: Duration,
    /// To end, once there is nothing more for it to read.
    pub close: Duration,
    /// To end, once its processes were told to (`SIGTERM`). Then they are killed.
    pub terminate: Duration,
}

impl Settings {
    /// Children that run `command`, and everything else as it comes.
    pub fn new(helper: impl Into<PathBuf>, command: impl Into<OsString>) -> Self {
        Self {
            helper: helper.into(),
            command: command.into(),
            args: Vec::new(),
            base: Environment::inherited(),
            env: Vec::new(),
            cwd: None,
            confine: Confine::default(),
            writable: Vec::new(),
            network: None,
            graces: Graces::default(),
        }
    }

    /// Whether children can be started with these, as far as that can be told without one. For when an app begins.
    ///
    /// # Errors
    ///
    /// The first that is wrong.
    pub fn check(&self) -> Result<(), BadSettings> {
        if self.command.is_empty() {
            return Err(BadSettings::NoCommand);
        }
        let command = PathBuf::from(&self.command);
        if !command.is_absolute() && command.components().count() != 1 {
            return Err(BadSettings::RelativeCommand(command));
        }
        let named = [("cwd", self.cwd.iter().collect::<Vec<_>>()), ("writable", self.writable.iter().collect())];
        for (key, paths) in named {
            if let Some(path) = paths.into_iter().find(|path| !path.is_absolute()) {
                return Err(BadSettings::RelativePath { key, path: path.clone() });
            }
        }
        let Graces { cancel, close, terminate } = self.graces;
        let together = cancel.checked_add(close).and_then(|two| two.checked_add(terminate));
        match together {
            Some(together) if together <= LONGEST_GRACES => Ok(()),
            Some(_) | None => Err(BadSettings::Graces),
        }
    }

    /// All that the child sees, but for its temporary directory.
    pub(crate) fn environment(&self) -> Environment {
        self.env.iter().fold(self.base.clone(), |env, (name, value)| env.with(name, value))
    }
}

impl Default for Graces {
    /// Together less than a delegation that is cancelled has.
    fn default() -> Self {
        let [cancel, close, terminate] = [2, 4, 2].map(Duration::from_secs);
        Self { cancel, close, terminate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn wrong(settings: Settings, says: &str) {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn settings_that_cannot_work_are_told() {
        let agent = || Settings::new("/proc/self/exe", "agent");
        agent().check().unwrap();
        Settings { command: "/opt/agent".into(), ..agent() }.check().unwrap();
        wrong(Settings { command: "".into(), ..agent() }, "no command");
        wrong(Settings { command: "bin/agent".into(), ..agent() }, "bin/agent");
        wrong(Settings { cwd: Some("here".into()), ..agent() }, "`cwd`");
        wrong(Settings { writable: vec!["/ok".into(), "state".into()], ..agent() }, "`writable`: state");
        let long = Graces { close: LONGEST_GRACES, ..Graces::default() };
        wrong(Settings { graces: long, ..agent() }, "25 s");
        wrong(Settings { graces: Graces { close: Duration::MAX, ..long }, ..agent() }, "25 s");
    }
}
