use std::sync::Arc;

use context::{Plugins, Scope};
use session_jsonl::{Config, JsonlStore, SessionJsonl};
use session_store::{SessionStore, testing};
use tempfile::TempDir;

struct OnDisk(TempDir);

impl testing::Place for OnDisk {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(JsonlStore::new(self.0.path().join("a/b")))
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    testing::contract(|| OnDisk(tempfile::tempdir().expect("a temporary directory can be made"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_keeps_the_contract_on_many_threads() {
    testing::contract(|| OnDisk(tempfile::tempdir().expect("a temporary directory can be made"))).await;
}

#[tokio::test]
async fn the_plugin_provides_the_store_and_joins_its_threads() {
    let _deadline = super::Deadline::start();
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    let app = Scope::root("app");
    let config = Config { dir: home.path().join("sessions") };
    Plugins::new().with(SessionJsonl, config).start(&app).await.expect("it needs nothing");
    let store = app.get::<dyn SessionStore>().expect("it is provided");
    let sessions = session::Sessions::new();
    let session = sessions.create("/home/me/project");
    store.create(&session).await.expect("a new session can be kept");
    session.flush().await.expect("it can be written");
    app.close().await.expect("nothing fails");
    assert!(app.get::<dyn SessionStore>().is_none());
    super::title(&session, 1);
    let error = session.flush().await.expect_err("its threads are gone");
    assert!(error.to_string().contains("the session store is closed"), "{error}");
}
