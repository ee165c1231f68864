use std::path::PathBuf;

use crate::{ConfigError, Env, Origin};

/// Where things are kept.
#[derive(Clone, Debug)]
pub struct Places {
    /// Sessions.
    pub home: PathBuf,
    /// The user's configuration.
    pub config: PathBuf,
    /// Who said where sessions are kept.
    pub home_from: Origin,
    /// Who said where the configuration is.
    pub config_from: Origin,
}

impl Places {
    /// `$TETHER_HOME` or the platform's data directory, unless `home` says otherwise; and the platform's directory for
    /// configuration.
    pub fn find(env: &Env, home: Option<PathBuf>) -> Result<Self, ConfigError> {
        let user = env.os("HOME").map(PathBuf::from).filter(|user| user.is_absolute());
        let below = |variable: &'static str, default: &str| {
            let named = env.os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            let named = named.map(|path| (path, Origin::Variable(variable)));
            let (path, from) = named.or_else(|| Some((user.as_ref()?.join(default), Origin::Default)))?;
            Some((path.join("tether"), from))
        };
        let data = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
        let (home, home_from) = home
            .map(|home| (home, Origin::Flag("--home")))
            .or_else(|| Some((env.os("TETHER_HOME")?.into(), Origin::Variable("TETHER_HOME"))))
            .or_else(|| below("XDG_DATA_HOME", data))
            .ok_or(ConfigError::NoHome)?;
        // Never below the directory that the command was started in: a repository could ship a configuration.
        let own = home.is_absolute().then(|| (home.join("config"), home_from.clone()));
        let (config, config_from) =
            below("XDG_CONFIG_HOME", ".config").or(own).ok_or_else(|| ConfigError::NoConfig { home: home.clone() })?;
        // A relative one means the directory that the command was started in, whatever becomes of that.
        let home = std::path::absolute(&home)
            .map_err(|error| ConfigError::Unreadable { file: home, message: error.to_string() })?;
        Ok(Self { home, config, home_from, config_from })
    }

    /// Whether sessions can be kept at all: nothing else may have the name.
    pub(crate) fn check_home(&self) -> Result<(), ConfigError> {
        let in_the_way = match self.home.metadata() {
            Ok(found) => !found.is_dir(),
            Err(error) => error.kind() == std::io::ErrorKind::NotADirectory,
        };
        let message = "not a directory, and sessions are kept in one".to_owned();
        if in_the_way { Err(ConfigError::Unreadable { file: self.home.clone(), message }) } else { Ok(()) }
    }

    /// The user's configuration file, there or not.
    pub fn users_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }
}
