//! Placeholders that commands need which know nothing of each other.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use context::Scope;
use rustix::process::geteuid;
use sandbox::{CommandLine, Confinement, Mode, Network, SandboxProvider, Temp, Workspace};
use sandbox_linux::LinuxSandbox;
use subprocess::{Environment, Process, Spawn, Streams};
use tokio::runtime::Runtime;

use crate::attacks::{Tier, usable};
use crate::runs::{confined, sh};
use crate::who::Who;
use crate::yard::{Home, Yard};

/// A command that runs until it is let go, and tries something then.
struct Waiting {
    process: Process,
    go: std::path::PathBuf,
}

struct Place<'a> {
    yard: &'a Yard,
    sandbox: &'a LinuxSandbox,
    scope: &'a Scope,
    runtime: &'a Runtime,
}

impl Place<'_> {
    /// Starts one in `root`, which is to try `plant`, and waits until it runs.
    fn start(&self, who: Who, root: &Path, name: &str, plant: &str) -> Waiting {
        let go = root.join(name);
        let script = format!("echo ready; until [ -e {name} ]; do sleep 0.01; done; {plant}; echo tried");
        let argv = sh(&script);
        let workspace = Workspace::new(root).temp(&self.yard.temp).home(self.yard.root.join("src/own"));
        let confinement = Confinement {
            boundary: workspace.boundary(Mode::WorkspaceWrite),
            network: Network::Denied,
            temp: Temp::Private(self.yard.temp.clone()),
        };
        let launch = self.sandbox.confine(&CommandLine { argv: &argv, cwd: root }, &confinement).unwrap();
        let spawn = Spawn {
            program: launch.program,
            args: who.step_down(launch.args),
            plan: launch.plan,
            cwd: root.to_owned(),
            env: Environment::inherited(),
            streams: Streams::Captured,
        };
        let _inside = self.runtime.enter();
        let mut process = Process::spawn(self.scope, spawn).unwrap();
        let said = self.within(async { process.output().await });
        assert_eq!(said.as_deref(), Some(&b"ready\n"[..]), "{name}");
        Waiting { process, go }
    }

    fn end(&self, mut command: Waiting) {
        fs::write(&command.go, "").unwrap();
        let mut said = Vec::new();
        self.within(async {
            while let Some(piece) = command.process.output().await {
                said.extend(piece);
            }
            command.process.wait().await
        });
        let text = String::from_utf8(said).unwrap();
        assert!(text.ends_with("tried\n"), "{text}");
    }

    fn within<T>(&self, work: impl Future<Output = T>) -> T {
        let work = async { tokio::time::timeout(Duration::from_secs(60), work).await };
        self.runtime.block_on(work).expect("it takes too long")
    }
}

/// What is Tether's own and missing, as each root sees it.
const PLANT: &str = "mkdir -p src/own own; echo x > src/own/config; echo x > own/config";

#[track_caller]
fn check(yard: &Yard, sandbox: &LinuxSandbox, first: (Who, &Path), second: (Who, &Path)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let scope = runtime.block_on(async { Scope::root("test") });
    let place = Place { yard, sandbox, scope: &scope, runtime: &runtime };
    let own = yard.root.join("src/own");
    let one = place.start(first.0, first.1, "go-first", "true");
    assert!(own.exists());
    let other = place.start(second.0, second.1, "go-second", PLANT);
    place.end(one);
    assert!(own.exists(), "another one needs it");
    place.end(other);
    assert!(!own.join("config").exists(), "it was undone");
    runtime.block_on(scope.close()).unwrap();
}

#[test]
fn a_root_in_another_needs_the_same_placeholder() {
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        for who in Who::all() {
            for inner_first in [false, true] {
                let yard = Yard::new(*who, Home::Outside);
                let (outer, inner) = (yard.root.clone(), yard.root.join("src"));
                let (first, second) = if inner_first { (&inner, &outer) } else { (&outer, &inner) };
                check(&yard, sandbox, (*who, first), (*who, second));
                assert!(!inner.join("own").exists() && !outer.join(".tether").exists(), "the last one takes it away");
                assert!(!inner.join(".git").exists() && !inner.join(".tether").exists());
            }
        }
    }
}

/// Neither sees what the other has written down.
#[test]
fn two_users_in_one_directory_need_the_same_placeholder() {
    if !geteuid().is_root() {
        return;
    }
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        for (first, second) in [(Who::Self_, Who::Nobody), (Who::Nobody, Who::Self_)] {
            let yard = Yard::new(Who::Self_, Home::Outside);
            for shared in [&yard.root, &yard.root.join("src"), &yard.root.join(".git"), &yard.temp] {
                fs::set_permissions(shared, Permissions::from_mode(0o777)).unwrap();
            }
            check(&yard, sandbox, (first, &yard.root), (second, &yard.root));
            // Whoever put it there takes it away, with the next command at the latest.
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let scope = runtime.block_on(async { Scope::root("test") });
            let place = Place { yard: &yard, sandbox, scope: &scope, runtime: &runtime };
            place.end(place.start(first, &yard.root, "go-again", "true"));
            runtime.block_on(scope.close()).unwrap();
            for name in ["src/own", ".tether", ".git/modules", ".git/commondir"] {
                assert!(!yard.root.join(name).exists(), "{first:?} {name}");
            }
        }
    }
}

/// A directory of a person's own that is empty is not taken for one that was put there.
#[test]
fn what_was_there_before_stays() {
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        let yard = Yard::new(Who::Self_, Home::Outside);
        fs::create_dir(yard.root.join(".tether")).unwrap();
        fs::write(yard.root.join(".git/commondir"), ".\n").unwrap();
        let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh("rmdir .tether; rm .git/commondir; echo tried"));
        assert!(ran.output.text.ends_with("tried\n"), "{ran:?}");
        assert!(yard.root.join(".tether").is_dir() && yard.root.join(".git/commondir").is_file(), "{ran:?}");
    }
}
