//! The default composition: the one list of plugins.
//!
//! *Owns:* which plugins an app is made of and in which order they are tried, the words that every agent begins with, and
//! those that logs are written in.
//! *Never:* behaviour of its own.
//!
//! ```
//! # use bundle::Policies;
//! let names = bundle::spine(Policies::default()).names();
//! assert!(names.contains(&"agent-loop") && names.contains(&"subagent-spawn"));
//! assert!(!names.contains(&"session-jsonl"), "the spine keeps nothing");
//! ```

mod agents;
mod deployment;
mod helper;
mod prompt;
mod temporary;
mod vocabulary;

use std::path::PathBuf;

use app_boot::{Boot, Config, Tmp};
use context::Plugins;
use permission::Presets;
use sandbox::{Mode, Network};
use subagent::Limits;
use tools::ToolFilter;
use user_approval::Policy;

pub use deployment::DeploymentTools;
pub use helper::Helper;
pub use prompt::{DefaultPrompt, PERSONA};
pub use vocabulary::sessions;

/// What a deployment allows.
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    /// The mode of sessions that nobody switched.
    pub sandbox: Mode,
    /// The approval policy of sessions that nobody switched.
    pub approval: Policy,
    /// How far delegation goes.
    pub limits: Limits,
}

/// What the whole composition is made with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where Tether keeps its files; sessions go below it.
    pub home: PathBuf,
    /// What the deployment allows.
    pub policies: Policies,
    /// The permission presets that one can choose.
    pub presets: Presets,
    /// The delegation tools, each with a name of its own.
    pub subagents: Vec<tool_subagent::Config>,
    /// Agents that are programs of their own. They need a helper too.
    pub agents: Vec<subagent_acp::Config>,
    /// Which tools anybody may use, if not all.
    pub tools: Option<ToolFilter>,
    /// What else is Tether's own: no tool reads or writes it under confinement. Its configuration, files of keys.
    pub private: Vec<PathBuf>,
    /// Paths below a workspace root that may not be written, besides the usual ones. Relative to the root, or absolute.
    pub protected: Vec<PathBuf>,
    /// What confined commands have as their temporary directory.
    pub tmp: Tmp,
    /// What confined commands may do on the network.
    pub network: Network,
    /// What commands are started by. Without it there are none, and no tool for them.
    pub helper: Option<Helper>,
    /// Keys and addresses of model providers.
    pub models: llm_genai::Config,
    /// Scripted replies for the model `offline/file`.
    pub script: Option<PathBuf>,
}

impl Default for Policies {
    fn default() -> Self {
        Self { sandbox: Mode::ReadOnly, approval: Policy::Ask, limits: Limits::default() }
    }
}

impl Settings {
    /// The defaults, kept in `home`.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            policies: Policies::default(),
            presets: Presets::default(),
            subagents: tool_subagent::defaults(),
            agents: Vec::new(),
            tools: None,
            private: Vec::new(),
            protected: Vec::new(),
            tmp: Tmp::Private,
            network: Network::Denied,
            helper: None,
            models: llm_genai::Config::default(),
            script: None,
        }
    }

    /// What a configuration says, for what was found around the program.
    pub fn configured(boot: &Boot, config: &Config) -> Self {
        Self {
            policies: Policies {
                sandbox: config.sandbox.value,
                approval: config.approval.value,
                limits: config.limits(),
            },
            presets: config.presets(),
            subagents: config.subagents.iter().map(|row| row.config.clone()).collect(),
            agents: config.agents.iter().map(|agent| agents::configured(agent, boot)).collect(),
            tools: config.tools.filter(),
            private: boot.private(),
            protected: config.protected.iter().map(|path| path.value.clone()).collect(),
            tmp: config.tmp.value,
            network: config.network.value,
            models: llm_genai::Config::from_lookup(|name| boot.env.get(name)),
            script: config.script.value.clone(),
            ..Self::new(&boot.places.home)
        }
    }

    /// What the fences around files have in common, and every other enforcer takes its boundary from.
    pub fn fence(&self) -> fs_sandbox::Config {
        // The sessions by their own name too: they may be kept on another disk.
        let own = [self.home.join("sessions"), self.home.clone()];
        let private = self.private.iter().cloned().chain(own).collect();
        // Nor what other sessions have in their temporary directories, and what is kept of their output.
        let protected = self.protected.iter().cloned().chain(scratch::places()).collect();
        fs_sandbox::Config { private, protected, tmp: temporary(self.tmp) }
    }
}

/// The smallest app that runs an agent and lets it delegate: sessions, agents, the loop, policy, children. No tools, no
/// store, and no model but those that the caller registers.
pub fn spine(policies: Policies) -> Plugins {
    let Policies { sandbox, approval, limits } = policies;
    Plugins::new()
        .with(session::SessionsPlugin, ())
        .with(agent::AgentsPlugin, ())
        .with(agent_loop::AgentLoop, ())
        .with(sandbox_policy::SandboxPolicyPlugin, sandbox_policy::Config { default: sandbox })
        .with(user_approval::UserApprovalPlugin, user_approval::Config { default: approval })
        .with(jobs::JobsPlugin, jobs::Config::default())
        .with(subagent::SubagentPlugin, subagent::Config { limits })
        .with(subagent_spawn::Spawn, ())
        .with(subagent_fork::Fork, ())
}

/// The whole app: the spine, presets, a store on disk, models, file tools behind their fence, the delegation tools, and,
/// with a [`Helper`], commands that the kernel confines.
pub fn full(settings: Settings) -> Plugins {
    let fence = settings.fence();
    let plugins = spine(settings.policies)
        .with(commands::CommandsPlugin, ())
        .with(permission::PermissionPlugin, permission::Config { presets: settings.presets })
        .with(DefaultPrompt, ())
        .with(session_jsonl::SessionJsonl, session_jsonl::Config { dir: settings.home.join("sessions") })
        .with(llm_genai::LlmGenai, settings.models)
        .with(llm_script::LlmScript, llm_script::Config { file: settings.script })
        .with(temporary::Apart, ())
        .with(fs_sandbox::FsSandboxPlugin, fence)
        .with(tool_fs::FsTools, tool_fs::Config::default());
    let plugins = match settings.helper {
        Some(helper) => {
            let agents = agents::held_by(settings.agents, &helper);
            with_commands(plugins, &helper, settings.network, settings.tmp).with(subagent_acp::SubagentAcp, agents)
        }
        None => plugins,
    };
    plugins
        .with(tool_subagent::SubagentTools, settings.subagents)
        .with(tool_jobs::JobTools, ())
        .with(DeploymentTools, settings.tools)
}

fn with_commands(plugins: Plugins, helper: &Helper, network: Network, tmp: Tmp) -> Plugins {
    let temporary = match tmp {
        Tmp::Private => shell::Temporary::Private,
        Tmp::Shared => shell::Temporary::Shared,
    };
    let (network, helper) = (Some(network), Some(helper.path()));
    let commands = tool_bash::Config { network, temporary, helper: helper.clone(), ..tool_bash::Config::default() };
    plugins.with(sandbox_linux::SandboxLinux, sandbox_linux::Config { helper }).with(tool_bash::BashTool, commands)
}

fn temporary(tmp: Tmp) -> fs_sandbox::Tmp {
    match tmp {
        Tmp::Private => fs_sandbox::Tmp::Private,
        Tmp::Shared => fs_sandbox::Tmp::Shared,
    }
}
