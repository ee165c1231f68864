use std::sync::Arc;

use async_trait::async_trait;
use context::{BootError, BoxError, Ctx, Need, Plugin, Plugins, Scope};

use crate::{Trace, in_time};

struct Store;
struct Index;
struct Server;

/// Provides `P`, and needs what it is told to.
struct Provides<P> {
    name: &'static str,
    needs: fn() -> Vec<Need>,
    service: fn() -> P,
}

#[async_trait]
impl<P: Send + Sync + 'static> Plugin for Provides<P> {
    type Config = Trace;

    fn name(&self) -> &'static str {
        self.name
    }

    fn needs(&self) -> Vec<Need> {
        (self.needs)()
    }

    async fn apply(&self, ctx: &Ctx, trace: Trace) -> Result<(), BoxError> {
        trace.note(format!("+{}", self.name));
        let name = self.name;
        ctx.on_close("note", async move || {
            trace.note(format!("-{name}"));
            Ok(())
        })?;
        ctx.provide(Arc::new((self.service)()))?;
        Ok(())
    }
}

const STORE: Provides<Store> = Provides { name: "store", needs: Vec::new, service: || Store };
const INDEX: Provides<Index> = Provides { name: "index", needs: || vec![Need::of::<Store>()], service: || Index };
const SERVER: Provides<Server> =
    Provides { name: "server", needs: || vec![Need::of::<Index>(), Need::of::<Store>()], service: || Server };

/// Registers something, and then refuses to start.
struct Refuses;

#[async_trait]
impl Plugin for Refuses {
    type Config = Trace;

    fn name(&self) -> &'static str {
        "refuses"
    }

    async fn apply(&self, ctx: &Ctx, trace: Trace) -> Result<(), BoxError> {
        ctx.own(trace.guard("-refuses"))?;
        Err("no key".into())
    }
}

#[tokio::test]
async fn a_plugin_waits_for_what_it_needs() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let list = Plugins::new().with(SERVER, trace.clone()).with(INDEX, trace.clone()).with(STORE, trace.clone());
    assert_eq!(list.names(), ["server", "index", "store"]);
    in_time(list.start(&app)).await.unwrap();
    assert_eq!(trace.take(), ["+store", "+index", "+server"]);
    assert!(app.get::<Server>().is_some(), "plugins publish into the app's realm");
    in_time(app.close()).await.unwrap();
    let mut closed = trace.take();
    closed.sort();
    assert_eq!(closed, ["-index", "-server", "-store"]);
    assert!(app.get::<Store>().is_none());
}

#[tokio::test]
async fn a_plugin_that_can_never_start_is_an_error_that_names_what_is_missing() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let list = Plugins::new().with(SERVER, trace.clone()).with(INDEX, trace.clone());
    let error = in_time(list.start(&app)).await.unwrap_err();
    let (store, index) = (std::any::type_name::<Store>(), std::any::type_name::<Index>());
    let message = format!("the plugin `server` needs {index}, {store}; the plugin `index` needs {store}");
    assert_eq!(error.to_string(), message);
    match error {
        BootError::Stuck(rows) => assert_eq!(rows, [("server", vec![index, store]), ("index", vec![store])]),
        other => panic!("{other:?}"),
    }
    assert_eq!(trace.take(), [""; 0]);
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn what_could_start_before_the_list_got_stuck_closes_with_the_app() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let stuck = Provides { name: "stuck", needs: || vec![Need::of::<Server>()], service: || 1_u32 };
    let list = Plugins::new().with(stuck, trace.clone()).with(STORE, trace.clone());
    assert!(matches!(in_time(list.start(&app)).await, Err(BootError::Stuck(rows)) if rows[0].0 == "stuck"));
    assert_eq!(trace.take(), ["+store"]);
    in_time(app.close()).await.unwrap();
    assert_eq!(trace.take(), ["-store"]);
}

#[tokio::test]
async fn a_name_is_listed_once() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let list = Plugins::new().with(STORE, trace.clone()).with(STORE, trace.clone());
    let error = in_time(list.start(&app)).await.unwrap_err();
    assert_eq!(error.to_string(), "the plugin `store` is listed twice");
    assert_eq!(trace.take(), [""; 0], "found before anything is applied");
}

#[tokio::test]
async fn a_row_can_be_taken_off_by_its_name() {
    let trace = Trace::default();
    let list = Plugins::new().with(STORE, trace.clone()).with(INDEX, trace.clone());
    let list = list.without("index").unwrap();
    assert_eq!(list.names(), ["store"]);
    let error = list.without("indx").err().unwrap();
    assert_eq!(error.to_string(), "no plugin named `indx`; there are: store");
}

#[tokio::test]
async fn a_plugin_that_refuses_is_named_and_leaves_nothing() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let list = Plugins::new().with(STORE, trace.clone()).with(Refuses, trace.clone()).with(INDEX, trace.clone());
    let error = in_time(list.start(&app)).await.unwrap_err();
    assert_eq!(error.to_string(), "the plugin `refuses` could not start");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no key");
    in_time(app.close()).await.unwrap();
    let mut happened = trace.take();
    happened.sort();
    assert_eq!(happened, ["+store", "-refuses", "-store"], "those behind it are not tried");
}

#[tokio::test]
async fn an_app_that_is_closing_starts_nothing() {
    let trace = Trace::default();
    let app = Scope::root("app");
    in_time(app.close()).await.unwrap();
    let error = in_time(Plugins::new().with(STORE, trace.clone()).start(&app)).await.unwrap_err();
    assert_eq!(error.to_string(), "the app is closing");
    assert_eq!(trace.take(), [""; 0]);
}

/// Takes its time to close.
struct Lingers(&'static str);

/// Notes when it begins to close and when it is done.
fn linger(ctx: &Ctx, name: &'static str, trace: Trace) {
    let lingering = async move || {
        trace.note(format!("closing {name}"));
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        trace.note(format!("closed {name}"));
        Ok(())
    };
    ctx.on_close("linger", lingering).unwrap();
}

#[async_trait]
impl Plugin for Lingers {
    type Config = Trace;

    fn name(&self) -> &'static str {
        self.0
    }

    async fn apply(&self, ctx: &Ctx, trace: Trace) -> Result<(), BoxError> {
        linger(ctx, self.0, trace);
        Ok(())
    }
}

#[tokio::test]
async fn plugins_close_one_after_the_other_and_after_what_came_later() {
    let (app, trace) = (Scope::root("app"), Trace::default());
    let plugins = Plugins::new().with(Lingers("store"), trace.clone()).with(Lingers("server"), trace.clone());
    plugins.start(&app).await.unwrap();
    let agent = app.child("agent").unwrap();
    linger(&agent, "agent", trace.clone());
    agent.leave();
    in_time(app.close()).await.unwrap();
    let one = |name| [format!("closing {name}"), format!("closed {name}")];
    assert_eq!(trace.take(), ["agent", "server", "store"].map(one).concat());
}
