use std::sync::Arc;

use llm::Route;
use subagent::{OutputSchema, Persona, Subagents};
use tools::ToolFilter;

/// Which tool delegates to which provider, and what its children are given.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the model calls it.
    pub tool: Arc<str>,
    /// Who runs the children.
    pub provider: Arc<str>,
    /// The children's model, if it is not their parent's.
    pub model: Option<Route>,
    /// Who the children are, if not who the deployment says.
    pub persona: Option<Persona>,
    /// Which tools the children may use, of those that their parent may.
    pub tools: Option<ToolFilter>,
    /// How deep the children may stand, below the deployment's limit.
    pub max_depth: Option<u32>,
    /// What their results must look like.
    pub output_schema: Option<OutputSchema>,
}

/// Tools delegate to providers that there are not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(.tools, .known))]
pub struct Unserved {
    /// The tools, each with the provider that it names.
    pub tools: Vec<(Arc<str>, Arc<str>)>,
    /// The providers that there are.
    pub known: Vec<Arc<str>>,
}

impl Config {
    /// A tool whose children have everything as their parent has it.
    pub fn new(tool: impl Into<Arc<str>>, provider: impl Into<Arc<str>>) -> Self {
        let (tool, provider) = (tool.into(), provider.into());
        Self { tool, provider, model: None, persona: None, tools: None, max_depth: None, output_schema: None }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new("subagent", "spawn")
    }
}

/// The tools of a deployment that says nothing of its own: `subagent`, whose children start fresh, and `subagent_fork`,
/// whose children know the conversation.
pub fn defaults() -> Vec<Config> {
    vec![Config::default(), Config::new("subagent_fork", "fork")]
}

/// Whether every tool has its provider now. A tool without one is not offered, which is no error: a front door that is
/// about to begin asks here.
pub fn check_served(subagents: &Subagents, configs: &[Config]) -> Result<(), Unserved> {
    let known: Vec<Arc<str>> = subagents.providers().list().into_iter().map(|(name, _)| name).collect();
    let lost = configs.iter().filter(|config| !known.contains(&config.provider));
    let tools: Vec<_> = lost.map(|config| (config.tool.clone(), config.provider.clone())).collect();
    if tools.is_empty() { Ok(()) } else { Err(Unserved { tools, known }) }
}

fn told(tools: &[(Arc<str>, Arc<str>)], known: &[Arc<str>]) -> String {
    let verb = |at: usize| if at == 0 { " delegates" } else { "" };
    let tool = |(at, (tool, provider)): (usize, &(Arc<str>, Arc<str>))| {
        format!("the tool `{tool}`{} to `{provider}`", verb(at))
    };
    let tools_told = tools.iter().enumerate().map(tool).collect::<Vec<_>>().join(" and ");
    let are = if tools.len() == 1 { "which is no provider" } else { "which are no providers" };
    match known {
        [] => format!("{tools_told}, {are}; there are none"),
        known => format!("{tools_told}, {are}; there are: {}", known.join(", ")),
    }
}
