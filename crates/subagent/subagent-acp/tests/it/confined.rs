//! The disk under a parent's override: the child tries by a tool of its own and by its shell.

use sandbox::{Mode, Network, Operation};
use sandbox_policy::ModeSet;
use subagent::{Doing, RunResult};
use subagent_acp::Config;
use subagent_subprocess::{Confine, Unconfined};

use crate::world::{World, prompt, within};

/// Both ways to write at a path, and what is there afterwards.
async fn tries(world: &World, mode: Option<Mode>, path: &str) -> ([RunResult; 2], [bool; 2]) {
    let parent = world.parent(mode).await;
    let (tool, shell) = (format!("{path}-tool"), format!("{path}-shell"));
    let by_tool = world.child(&parent, &format!("write {}", world.at(&tool).display())).await;
    let by_shell = world.child(&parent, &format!("sh echo x > '{}'", world.at(&shell).display())).await;
    within(parent.dispose()).await.unwrap();
    let there = [&tool, &shell].map(|path| world.read(path).is_some());
    ([by_tool, by_shell], there)
}

#[track_caller]
fn denied(results: &[RunResult; 2], mode: Mode, path: &str) {
    for result in results {
        let [denial] = &result.denials.list[..] else { panic!("{result:?}") };
        assert_eq!((denial.operation, denial.mode), (Operation::Write, mode));
        assert!(denial.target.contains(path), "{denial:?}");
    }
}

// D-32, D-62
#[tokio::test(flavor = "multi_thread")]
async fn read_only_writes_nothing_anywhere() {
    let world = World::new("").await;
    for path in ["ws/x", "outside/x", "state/x"] {
        let (results, there) = tries(&world, Some(Mode::ReadOnly), path).await;
        assert_eq!(there, [false, false], "{path}");
        denied(&results, Mode::ReadOnly, path);
    }
    let held = world.told().into_iter().find_map(|doing| if let Doing::Held(held) = doing { Some(held) } else { None });
    assert!(held.unwrap().starts_with("confined to read-only, network denied: "));
    world.close().await;
}

/// Its edits fail without a reason, and what its commands write comes apart and in pieces.
// D-32
#[tokio::test(flavor = "multi_thread")]
async fn what_a_terse_child_was_denied_is_found() {
    let world = World::new("terse").await;
    for path in ["ws/x", "outside/x"] {
        let (results, there) = tries(&world, Some(Mode::ReadOnly), path).await;
        assert_eq!(there, [false, false], "{path}");
        denied(&results, Mode::ReadOnly, path);
    }
    let (results, there) = tries(&world, Some(Mode::WorkspaceWrite), "ws/x").await;
    assert!(there == [true, true] && results.iter().all(|result| result.denials.is_empty()), "{results:?}");
    // What fails where it may write was not denied.
    std::fs::create_dir(world.at("ws/directory-tool")).unwrap();
    let (results, _) = tries(&world, Some(Mode::WorkspaceWrite), "ws/directory").await;
    assert!(results.iter().all(|result| result.denials.is_empty()), "{results:?}");
    world.close().await;
}

// D-62
#[tokio::test(flavor = "multi_thread")]
async fn workspace_write_lands_inside_and_nowhere_else() {
    let world = World::new("").await;
    let mode = Some(Mode::WorkspaceWrite);
    assert_eq!(tries(&world, mode, "ws/x").await.1, [true, true]);
    for path in ["outside/x", "home/x", "ws/.tether/x"] {
        let (results, there) = tries(&world, mode, path).await;
        assert_eq!(there, [false, false], "{path}");
        if path == "outside/x" {
            denied(&results, Mode::WorkspaceWrite, path);
        }
    }
    world.close().await;
}

// D-61, D-62
#[tokio::test(flavor = "multi_thread")]
async fn without_an_override_or_with_full_access_nothing_is_confined() {
    let world = World::new("").await;
    for (mode, path) in [(None, "outside/a"), (Some(Mode::DangerFullAccess), "outside/b")] {
        let (results, there) = tries(&world, mode, path).await;
        assert_eq!(there, [true, true], "{path}");
        assert!(results.iter().all(|result| result.denials.is_empty()));
    }
    world.close().await;
}

// D-03, D-62
#[tokio::test(flavor = "multi_thread")]
async fn what_holds_is_what_held_at_the_call() {
    let world = World::new("").await;
    for (first, then, lands) in
        [(Mode::ReadOnly, Mode::DangerFullAccess, false), (Mode::DangerFullAccess, Mode::ReadOnly, true)]
    {
        let parent = world.parent(Some(first)).await;
        let target = world.at(&format!("outside/{first}"));
        let starting =
            world.subagents.start(&parent, crate::world::NAME, prompt(&format!("write {}", target.display())));
        parent.session().append(ModeSet::by_user(then)).unwrap();
        let run = within(starting).await.unwrap();
        within(run.result()).await;
        within(run.dispose()).await.unwrap();
        assert_eq!(target.exists(), lands, "{first}, then {then}");
        drop(parent);
    }
    world.close().await;
}

// D-62
#[tokio::test(flavor = "multi_thread")]
async fn an_operators_choice_is_in_the_log_before_the_child_is_there() {
    let world = World::with("", |mut config, _| {
        config.settings.confine = Confine::None;
        config
    })
    .await;
    let parent = world.parent(Some(Mode::ReadOnly)).await;
    let result = world.child(&parent, &format!("write {}", world.at("outside/x").display())).await;
    assert!(world.read("outside/x").is_some() && result.denials.is_empty());
    let log = parent.session().snapshot();
    let said: Vec<_> = log.events_from(0).filter_map(|event| event.get::<Unconfined>().cloned()).collect();
    assert_eq!(said, [Unconfined { provider: "stub".into(), mode: Mode::ReadOnly, label: None }]);
    let unswitched = world.parent(None).await;
    world.child(&unswitched, "say x").await;
    let silent = unswitched.session().snapshot();
    assert_eq!(silent.events_from(0).filter_map(|event| event.get::<Unconfined>()).count(), 0, "nothing was waived");
    drop((parent, unswitched));
    world.close().await;
}

// D-62
#[tokio::test(flavor = "multi_thread")]
async fn the_agents_own_state_is_writable_and_nothing_else_becomes_so() {
    let world = World::with("", |mut config: Config, top| {
        config.settings.writable = vec![top.join("state")];
        config
    })
    .await;
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        assert_eq!(tries(&world, Some(mode), &format!("state/{mode}")).await.1, [true, true], "{mode}");
        assert_eq!(tries(&world, Some(mode), &format!("outside/{mode}")).await.1, [false, false], "{mode}");
    }
    assert_eq!(tries(&world, Some(Mode::ReadOnly), "ws/x").await.1, [false, false]);
    world.close().await;
}

// D-62
#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_directory_that_the_operator_names_is_the_agents() {
    let world = World::with("", |mut config: Config, top| {
        config.settings.writable = vec![top.join("state")];
        config.settings.env.push(("TMPDIR".into(), top.join("state").into()));
        config
    })
    .await;
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let parent = world.parent(Some(mode)).await;
        world.child(&parent, &format!("sh echo x > $TMPDIR/{mode}")).await;
        within(parent.dispose()).await.unwrap();
        assert!(world.read(&format!("state/{mode}")).is_some(), "{mode}");
    }
    world.close().await;
}

// D-62
#[tokio::test(flavor = "multi_thread")]
async fn an_exception_that_would_open_more_is_refused() {
    for (path, why) in [
        ("", "the session's directory is in it"),
        ("ws", "the session's directory is in it"),
        ("ws/sub", "inside the session's directory"),
        ("home", "Tether's own"),
        ("home/keys", "Tether's own"),
        ("gone", "which is to stay writable"),
    ] {
        let world = World::with("", |mut config, top| {
            std::fs::create_dir(top.join("ws/sub")).unwrap();
            std::fs::create_dir(top.join("home/keys")).unwrap();
            config.settings.writable = vec![top.join(path)];
            config
        })
        .await;
        let parent = world.parent(Some(Mode::ReadOnly)).await;
        let error = world.refused(&parent).await;
        assert!(error.contains(why), "{path}: {error}");
        drop(parent);
        world.close().await;
    }
}

// D-62
#[tokio::test(flavor = "multi_thread")]
async fn the_network_is_what_the_operator_says() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("sh bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached' 2>/dev/null; true");
    for (network, reached) in [(None, false), (Some(Network::Denied), false), (Some(Network::Allowed), true)] {
        let world = World::with("", |mut config, _| {
            config.settings.network = network;
            config
        })
        .await;
        let parent = world.parent(Some(Mode::ReadOnly)).await;
        let said = world.child(&parent, &script).await.text();
        assert_eq!(said.contains("reached"), reached, "{network:?}: {said}");
        drop(parent);
        world.close().await;
    }
}

// D-60, D-62
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_its_own_does_not_move_what_confines_it() {
    let world = World::with("", |mut config, top| {
        config.settings.cwd = Some(top.join("outside"));
        config
    })
    .await;
    let parent = world.parent(Some(Mode::WorkspaceWrite)).await;
    world.child(&parent, "sh echo x > here").await;
    world.child(&parent, "sh echo x > ../ws/there").await;
    assert_eq!((world.read("outside/here"), world.read("ws/there").as_deref()), (None, Some("x\n")));
    drop(parent);
    world.close().await;
}
