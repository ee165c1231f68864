//! Several commands in one workspace.

use std::fs;
use std::time::Duration;

use context::Scope;
use sandbox::{CommandLine, Mode, SandboxProvider};
use subprocess::{Environment, Process, Spawn, Streams};

use crate::attacks::{Tier, usable};
use crate::runs::{confined, confinement, sh};
use crate::who::Who;
use crate::yard::{Home, Yard};

/// What a command tries once another one, which had put placeholders there, has ended; and what may not be there then.
const PLANTS: [(&str, &[&str]); 2] = [
    (
        "rm -rf .git; mkdir -p .git/hooks; echo x > .git/HEAD; echo x > .git/hooks/pre-commit; echo x > .tether/new",
        &[".git", ".tether"],
    ),
    (
        "mkdir evil; echo ../evil > .git/commondir; rm -f .git/commondir; mv evil .git/commondir; chmod 555 .git",
        &[".git/commondir", ".git/modules", ".tether"],
    ),
];

/// A placeholder that one command put there holds another one that found it there; it goes with the last.
#[test]
fn what_was_put_there_stays_until_the_last_command_ends() {
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        for (who, (plant, none)) in Who::all().iter().flat_map(|who| PLANTS.map(|plant| (who, plant))) {
            let yard = Yard::new(*who, Home::Outside);
            if none.contains(&".git") {
                fs::remove_dir_all(yard.root.join(".git")).unwrap();
            }
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let _inside = runtime.enter();
            let scope = Scope::root("test");
            let script = format!("echo ready; until [ -e go ]; do sleep 0.01; done; {plant}; echo tried");
            let argv = sh(&script);
            let command = CommandLine { argv: &argv, cwd: &yard.root };
            let (first, second) = runtime.block_on(async {
                let start = || {
                    let launch = sandbox.confine(&command, &confinement(&yard, Mode::WorkspaceWrite)).unwrap();
                    let spawn = Spawn {
                        program: launch.program,
                        args: who.step_down(launch.args),
                        plan: launch.plan,
                        cwd: yard.root.clone(),
                        env: Environment::inherited(),
                        streams: Streams::Captured,
                    };
                    Process::spawn(&scope, spawn).unwrap()
                };
                let mut first = start();
                assert!(first.output().await.is_some());
                let mut second = start();
                assert!(second.output().await.is_some());
                (first, second)
            });
            // The one that put them there ends, the other goes on.
            runtime.block_on(async {
                let mut first = first;
                first.kill();
                first.wait().await;
            });
            assert!(none.iter().all(|name| yard.root.join(name).exists()));
            fs::write(yard.root.join("go"), "").unwrap();
            let text = runtime.block_on(async {
                let mut second = second;
                let mut said = Vec::new();
                let reading = async {
                    while let Some(piece) = second.output().await {
                        said.extend(piece);
                    }
                    second.wait().await
                };
                tokio::time::timeout(Duration::from_secs(60), reading).await.expect("it takes too long");
                String::from_utf8(said).unwrap()
            });
            assert!(text.ends_with("tried\n"), "{text}");
            assert!(none.iter().all(|name| !yard.root.join(name).exists()), "{text}");
            runtime.block_on(scope.close()).unwrap();
        }
    }
}

/// Many at once, of which each finds the placeholders of some others.
#[test]
fn commands_at_once_leave_nothing() {
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        let yard = Yard::new(Who::Self_, Home::Outside);
        fs::remove_dir_all(yard.root.join(".git")).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let script = "mkdir -p .git/hooks; echo x > .git/HEAD; rmdir .git .tether; echo tried";
                        let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
                        assert!(ran.output.text.ends_with("tried\n"), "{ran:?}");
                    }
                });
            }
        });
        let left: Vec<_> = fs::read_dir(&yard.root).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert!(
            !left.contains(&".git".into()) && !left.contains(&".tether".into()) && !left.contains(&"x".into()),
            "{left:?}"
        );
    }
}
