use std::sync::{Arc, OnceLock};

use futures_util::stream;
use llm::{Chunk, LlmAdapter, LlmError, Reply, Request};

use crate::client::Client;
use crate::config::Config;
use crate::exchange::Exchange;
use crate::provider::Provider;

/// One provider.
pub(crate) struct Adapter(Arc<Backend>);

/// What the requests to a provider share.
pub(crate) struct Backend {
    pub(crate) provider: Provider,
    pub(crate) config: Arc<Config>,
    client: OnceLock<Client>,
}

impl Adapter {
    pub(crate) fn new(provider: Provider, config: Arc<Config>) -> Self {
        Self(Arc::new(Backend { provider, config, client: OnceLock::new() }))
    }
}

impl LlmAdapter for Adapter {
    fn reply(&self, request: Request) -> Reply {
        let exchange = Exchange::new(self.0.clone(), request);
        Box::pin(stream::unfold(Some(exchange), async |exchange| {
            let mut exchange = exchange?;
            let item = exchange.next().await;
            let more = match &item {
                Ok(Chunk::End(_)) | Err(_) => None,
                Ok(_) => Some(exchange),
            };
            Some((item, more))
        }))
    }

    fn takes_images(&self, model: &str) -> bool {
        self.0.provider.takes_images(model)
    }
}

impl Backend {
    /// The client, made when it is first wanted.
    pub(crate) fn client(&self) -> Result<&Client, LlmError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::build(self.provider, &self.config)?;
        Ok(self.client.get_or_init(|| client))
    }
}
