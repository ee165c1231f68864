//! What a command sees of the environment.

use sandbox::Mode;
use shell::{ConfinedShell, Parts};
use subprocess::Environment;

use crate::world::*;

// D-65
#[tokio::test]
async fn nothing_secret_and_nobody_at_a_terminal() {
    let world = World::new(Mode::DangerFullAccess);
    let secrets = (0..40).map(|n| (format!("SERVICE_{n}_API_KEY"), "hunter2".to_owned()));
    let usual = [("PATH", std::env::var("PATH").unwrap()), ("PAGER", "less".into()), ("TERM", "xterm".into())];
    let all = secrets.chain(usual.map(|(name, value)| (name.to_owned(), value)));
    let env =
        Environment::allowed(all.map(|(name, value)| (name.into(), value.into()))).with("NAMED", "by the operator");
    let parts = Parts { env, ..world.parts(None) };
    let shell = ConfinedShell::open(&world.agent, parts).unwrap();
    let seen = said(&shell, line("env")).await;
    assert!(!seen.contains("hunter2") && !seen.contains("API_KEY"), "{seen}");
    for want in [
        "PAGER=cat",
        "GIT_PAGER=cat",
        "MANPAGER=cat",
        "GIT_EDITOR=true",
        "GIT_TERMINAL_PROMPT=0",
        "NO_COLOR=1",
        "TERM=dumb",
        "NAMED=by the operator",
    ] {
        assert!(seen.lines().any(|line| line == want), "{want}: {seen}");
    }
    world.close().await;
}

#[tokio::test]
async fn it_reads_nothing() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    assert_eq!(said(&shell, line("cat; read x; [ -t 0 ] || [ -t 1 ] || echo nobody")).await, "nobody");
    world.close().await;
}
