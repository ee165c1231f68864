//! A start that leaves nothing half-started, and says which line was wrong.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use app_boot::{Config, StartError, denied_in_vain, start};
use async_trait::async_trait;
use bundle::Settings;
use context::{BoxError, Ctx, Need, Plugin, Plugins, Registration, Scope};
use subagent::{Start, StartError as NoChild, Started, SubagentProvider, Subagents};
use tools::{Tool, ToolFilter};

use crate::world::{PROJECTS, USERS, World};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("done before the deadline")
}

async fn started(world: &World, more: impl FnOnce(Plugins) -> Plugins) -> Result<Scope, StartError> {
    let (boot, config) = (world.boot(), world.load().unwrap());
    within(start("app", more(bundle::full(Settings::configured(&boot, &config))), &config)).await
}

/// Every error of a start that is refused, without the directory's name.
async fn refused(world: &World) -> Vec<String> {
    match started(world, |plugins| plugins).await {
        Ok(_) => panic!("it started"),
        Err(StartError::Unsettled(errors)) => errors.iter().map(|error| world.normal(&error.to_string())).collect(),
        Err(StartError::Plugin(error)) => panic!("no line is named: {error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_and_not_there() {
    let row = "[[subagent]]\ntool = 'a'\nprovider = ";
    let cases = [
        (format!("\n{row}'spwn'"), 2, "no subagent provider named `spwn`; there are: spawn, fork"),
        (format!("{row}'spawn'\nmodel = 'opneai/gpt-5'"), 1, "no model provider named `opneai`"),
        (format!("{row}'spawn'\ntools = {{ deny = ['writ'] }}"), 4, "no tool named `writ`; there are: a, edit, "),
        (format!("{row}'spawn'\ntools = {{ allow = [\n'read',\n'x'] }}"), 6, "no tool named `x`"),
        ("[tools]\ndeny = ['bsh']".to_owned(), 2, "no tool named `bsh`"),
        ("[tools]\nallow = [\n'read',\n'rite']".to_owned(), 4, "no tool named `rite`"),
        ("[[subagent]]\ntool = 'read'\nprovider = 'spawn'".to_owned(), 1, "there is another tool named `read`"),
        ("[[subagent]]\ntool = 'job_list'\nprovider = 'spawn'".to_owned(), 1, "there is another tool named `job_list`"),
        ("[[subagent]]\ntool = 'job_kill'\nprovider = 'spawn'".to_owned(), 1, "there is another tool named `job_kill`"),
        ("[tools]\ndeny = ['submit_result']".to_owned(), 2, "`submit_result` can be neither allowed nor denied"),
        (
            format!("{row}'spawn'\ntools = {{ deny = ['submit_result'] }}"),
            4,
            "a child that is asked for a result has it",
        ),
        (
            "\n[offline]\nscript = '/nowhere/x'".to_owned(),
            3,
            "`offline.script`: cannot read the replies in /nowhere/x: No such",
        ),
    ];
    for (text, line, part) in cases {
        let wrong = refused(&World::of(&text, "")).await;
        let [told] = &wrong[..] else { panic!("{text}: {wrong:#?}") };
        assert!(told.starts_with(&format!("{USERS}:{line}: ")) && told.contains(part), "{told}\nshould say: {part}");
    }
    let wrong = refused(&World::of("[tools]\ndeny = ['a-tool']", "[tools]\nallow = ['b-tool']")).await;
    assert!(wrong[0].starts_with(&format!("{USERS}:2: ")) && wrong[1].starts_with(&format!("{PROJECTS}:2: ")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_project_denies_need_not_be_there() {
    for (denied, told) in [
        ("['edit', 'fetch', 'x', 'y']", Some("3: no tool named `fetch` (and 2 more), so nothing is denied by that")),
        ("['fetch']", Some("3: no tool named `fetch`, so nothing is denied by that")),
        ("['edit']", None),
    ] {
        let world = World::of("", &format!("\n[tools]\ndeny = {denied}"));
        let app = started(&world, |plugins| plugins).await.unwrap();
        let note = denied_in_vain(app.realm(), &world.load().unwrap()).map(|note| world.normal(&note));
        assert_eq!(note, told.map(|told| format!("{PROJECTS}:{told}")));
        within(app.close()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_a_variable_names_is_told_with_it() {
    let world = World::new().set("TETHER_OFFLINE_SCRIPT", "/nowhere/x");
    let wrong = refused(&world).await;
    assert!(wrong[0].starts_with("$TETHER_OFFLINE_SCRIPT: cannot read the replies in /nowhere/x"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_sound_has_what_it_was_configured_with() {
    let user =
        "[[subagent]]\ntool = 'reviewer'\nprovider = 'fork'\ntools = { deny = ['write'] }\n[tools]\ndeny = ['edit']";
    let app = started(&World::of(user, "[tools]\nallow = ['read', 'edit']"), |plugins| plugins).await.unwrap();
    let tools: Vec<_> = app.realm().all_named::<dyn Tool>().into_iter().map(|(name, _)| name).collect();
    assert!(tools.iter().any(|name| &**name == "reviewer") && !tools.iter().any(|name| &**name == "subagent"));
    let filters = app.realm().all_named::<ToolFilter>();
    let [(name, filter)] = &filters[..] else { panic!("one filter") };
    assert_eq!(
        (&**name, filter.admits("read"), filter.admits("edit"), filter.admits("write")),
        ("deployment", true, false, false)
    );
    within(app.close()).await.unwrap();
}

/// A provider that honours nothing.
struct Plain;

#[async_trait]
impl SubagentProvider for Plain {
    fn inherits_parent_context(&self) -> bool {
        false
    }

    async fn start(&self, _: Start) -> Result<Started, NoChild> {
        Err(NoChild::ParentClosing)
    }
}

#[async_trait]
impl Plugin for Plain {
    type Config = ();

    fn name(&self) -> &'static str {
        "plain"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Subagents>()]
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        let subagents = ctx.get::<Subagents>().ok_or("no `Subagents`")?;
        Ok(ctx.own(subagents.register("plain", Arc::new(Plain))?)?)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_do_what_a_row_asks() {
    let row = "[[subagent]]\ntool = 'a'\nprovider = 'plain'\n";
    for (asked, told) in [
        ("", None),
        ("persona = 'x'", Some("`plain` does not support a persona")),
        ("tools = { deny = ['read'] }", Some("`plain` does not support a tool filter")),
        ("max_depth = 1", Some("`plain` does not support a limit of depth")),
        ("output_schema = { type = 'object' }", Some("`plain` does not support an output schema")),
    ] {
        let world = World::of(&format!("{row}{asked}"), "");
        let outcome = started(&world, |plugins| plugins.with(Plain, ())).await;
        let outcome = outcome.map_err(|error| world.normal(&error.to_string()));
        assert_eq!(outcome.err(), told.map(|told| format!("{USERS}:1: {told}")), "{asked}");
    }
}

/// Holds something for as long as the app lives, and may need what nobody has.
struct Holder {
    gone: Arc<AtomicBool>,
    needs: bool,
    fails: bool,
}

#[async_trait]
impl Plugin for Holder {
    type Config = ();

    fn name(&self) -> &'static str {
        "holder"
    }

    fn needs(&self) -> Vec<Need> {
        if self.needs { vec![Need::of::<Holder>()] } else { Vec::new() }
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        let gone = self.gone.clone();
        ctx.own(Registration::new(move || gone.store(true, Ordering::Release)))?;
        if self.fails { Err("it will not".into()) } else { Ok(()) }
    }
}

fn holder(gone: &Arc<AtomicBool>) -> Holder {
    Holder { gone: gone.clone(), needs: false, fails: false }
}

struct Lost;

#[async_trait]
impl Plugin for Lost {
    type Config = ();

    fn name(&self) -> &'static str {
        "lost"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Holder>()]
    }

    async fn apply(&self, _: &Ctx, (): ()) -> Result<(), BoxError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_half_started_is_left() {
    // One that never can start, one that fails, and one where the configuration is wrong.
    let gone = Arc::new(AtomicBool::new(false));
    let plugins = Plugins::new().with(holder(&gone), ()).with(Lost, ());
    let stuck = within(start("app", plugins, &Config::default())).await.err().unwrap().to_string();
    assert!(stuck.contains("the plugin `lost` needs") && stuck.contains("Holder"), "{stuck}");
    assert!(gone.load(Ordering::Acquire), "closed before the error is told");

    let gone = Arc::new(AtomicBool::new(false));
    let failing = Holder { fails: true, ..holder(&gone) };
    let failed = within(start("app", Plugins::new().with(failing, ()), &Config::default())).await.err().unwrap();
    assert_eq!(failed.to_string(), "the plugin `holder` could not start");
    assert!(gone.load(Ordering::Acquire));

    let gone = Arc::new(AtomicBool::new(false));
    let world = World::of("[tools]\ndeny = ['bsh']", "");
    let held = holder(&gone);
    started(&world, |plugins| plugins.with(held, ())).await.err().unwrap();
    assert!(gone.load(Ordering::Acquire));
}
