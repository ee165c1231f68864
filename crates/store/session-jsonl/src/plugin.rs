use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};
use serde::Deserialize;
use session_store::SessionStore;

use crate::JsonlStore;

/// Provides a [`JsonlStore`] as `dyn SessionStore`, and closes it with the app.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionJsonl;

/// Where sessions are kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The directory. Made when the first session is created.
    pub dir: PathBuf,
}

#[async_trait]
impl Plugin for SessionJsonl {
    type Config = Config;

    fn name(&self) -> &'static str {
        "session-jsonl"
    }

    async fn apply(&self, ctx: &Ctx, Config { dir }: Config) -> Result<(), BoxError> {
        let store = Arc::new(JsonlStore::new(dir));
        let closing = store.clone();
        // Before it is provided, so that it is closed after nobody can find it.
        ctx.on_close("join the session store's threads", move || async move {
            closing.close().await;
            Ok(())
        })?;
        ctx.provide::<dyn SessionStore>(store)?;
        Ok(())
    }
}
