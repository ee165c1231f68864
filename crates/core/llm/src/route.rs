use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use context::Realm;
use serde::{Deserialize, Serialize};

use crate::LlmAdapter;

/// Which model serves, as in `anthropic/claude-sonnet`: an adapter's name, and the adapter's name for the model, which
/// may hold slashes of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Route {
    /// The adapter.
    pub provider: Arc<str>,
    /// The model, by the adapter's name for it.
    pub model: Arc<str>,
}

/// Not a route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a model: write it as provider/model, as in openai/gpt-5")]
pub struct RouteError(String);

/// No adapter is registered under this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no model provider named `{name}`; there are: {}", .known.join(", "))]
pub struct UnknownProvider {
    /// What the route says.
    pub name: Arc<str>,
    /// What is registered.
    pub known: Vec<String>,
}

impl Route {
    /// A route to a model of an adapter.
    pub fn new(provider: impl Into<Arc<str>>, model: impl Into<Arc<str>>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// The adapter that serves it, from the nearest realm that has one.
    pub fn adapter(&self, realm: &Realm) -> Result<Arc<dyn LlmAdapter>, UnknownProvider> {
        realm.named::<dyn LlmAdapter>(&self.provider).ok_or_else(|| UnknownProvider {
            name: self.provider.clone(),
            known: realm.all_named::<dyn LlmAdapter>().into_iter().map(|(name, _)| name.to_string()).collect(),
        })
    }
}

impl FromStr for Route {
    type Err = RouteError;
    fn from_str(text: &str) -> Result<Self, RouteError> {
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(Self::new(provider, model)),
            _ => Err(RouteError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Route {
    type Error = RouteError;
    fn try_from(text: String) -> Result<Self, RouteError> {
        text.parse()
    }
}

impl From<Route> for String {
    fn from(route: Route) -> Self {
        route.to_string()
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}
