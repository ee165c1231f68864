//! The Agent Client Protocol on standard input and output: an editor starts this and speaks to it.
//!
//! The whole composition of `bundle`, an app for each session, with a model that needs no account. What it keeps goes with it:
//! `tether acp` is the same over a configuration, with sessions that stay.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp::{Host, House};
use agent_spine_demo::SCRIPT;
use async_trait::async_trait;
use bundle::{Helper, Settings};
use context::{BoxError, Scope};
use sandbox::Mode;
use sandbox_policy::ModeSet;
use session::{Session, Vocabulary};
use session_jsonl::JsonlStore;
use session_store::SessionStore;

/// What every session has in common.
struct Demo {
    home: PathBuf,
    helper: Helper,
    store: Arc<JsonlStore>,
}

#[async_trait]
impl Host for Demo {
    async fn house(&self, _: &Path) -> Result<House, BoxError> {
        let (app, model) = (Scope::root("acp-demo"), SCRIPT.parse()?);
        let settings = Settings { helper: Some(self.helper.clone()), ..Settings::new(&self.home) };
        bundle::full(settings).start(&app).await?;
        Ok(House { app, models: vec![model], model: SCRIPT.parse()? })
    }

    fn begin(&self, _: &House, session: &Session) -> Result<(), BoxError> {
        session.append(ModeSet::by_user(Mode::WorkspaceWrite))?;
        Ok(())
    }

    fn store(&self) -> (Arc<dyn SessionStore>, Arc<Vocabulary>) {
        (self.store.clone(), bundle::sessions().vocabulary())
    }
}

fn main() -> Result<(), BoxError> {
    let helper = Helper::begin();
    let home = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let (server, store) = (Scope::root("server"), Arc::new(JsonlStore::new(home.path().join("sessions"))));
        let demo = Demo { home: home.path().to_owned(), helper, store: store.clone() };
        let served = acp::serve(&server, Arc::new(demo), tokio::io::stdin(), tokio::io::stdout()).await;
        server.close().await?;
        store.close().await;
        served
    });
    // Standard input may still be being read.
    runtime.shutdown_background();
    served
}
