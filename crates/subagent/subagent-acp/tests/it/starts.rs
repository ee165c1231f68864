//! Starts that fail, each with what was wrong, and without a process that is left.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use llm::Route;
use sandbox::Mode;
use subagent::{Doing, Request, StartError};
use subagent_acp::Config;
use subagent_subprocess::Settings;

use crate::world::{NAME, World, prompt};

#[track_caller]
fn says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
    assert!(error.len() < 4_500 && !error.contains('\n'), "{error}");
}

async fn refused(manner: &str, parts: &[&str]) {
    let world = World::new(manner).await;
    let parent = world.parent(None).await;
    let error = world.refused(&parent).await;
    says(&error, parts);
    assert!(error.starts_with("`stub` failed to start a child: "), "{error}");
    drop(parent);
    world.close().await;
}

// D-64
#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_before_the_session_is_open_fails_the_start() {
    refused("version-2", &["initialize", "version"]).await;
    refused("no-version", &["initialize", "rotocol"]).await;
    refused("refuse-initialize", &["`initialize` failed: Internal error: it rains"]).await;
    refused("exit-initialize", &["before it had answered `initialize`; it exited with code 7"]).await;
    refused("refuse-new", &["`session/new` failed: log in first"]).await;
    refused("exit-new", &["before it had answered `session/new`; it exited with code 3"]).await;
    refused("closes", &["before it had answered `session/new`"]).await;
    refused("garbage", &["what is no frame", "1001"]).await;
    refused("huge", &["a frame of more than 16777216 bytes"]).await;
}

// D-64
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_hangs_in_its_start_is_not_waited_for() {
    for (manner, stage) in [("hang-initialize", "`initialize`"), ("hang-new", "`session/new`")] {
        let hasty = |config: Config| Config { patience: Duration::from_millis(300), ..config };
        let world = World::with(manner, |config, _| hasty(config)).await;
        let parent = world.parent(None).await;
        says(&world.refused(&parent).await, &[stage, "within 0.3 s"]);
        drop(parent);
        world.close().await;
    }
}

// D-66
#[tokio::test(flavor = "multi_thread")]
async fn what_a_child_complains_is_told_without_what_is_secret() {
    let secret = |mut config: Config| {
        config.settings.env.push(("STUB_TOKEN".into(), "tok-5ecret".into()));
        config
    };
    let world = World::with("exit-initialize", |config, _| secret(config)).await;
    let parent = world.parent(None).await;
    let error = world.refused(&parent).await;
    says(&error, &["cannot log in with […]"]);
    let home = format!("HOME={}", std::env::var("HOME").unwrap_or_default());
    for part in ["tok-5ecret", "jsonrpc", &home] {
        assert!(!error.contains(part), "{part} is in: {error}");
    }
    drop(parent);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn auth_and_mode_are_what_is_configured() {
    type Edit = fn(Config) -> Config;
    let table: [(Edit, Option<&str>); 5] = [
        (|config| Config { auth: Some("key".into()), session_mode: Some("code".into()), ..config }, None),
        (|config| Config { auth: Some("card".into()), ..config }, Some("no way `card` to authenticate; it has: key")),
        (|config| Config { session_mode: Some("yolo".into()), ..config }, Some("no mode `yolo`; it has: plan, code")),
        (
            |config| Config { session_mode: Some("plan".into()), ..config },
            Some("`session/set_mode` failed: no such mode"),
        ),
        (|config| config, None),
    ];
    for (edit, wrong) in table {
        let world = World::with("", |config, _| edit(config)).await;
        let parent = world.parent(None).await;
        match wrong {
            None => assert_eq!(world.child(&parent, "say hello").await.text(), "hello"),
            Some(wrong) => says(&world.refused(&parent).await, &[wrong]),
        }
        drop(parent);
        world.close().await;
    }
}

// D-60
#[tokio::test(flavor = "multi_thread")]
async fn nothing_can_be_asked_of_a_start_but_its_task() {
    let world = World::new("").await;
    let parent = world.parent(None).await;
    let provider = world.subagents.providers().get(NAME).unwrap();
    assert_eq!((provider.offers(), provider.inherits_parent_context()), (&[][..], false));
    let model = Request { model: Some(Route::new("nobody", "nothing")), ..prompt("say x") };
    let refused = world.start(&parent, model).await;
    assert!(matches!(refused, Err(StartError::Model(_))), "{refused:?}");
    let capped = world.start(&parent, Request { max_tokens: Some(7), ..prompt("say x") }).await.unwrap_err();
    says(&capped.to_string(), &["a limit of tokens cannot be chosen"]);
    let shallow = world.start(&parent, Request { max_depth: Some(2), ..prompt("say x") }).await;
    assert!(matches!(shallow, Err(StartError::Unsupported { .. })), "{shallow:?}");
    drop(parent);
    world.close().await;
}

// D-60
#[tokio::test(flavor = "multi_thread")]
async fn the_directory_is_the_parents_or_what_is_configured() {
    let world = World::new("").await;
    assert_eq!(world.does("where").await.text(), world.at("ws").to_str().unwrap());
    world.close().await;
    let cwd = |mut config: Config, cwd| {
        config.settings.cwd = Some(cwd);
        config
    };
    let world = World::with("", |config, top| cwd(config, top.join("outside"))).await;
    assert_eq!(world.does("where").await.text(), world.at("outside").to_str().unwrap());
    world.close().await;
    for wrong in ["nowhere", "file", "closed"] {
        let world = World::with("", |config, top| {
            fs::write(top.join("file"), "").unwrap();
            fs::create_dir(top.join("closed")).unwrap();
            fs::set_permissions(top.join("closed"), Permissions::from_mode(0o000)).unwrap();
            cwd(config, top.join(wrong))
        })
        .await;
        let is_root = rustix::process::geteuid().is_root();
        let parent = world.parent(None).await;
        if !(wrong == "closed" && is_root) {
            says(&world.refused(&parent).await, &["cannot run in", wrong]);
        }
        drop(parent);
        world.close().await;
    }
    let gone = World::new("").await;
    let parent = gone.parent(None).await;
    fs::remove_dir(gone.at("ws")).unwrap();
    says(&gone.refused(&parent).await, &["cannot run in", "/ws"]);
    drop(parent);
    gone.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_is_told() {
    for (command, says_what) in [("no-such-agent-5", "no program no-such-agent-5"), ("/no/such", "/no/such")] {
        let world = World::with("", |config, _| {
            let settings = Settings { command: OsString::from(command), ..config.settings };
            Config { settings, ..config }
        })
        .await;
        let parent = world.parent(None).await;
        says(&world.refused(&parent).await, &[says_what]);
        drop(parent);
        world.close().await;
    }
    let relative = World::made(
        "",
        |config, _| Config { settings: Settings { command: "bin/agent".into(), ..config.settings }, ..config },
        |plugins, _| plugins,
    );
    let error = relative.await.map(|_| ()).unwrap_err();
    says(&std::iter::successors(error.source(), |error| error.source()).last().unwrap().to_string(), &["bin/agent"]);
}

// D-22, D-64
#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_told_its_task_when_its_start_was_announced() {
    let world = World::new("").await;
    let parent = world.parent(None).await;
    let (says, said) = std::sync::mpsc::channel();
    let words = world.app.realm().on(move |progress: &subagent::ChildProgress| {
        if let Doing::Says(_) = progress.doing {
            let _ = says.send(());
        }
    });
    let (said, quiet) = (Mutex::new(said), Arc::<Mutex<Vec<bool>>>::default());
    let was_quiet = quiet.clone();
    // Whoever hears of a start slowly has heard of it before the child says anything.
    let hears = world.app.realm().on(move |_: &subagent::ChildStarted| {
        let early = said.lock().unwrap().recv_timeout(Duration::from_millis(300));
        was_quiet.lock().unwrap().push(early.is_err());
    });
    assert_eq!(world.child(&parent, "say hello").await.text(), "hello");
    assert_eq!(*quiet.lock().unwrap(), [true]);
    drop((hears, words, parent));
    world.close().await;
}

// D-62
#[tokio::test(flavor = "multi_thread")]
async fn a_mode_that_cannot_be_held_is_not_started_under() {
    let without =
        |name: &'static str| World::made("", |config, _| config, move |plugins, _| plugins.without(name).unwrap());
    for (name, why) in [("sandbox-linux", "no sandbox in this program"), ("fs-sandbox", "Tether's own")] {
        let world = without(name).await.unwrap();
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
            let parent = world.parent(Some(mode)).await;
            says(&world.refused(&parent).await, &[mode.as_str(), why, "confine"]);
            drop(parent);
        }
        for mode in [None, Some(Mode::DangerFullAccess)] {
            let parent = world.parent(mode).await;
            assert_eq!(world.child(&parent, "say open").await.text(), "open");
            drop(parent);
        }
        world.close().await;
    }
}
