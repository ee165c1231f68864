//! The adapter to real model APIs, over HTTP.
//!
//! *Owns:* five providers (`deepseek`, `openai` and its look-alikes, `anthropic`, `gemini`, `ollama`), their keys and
//! addresses, what each API wants a conversation to look like, timeouts, retries, errors in one line without a key.
//! *Never:* the environment, a file, a session, a word that the model said once it was passed on, a type of the HTTP
//! library in its interface.
//!
//! Nothing is built before the first request: an app that never asks a model pays five registrations.
//!
//! ```
//! # use context::{Plugins, Scope}; use llm_genai::{Config, LlmGenai};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let variables = [("OPENAI_API_KEY", "sk-1"), ("OLLAMA_HOST", "127.0.0.1:11434")];
//! let look_up = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
//! let config = Config::from_lookup(look_up);
//! let usable: Vec<_> = config.providers_with_key().iter().map(|route| route.provider.to_string()).collect();
//! assert_eq!(usable, ["openai", "ollama"]);
//! assert!(!format!("{config:?}").contains("sk-1"));
//!
//! let app = Scope::root("app");
//! Plugins::new().with(LlmGenai, config).start(&app).await?;
//! let adapters = app.realm().all_named::<dyn llm::LlmAdapter>();
//! assert_eq!(adapters.len(), 5);
//! # app.close().await?; Ok(()) }
//! ```

mod adapter;
mod calls;
mod client;
mod config;
mod decode;
mod error;
mod exchange;
mod frames;
mod provider;
mod request;
mod retry;

use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};
use llm::LlmAdapter;

use crate::adapter::Adapter;
use crate::provider::Provider;

pub use config::{Access, Config, Proxies, Secret};

/// Registers an adapter for each provider, whether it has a key or not: one without says which variable to set.
pub struct LlmGenai;

#[async_trait]
impl Plugin for LlmGenai {
    type Config = Config;

    fn name(&self) -> &'static str {
        "llm-genai"
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let config = Arc::new(config);
        for provider in Provider::ALL {
            let adapter: Arc<dyn LlmAdapter> = Arc::new(Adapter::new(provider, config.clone()));
            ctx.register(provider.name(), adapter)?;
        }
        Ok(())
    }
}
