//! Every run is held to the mode that is in force when it begins, or is not run.

use std::sync::Arc;

use sandbox::{Enforcement, Mode, Network, Temp, Workspace};
use shell::{ConfinedShell, Parts, Shell, ShellError, Temporary};
use subprocess::How;

use crate::world::*;

#[tokio::test]
async fn the_mode_is_asked_for_at_every_run_and_a_grant_widens_one() {
    let world = World::new(Mode::ReadOnly);
    let fake = Fake::new(Does::Holds);
    let shell = world.shell(Some(fake.clone()));
    let (a, b, out) = (world.top.join("ws/a"), world.top.join("ws/b"), world.top.join("out"));
    let outside = format!("echo x > {}", out.display());

    let denied = run(&shell, line("echo x > a")).await.unwrap();
    let said = denied.denial.expect("it failed, and the provider can show why").to_string();
    assert_eq!(said, format!("sandbox denied: write {} (mode read-only)", a.display()));
    assert_eq!((denied.mode, denied.enforcement), (Mode::ReadOnly, Some(Enforcement::Full)));

    let ran = granted(&shell, line("echo x > a"), Some(Mode::WorkspaceWrite)).await.unwrap();
    assert_eq!((ran.mode, ran.denial, ran.finished.how), (Mode::WorkspaceWrite, None, How::Exited(0)));
    let ran = granted(&shell, line(&outside), Some(Mode::WorkspaceWrite)).await.unwrap();
    assert_eq!(ran.denial.unwrap().mode, Mode::WorkspaceWrite, "it goes as far as it says");
    assert!(run(&shell, line("echo x > b")).await.unwrap().denial.is_some(), "and for one run");
    assert!(a.exists() && !b.exists() && !out.exists());

    *world.mode.0.lock().unwrap() = Mode::WorkspaceWrite;
    assert_eq!(shell.mode(), Mode::WorkspaceWrite);
    assert!(run(&shell, line("echo x > b")).await.unwrap().denial.is_none());
    let confined = fake.confined.lock().unwrap().len();
    *world.mode.0.lock().unwrap() = Mode::DangerFullAccess;
    let ran = granted(&shell, line(&outside), Some(Mode::WorkspaceWrite)).await.unwrap();
    assert_eq!((ran.mode, ran.enforcement), (Mode::DangerFullAccess, None), "a grant never narrows");
    assert!(b.exists() && out.exists());
    assert_eq!(fake.confined.lock().unwrap().len(), confined, "nothing is confined without need");
    world.close().await;
}

#[tokio::test]
async fn what_cannot_be_held_is_not_run() {
    let none = |why: &str| {
        let Ok(mut fake) = Arc::try_unwrap(Fake::new(Does::Holds)) else { unreachable!("it is new") };
        fake.enforcement = Enforcement::None(why.into());
        Arc::new(fake)
    };
    let table = [
        (None, "there is no sandbox in this program"),
        (Some(none("no namespaces")), "no namespaces"),
        (Some(Fake::new(Does::Refuses)), "the moon is full"),
    ];
    for (provider, why) in table {
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
            let world = World::new(mode);
            let shell = world.shell(provider.clone());
            let refused = run(&shell, line("touch ran")).await.unwrap_err();
            assert!(matches!(refused, ShellError::NotEnforceable(_)), "{refused}");
            let said = refused.to_string();
            assert!(said.starts_with("commands cannot be confined here") && said.contains(why), "{said}");
            assert!(!world.top.join("ws/ran").exists());
            granted(&shell, line("touch ran"), Some(Mode::DangerFullAccess)).await.unwrap();
            assert!(world.top.join("ws/ran").exists(), "full access needs nobody");
            world.close().await;
        }
    }
}

#[tokio::test]
async fn a_sandbox_that_does_not_start_is_no_failure_of_the_command_and_no_denial() {
    let world = World::new(Mode::WorkspaceWrite);
    let fake = Fake::new(Does::FailsToStart);
    let shell = world.shell(Some(fake.clone()));
    let refused = run(&shell, line("touch ran")).await.unwrap_err();
    assert!(matches!(refused, ShellError::SandboxFailed { .. }), "{refused}");
    assert!(refused.to_string().starts_with("the sandbox could not be started, so the command was not run: "));
    assert!(fake.asked.lock().unwrap().is_empty());

    let parts = Parts { helper: "/no/such/helper".into(), ..world.parts(None) };
    let shell = ConfinedShell::open(&world.agent, parts).unwrap();
    let refused = granted(&shell, line("touch ran"), Some(Mode::DangerFullAccess)).await.unwrap_err();
    assert!(matches!(refused, ShellError::Spawn(_)) && refused.to_string().contains("/no/such/helper"), "{refused}");
    assert!(!world.top.join("ws/ran").exists());
    world.close().await;
}

#[tokio::test]
async fn only_what_failed_by_itself_is_looked_into() {
    let world = World::new(Mode::WorkspaceWrite);
    let fake = Fake::new(Does::Holds);
    let shell = world.shell(Some(fake.clone()));
    let asked = || fake.asked.lock().unwrap().len();
    said(&shell, line("echo cannot write /etc/x")).await;
    assert_eq!(asked(), 0, "a command that ends well was denied nothing that matters");
    let ran = run(&shell, line("exit 3")).await.unwrap();
    assert_eq!((ran.finished.how, ran.denial, asked()), (How::Exited(3), None, 1));
    let ran = run(&shell, line("kill -SEGV $$")).await.unwrap();
    assert_eq!((ran.finished.how, ran.denial, asked()), (How::Signaled(11), None, 2));
    let slow = shell::Line { timeout: std::time::Duration::from_millis(100), ..line("sleep 1000") };
    assert!(run(&shell, slow).await.unwrap().finished.timed_out);
    assert_eq!(asked(), 2);
    run(&shell, line("head -c 1000000 /dev/zero | tr '\\0' 'é' ; exit 1")).await.unwrap();
    assert!(fake.asked.lock().unwrap()[2].len() <= 16 * 1024, "the end of it is enough");
    world.close().await;
}

#[tokio::test]
async fn the_network_is_the_modes_unless_configured() {
    let world = World::new(Mode::ReadOnly);
    for (configured, want) in
        [(None, Network::Denied), (Some(Network::Denied), Network::Denied), (Some(Network::Allowed), Network::Allowed)]
    {
        let fake = Fake::new(Does::Holds);
        let parts = Parts { network: configured, ..world.parts(Some(fake.clone())) };
        said(&ConfinedShell::open(&world.agent, parts).unwrap(), line("true")).await;
        assert_eq!(network(&fake), want);
    }
    world.close().await;
}

#[tokio::test]
async fn the_temporary_directory_is_writable_where_the_root_is() {
    let world = World::new(Mode::WorkspaceWrite);
    let (given, shared) = (world.top.join("given"), std::env::temp_dir());
    std::fs::create_dir(&given).unwrap();
    let root = world.top.join("ws");
    for (temporary, temp) in [(Temporary::Private, None), (Temporary::Private, Some(&given)), (Temporary::Shared, None)]
    {
        let fake = Fake::new(Does::Holds);
        let workspace = temp.iter().fold(Workspace::new(&root), Workspace::temp);
        let parts = Parts { workspace, temporary, ..world.parts(Some(fake.clone())) };
        let seen = said(&ConfinedShell::open(&world.agent, parts).unwrap(), line("echo $TMPDIR")).await;
        let (argv, _, confinement) = fake.confined.lock().unwrap().pop().unwrap();
        assert_eq!(argv[1..], ["-c", "--", "echo $TMPDIR"].map(std::ffi::OsString::from));
        assert_eq!(confinement.boundary.writable_roots(), [root.clone(), seen.clone().into()]);
        match (temporary, temp) {
            (Temporary::Private, None) => {
                assert!(std::path::Path::new(&seen).is_dir() && confinement.temp == Temp::Private(seen.into()));
            }
            (Temporary::Private, Some(given)) => assert_eq!(confinement.temp, Temp::Private(given.clone())),
            (Temporary::Shared, _) => {
                assert_eq!(confinement.temp, Temp::Shared(shared.clone()));
                let all = scratch::places().into_iter().find(|place| place.starts_with(&shared)).unwrap();
                let held = |it: &sandbox::Protected| it.path == all && it.extent == sandbox::Extent::Tree;
                assert!(confinement.boundary.protected().iter().any(held), "what sessions have there is held");
            }
        }
    }
    world.close().await;
}
