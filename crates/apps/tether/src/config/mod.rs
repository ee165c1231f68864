//! What the command is configured with, layer upon layer: defaults, the user's file, the project's file, the
//! environment, flags. A project's file is untrusted: it can narrow and nothing else.

mod env;
mod file;
mod places;

use std::path::{Path, PathBuf};

use llm::Route;
use sandbox::Mode;
use user_approval::Policy;

pub(crate) use env::Env;
pub(crate) use places::Places;

use file::File;
pub(crate) use file::PolicyName;

/// The effective configuration.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) model: Option<Route>,
    pub(crate) sandbox: Mode,
    pub(crate) initial_override: bool,
    pub(crate) protected: Vec<PathBuf>,
    pub(crate) approval: Policy,
    pub(crate) max_depth: u32,
    pub(crate) script: Option<PathBuf>,
}

/// Why there is no configuration to work with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A file says something that it cannot.
    #[error("{}:{line}: {message}", file.display())]
    File { file: PathBuf, line: usize, message: String },
    /// A file cannot be read.
    #[error("{}: {message}", file.display())]
    Unreadable { file: PathBuf, message: String },
    /// A variable says something that it cannot.
    #[error("${name}: {message}")]
    Variable { name: &'static str, message: String },
    /// There is no place to keep anything.
    #[error("neither $TETHER_HOME nor $HOME is set: say where sessions are kept with --home DIR")]
    NoHome,
    /// What is inherited and audited must have a name that a log can hold.
    #[error("{} is not UTF-8, and a log could not name it", .0.display())]
    NotUtf8(PathBuf),
}

impl Config {
    /// Everything but the flags.
    pub(crate) fn load(env: &Env, places: &Places, root: &Path) -> Result<Self, ConfigError> {
        let mut config = Self {
            model: None,
            sandbox: Mode::ReadOnly,
            initial_override: true,
            protected: Vec::new(),
            approval: Policy::Ask,
            max_depth: subagent::Limits::default().max_depth,
            script: None,
        };
        if let Some(file) = File::read(&places.config.join("config.toml"))? {
            config.apply(file);
        }
        if let Some(file) = File::read(&root.join(".tether").join("config.toml"))? {
            config.narrow(file)?;
        }
        config.apply_env(env)?;
        Ok(config)
    }

    fn apply(&mut self, file: File) {
        let File { model, sandbox, approval, budget, offline, .. } = file;
        if let Some(model) = model {
            self.model = Some(model.into_inner().0);
        }
        self.sandbox = sandbox.default.map_or(self.sandbox, |mode| mode.0);
        self.initial_override = sandbox.initial_override.map_or(self.initial_override, |given| *given.get_ref());
        self.protected.extend(sandbox.protected.into_iter().flatten());
        self.approval = approval.default.unwrap_or(self.approval);
        self.max_depth = budget.max_depth.unwrap_or(self.max_depth);
        self.script = offline.map_or(self.script.take(), |offline| offline.into_inner().script);
    }

    /// Takes what narrows and refuses what only a user may say.
    fn narrow(&mut self, file: File) -> Result<(), ConfigError> {
        file.refuse_what_widens()?;
        let File { sandbox, approval, budget, .. } = file;
        self.sandbox = sandbox.default.map_or(self.sandbox, |mode| mode.0.min(self.sandbox));
        self.protected.extend(sandbox.protected.into_iter().flatten());
        if approval.default == Some(Policy::Never) {
            self.approval = Policy::Never;
        }
        self.max_depth = budget.max_depth.map_or(self.max_depth, |depth| depth.min(self.max_depth));
        Ok(())
    }

    fn apply_env(&mut self, env: &Env) -> Result<(), ConfigError> {
        if let Some(model) = env.parsed("TETHER_MODEL")? {
            self.model = Some(model);
        }
        if let Some(mode) = env.parsed("TETHER_SANDBOX_DEFAULT")? {
            self.sandbox = mode;
        }
        if let Some(record) = env.parsed("TETHER_SANDBOX_INITIAL_OVERRIDE")? {
            self.initial_override = record;
        }
        if let Some(PolicyName(policy)) = env.parsed("TETHER_APPROVAL_DEFAULT")? {
            self.approval = policy;
        }
        if let Some(depth) = env.parsed("TETHER_BUDGET_MAX_DEPTH")? {
            self.max_depth = depth;
        }
        if let Some(script) = env.get("TETHER_OFFLINE_SCRIPT") {
            self.script = Some(script.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        dir: tempfile::TempDir,
        env: Env,
    }

    impl World {
        fn new(user: &str, project: &str, env: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for (folder, text) in [("config", user), ("project/.tether", project)] {
                std::fs::create_dir_all(dir.path().join(folder)).unwrap();
                std::fs::write(dir.path().join(folder).join("config.toml"), text).unwrap();
            }
            Self { dir, env: Env::of(env) }
        }

        fn load(&self) -> Result<Config, String> {
            let places = Places { home: self.dir.path().join("home"), config: self.dir.path().join("config") };
            let loaded = Config::load(&self.env, &places, &self.dir.path().join("project"));
            loaded.map_err(|error| error.to_string().replace(self.dir.path().to_str().unwrap(), ""))
        }
    }

    #[test]
    fn layers_in_order() {
        let user = "model = 'openai/a'\n[sandbox]\ndefault = 'workspace-write'\nprotected = ['secrets/']\n[budget]\nmax_depth = 5";
        let config = World::new(user, "", &[]).load().unwrap();
        assert_eq!((config.sandbox, config.max_depth), (Mode::WorkspaceWrite, 5));
        assert_eq!(config.model.unwrap().to_string(), "openai/a");
        assert_eq!(config.protected, [PathBuf::from("secrets/")]);
        let env = [
            ("TETHER_MODEL", "ollama/b"),
            ("TETHER_SANDBOX_DEFAULT", "read-only"),
            ("TETHER_APPROVAL_DEFAULT", "never"),
        ];
        let config = World::new(user, "", &env).load().unwrap();
        assert_eq!((config.sandbox, config.approval), (Mode::ReadOnly, Policy::Never));
        assert_eq!(config.model.unwrap().to_string(), "ollama/b");
    }

    #[test]
    fn a_project_narrows_and_never_widens() {
        let user = "[sandbox]\ndefault = 'workspace-write'\n[budget]\nmax_depth = 2";
        let narrower = "[sandbox]\ndefault = 'read-only'\nprotected = ['x']\n[approval]\ndefault = 'never'\n[budget]\nmax_depth = 1";
        let config = World::new(user, narrower, &[]).load().unwrap();
        assert_eq!((config.sandbox, config.max_depth, config.approval), (Mode::ReadOnly, 1, Policy::Never));
        let wider = "[sandbox]\ndefault = 'danger-full-access'\n[approval]\ndefault = 'ask'\n[budget]\nmax_depth = 9";
        let never = format!("{user}\n[approval]\ndefault = 'never'");
        let config = World::new(&never, wider, &[]).load().unwrap();
        assert_eq!((config.sandbox, config.max_depth, config.approval), (Mode::WorkspaceWrite, 2, Policy::Never));
        for (key, text) in [
            ("model", "model = 'openai/a'"),
            ("offline", "[offline]\nscript = '/tmp/x'"),
            ("sandbox.initial_override", "[sandbox]\ninitial_override = false"),
        ] {
            let refused = World::new(user, text, &[]).load().unwrap_err();
            assert!(
                refused.contains(&format!("`{key}`")) && refused.contains("/project/.tether/config.toml:"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        let cases = [
            (
                "[sandbox]\ndefualt = 'read-only'",
                "/config/config.toml:2: unknown key `defualt`; did you mean `default`?",
            ),
            ("[sandbox]\ndefault = 'wide'", "/config/config.toml:2: "),
            ("modle = 'a/b'", "/config/config.toml:1: unknown key `modle`; did you mean `model`?"),
            ("model = 'nomodel'", "/config/config.toml:1: `nomodel` is not a model"),
            ("[budget]\nmax_depth = -1", "/config/config.toml:2: "),
            ("\n\n[sandbox", "/config/config.toml:3: "),
            ("[budget]\ntokens = 1", "/config/config.toml:2: `tokens` is not supported by this version"),
            ("[[subagent]]\ntool = 'x'", "/config/config.toml:1: `subagent` is not supported by this version"),
        ];
        for (text, want) in cases {
            let told = World::new(text, "", &[]).load().unwrap_err();
            assert!(told.starts_with(want) && !told.contains('\n'), "{text:?}: {told}");
        }
        let told = World::new("", "", &[("TETHER_SANDBOX_DEFAULT", "wide")]).load().unwrap_err();
        assert!(told.starts_with("$TETHER_SANDBOX_DEFAULT: "), "{told}");
    }
}
