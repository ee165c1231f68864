use std::path::{Path, PathBuf};

use crate::{Config, ConfigError, ConfigErrors, Env, Flags, Places};

/// The file of keys in the configuration directory.
const KEYS: &str = ".env";

/// The edge of a program: what was found around it when it began.
#[derive(Clone, Debug)]
pub struct Boot {
    /// The environment, and the file of keys behind it.
    pub env: Env,
    /// Where things are kept.
    pub places: Places,
    env_file: Option<PathBuf>,
}

impl Boot {
    /// Reads the environment of this process and, behind it, `env_file` or the `.env` of the configuration directory.
    pub fn of_process(home: Option<PathBuf>, env_file: Option<&Path>) -> Result<Self, ConfigError> {
        Self::new(Env::of_process(), home, env_file)
    }

    /// As [`Boot::of_process`], in any environment.
    pub fn new(mut env: Env, home: Option<PathBuf>, env_file: Option<&Path>) -> Result<Self, ConfigError> {
        let places = Places::find(&env, home)?;
        places.check_home()?;
        let env_file =
            match env_file {
                None => {
                    env.add_users(&places.config.join(KEYS))?;
                    None
                }
                Some(named) => {
                    env.add_named(named)?;
                    let absolute = std::path::absolute(named);
                    Some(absolute.map_err(|error| ConfigError::Unreadable {
                        file: named.to_owned(),
                        message: error.to_string(),
                    })?)
                }
            };
        Ok(Self { env, places, env_file })
    }

    /// The configuration for work in `root`, which a project's file there may narrow.
    pub fn configure(&self, root: &Path, flags: Flags) -> Result<Config, ConfigErrors> {
        Config::load(&self.env, &self.places, root, flags)
    }

    /// What is nobody's to read under confinement: the configuration, and the file of keys wherever it is. The files of
    /// the configuration stand for themselves too: they may be links, or have other names elsewhere.
    pub fn private(&self) -> Vec<PathBuf> {
        let config = &self.places.config;
        let own = [config.clone(), config.join(KEYS), self.places.users_file()];
        self.env_file.iter().cloned().chain(own).collect()
    }
}
