use std::env;
use std::path::PathBuf;

/// Whose git works beside the agent: the person's own configuration leads git to places as a repository's does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitUser {
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// Configuration files beyond a repository's, absolute. None of them need exist.
    pub configs: Vec<PathBuf>,
}

impl GitUser {
    /// Whoever runs this process, as its environment says, with the machine's configuration.
    pub fn of_this_process() -> Self {
        let named = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = named("HOME");
        let below_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let settings = named("XDG_CONFIG_HOME").or_else(|| below_home(".config")).map(|dir| dir.join("git/config"));
        let system = named("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into());
        let global = [below_home(".gitconfig"), settings, named("GIT_CONFIG_GLOBAL")];
        let configs = global.into_iter().flatten().chain([system]).collect();
        Self { home, configs }
    }
}
