use std::sync::Arc;

use llm::Route;
use tokio_util::sync::CancellationToken;
use tools::ToolFilter;

use crate::{Capability, OutputSchema, Persona};

/// What is asked of a child. The working directory is not among it: the workspace root is the parent's, always.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The task.
    pub prompt: Arc<str>,
    /// A few words for people.
    pub label: Option<Arc<str>>,
    /// The parent's tool call that asks, by which front doors put the child's progress where it belongs.
    pub call: Option<Arc<str>>,
    /// Another model than the parent's.
    pub model: Option<Route>,
    /// Another limit of tokens a reply than the parent's.
    pub max_tokens: Option<u32>,
    /// A limit of depth below the deployment's. When a provider sees it, what holds for the parent is in it.
    pub max_depth: Option<u32>,
    /// Who the child is, instead of who the deployment says.
    pub persona: Option<Persona>,
    /// Which tools it may use, of those that its parent may. When a provider sees it, what holds for the parent is in it.
    pub tool_filter: Option<ToolFilter>,
    /// What its result must look like. It is handed in with a tool, and a child that does not do so fails.
    pub output_schema: Option<OutputSchema>,
    /// Cancels the start, and the child if there is one already.
    pub cancelled: CancellationToken,
}

impl Request {
    /// A task, and everything else as the parent has it.
    pub fn new(prompt: impl Into<Arc<str>>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }

    /// What a provider must offer to serve this.
    pub(crate) fn needs(&self) -> impl Iterator<Item = Capability> + use<> {
        let needs = [
            (self.output_schema.is_some(), Capability::OutputSchema),
            (self.max_depth.is_some(), Capability::DepthLimit),
            (self.tool_filter.is_some(), Capability::ToolFilter),
            (self.persona.is_some(), Capability::Persona),
        ];
        needs.into_iter().filter_map(|(asked, capability)| asked.then_some(capability))
    }
}
