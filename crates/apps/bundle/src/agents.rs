//! Agents that are programs of their own, as a configuration has them.

use app_boot::{Agent, Boot};
use subagent_acp::{Config, Permission};
use subagent_subprocess::{Confine, Settings};

use crate::Helper;

pub(crate) fn configured(agent: &Agent, boot: &Boot) -> Config {
    let path = |written: &String| Agent::path(written, &boot.env);
    let settings = Settings {
        args: agent.args.iter().map(Into::into).collect(),
        env: agent.environment(&boot.env),
        cwd: agent.cwd.as_ref().map(path),
        confine: if agent.confined { Confine::Inherit } else { Confine::None },
        writable: agent.writable.iter().map(path).collect(),
        network: agent.network,
        // Whoever puts the app together knows the helper.
        ..Settings::new("", &agent.command)
    };
    Config {
        session_mode: agent.session_mode.clone(),
        auth: agent.auth.clone(),
        permission: if agent.allows { Permission::Allow } else { Permission::Reject },
        ..Config::new(agent.name.clone(), settings)
    }
}

pub(crate) fn held_by(agents: Vec<Config>, helper: &Helper) -> Vec<Config> {
    let held = |config: Config| Config { settings: Settings { helper: helper.path(), ..config.settings }, ..config };
    agents.into_iter().map(held).collect()
}
