use std::path::PathBuf;

use super::{ConfigError, Env};

/// Where things are kept.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Sessions.
    pub(crate) home: PathBuf,
    /// The user's configuration.
    pub(crate) config: PathBuf,
}

impl Places {
    /// `$TETHER_HOME` or the platform's data directory, unless `home` says otherwise; and the platform's directory for
    /// configuration.
    pub(crate) fn find(env: &Env, home: Option<PathBuf>) -> Result<Self, ConfigError> {
        let user = env.path("HOME").map(PathBuf::from).filter(|user| user.is_absolute());
        let below = |variable: &str, default: &str| {
            let named = env.path(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            let named = named.or_else(|| Some(user.as_ref()?.join(default)));
            named.map(|path| path.join("tether"))
        };
        let data = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
        let home = home
            .or_else(|| env.path("TETHER_HOME").map(PathBuf::from))
            .or_else(|| below("XDG_DATA_HOME", data))
            .ok_or(ConfigError::NoHome)?;
        // Never below the directory that the command was started in: a repository could ship a configuration.
        let own = home.is_absolute().then(|| home.join("config"));
        let config = below("XDG_CONFIG_HOME", ".config").or(own).ok_or(ConfigError::NoHome)?;
        // A relative one means the directory that the command was started in, whatever becomes of that.
        let home = std::path::absolute(&home)
            .map_err(|error| ConfigError::Unreadable { file: home, message: error.to_string() })?;
        Ok(Self { home, config })
    }
}
