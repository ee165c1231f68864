//! `tether acp`: sessions for an editor.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use acp::{Host, House};
use anyhow::{Context as _, anyhow};
use app_boot::{Boot, Stops};
use async_trait::async_trait;
use bundle::{Helper, Settings};
use context::{BoxError, Scope};
use permission::Permission;
use session::{Session, Vocabulary};
use session_jsonl::JsonlStore;
use session_store::SessionStore;

use crate::cli::{Configuring, Switching};
use crate::config::root;
use crate::exit::{Exit, Failure};
use crate::opening::{Begins, known_preset, known_to_fail, route, switch};

pub(crate) fn acp(
    configuring: Configuring,
    switching: Switching,
    home: Option<PathBuf>,
    helper: Helper,
) -> Result<Exit, Failure> {
    let boot = configuring.boot(home)?;
    // An editor would only be told of it with the first session.
    let config = configuring.configure(&boot, &root(configuring.cwd.as_deref())?).map_err(Failure::usage)?;
    known_preset(&switching, &config.presets()).map_err(Failure::usage)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let editor = Editor { boot, configuring, switching, helper, kept: OnceLock::new() };
    let exit = runtime.block_on(serve(Arc::new(editor)));
    // Standard input may still be being read.
    runtime.shutdown_background();
    exit
}

async fn serve(editor: Arc<Editor>) -> Result<Exit, Failure> {
    let stops = Stops::listen(Exit::Interrupted.code().into()).map_err(Failure::failed)?;
    let server = Scope::root("acp");
    let mut serving = std::pin::pin!(acp::serve(&server, editor.clone(), tokio::io::stdin(), tokio::io::stdout()));
    let (served, exit) = tokio::select! {
        served = &mut serving => (served, Exit::Done),
        _ = stops.stopped() => {
            stops.end_for_certain(Exit::Interrupted.code().into()).map_err(Failure::failed)?;
            server.start_closing();
            (serving.await, Exit::Interrupted)
        }
    };
    let closed = server.close().await;
    if let Some((store, _)) = editor.kept.get() {
        store.close().await;
    }
    served.map_err(|broken| Failure::failed(anyhow!(broken)))?;
    closed.map_err(Failure::failed)?;
    Ok(exit)
}

/// What every session of the connection has in common.
struct Editor {
    boot: Boot,
    configuring: Configuring,
    switching: Switching,
    helper: Helper,
    /// Where sessions are listed and removed, once somebody wants that.
    kept: OnceLock<(Arc<JsonlStore>, Arc<Vocabulary>)>,
}

#[async_trait]
impl Host for Editor {
    async fn house(&self, root: &Path) -> Result<House, BoxError> {
        let config = self.configuring.configure(&self.boot, root)?;
        let settings = Settings { helper: Some(self.helper.clone()), ..Settings::configured(&self.boot, &config) };
        let model = route(&self.configuring, None, &config, &settings)?;
        let mut models = settings.models.providers_with_key();
        models.retain(|other| *other != model);
        models.insert(0, model.clone());
        let known = known_to_fail(&model, &settings);
        let app = app_boot::start("tether", bundle::full(settings), &config).await?;
        let usable = match known {
            Some(why) => Err(why.into()),
            None => model.adapter(app.realm()).map(drop).map_err(BoxError::from),
        };
        match usable {
            Ok(()) => {
                app.provide(Arc::new(config))?;
                Ok(House { app, model, models })
            }
            Err(why) => {
                // What keeps the session from beginning is what matters.
                let _ = app.close().await;
                Err(why)
            }
        }
    }

    fn begin(&self, house: &House, session: &Session) -> Result<(), BoxError> {
        let config = house.app.get::<app_boot::Config>().context("the app has no configuration")?;
        let permission = house.app.get::<Permission>().context("the app has no permission presets")?;
        known_preset(&self.switching, permission.presets())?;
        Ok(switch(session, &self.switching, Begins::Now, &config, &permission)?)
    }

    fn store(&self) -> (Arc<dyn SessionStore>, Arc<Vocabulary>) {
        let (store, vocabulary) = self.kept.get_or_init(|| {
            let store = JsonlStore::new(self.boot.places.home.join("sessions"));
            (Arc::new(store), bundle::sessions().vocabulary())
        });
        (store.clone(), vocabulary.clone())
    }
}
