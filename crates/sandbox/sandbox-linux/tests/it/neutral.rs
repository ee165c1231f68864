//! What is held for git does not change what git says, neither inside nor on the host, while a command runs.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use sandbox::Mode;

use crate::attacks::{Tier, has, usable};
use crate::runs::{confined, sh};
use crate::who::Who;
use crate::yard::{Home, Yard};

const ASKED: [&str; 2] =
    ["git status --porcelain 2>&1", "git rev-parse --show-toplevel --is-bare-repository --is-inside-work-tree 2>&1"];

/// How a repository is configured, and whether a command may write in it.
const REPOSITORIES: [(&str, bool); 6] = [
    ("true", true),
    ("git config core.worktree ../src", false),
    ("git config core.bare true", false),
    ("git config core.worktree ../src; git config extensions.worktreeConfig true", false),
    ("git config extensions.worktreeConfig true; git config --worktree core.sparseCheckout true", true),
    ("git config core.bare false; git config --unset core.bare", true),
];

/// What git says in the workspace, and below it.
fn script() -> String {
    let each = |dir: &str| ASKED.map(|asked| format!("(cd {dir} && {asked}); ")).concat();
    format!("echo BEGIN; {}{}echo END", each("."), each("src"))
}

fn between(said: &str) -> String {
    let (_, rest) = said.split_once("BEGIN\n").unwrap_or_else(|| panic!("{said}"));
    rest.split_once("END\n").unwrap_or_else(|| panic!("{said}")).0.to_owned()
}

fn host(root: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    // Git looks for no repository above, and refreshes nothing.
    let command = command.args(["-c", script]).current_dir(root).env("GIT_OPTIONAL_LOCKS", "0");
    let output = command.env("GIT_CEILING_DIRECTORIES", root.parent().unwrap()).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn until(holds: impl Fn() -> bool) {
    let over = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < over, "not in time");
        std::thread::yield_now();
    }
}

#[test]
fn git_says_the_same_while_a_command_runs() {
    if !has("git") {
        return;
    }
    for (tier, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        for (configured, may_write) in REPOSITORIES {
            let yard = Yard::new(Who::Self_, Home::Outside);
            let root = &yard.root;
            fs::remove_dir_all(root.join(".git")).unwrap();
            let setting = format!(
                "git init -q . && git add src && git -c user.name=a -c user.email=a@b commit -qm one && {configured} && \
                 echo b >> src/a.txt && echo ready"
            );
            let set = host(root, &setting);
            assert!(set.ends_with("ready\n"), "{configured}: {set}");
            let before = between(&host(root, &script()));
            let said = std::thread::scope(|scope| {
                let ask = format!(
                    "export GIT_OPTIONAL_LOCKS=0; touch ran && until [ -e gone ]; do sleep 0.01; done; {} ; \
                     echo ../evil > .git/commondir; mkdir .git/commondir; echo x > .git/index.lock; rm -f .git/index.lock; \
                     [ -e .git/index.lock ] || echo tried",
                    script()
                );
                let (argv, yard) = (sh(&ask), &yard);
                let running = scope.spawn(move || confined(sandbox, yard, Mode::WorkspaceWrite, &argv));
                until(|| root.join("ran").exists() || running.is_finished());
                fs::remove_file(root.join("ran")).unwrap();
                let during = between(&host(root, &script()));
                let there = fs::read(root.join(".git/commondir")).is_ok();
                fs::write(root.join("gone"), "").unwrap();
                let said = running.join().unwrap();
                assert_eq!(during, before, "on the host: {configured}");
                assert_eq!(
                    there, may_write,
                    "{configured}: it is held by a placeholder, or with all of the repository"
                );
                said.output.text
            });
            let inside = between(&said).replace("?? gone\n", "");
            assert_eq!(inside, before, "{tier:?}, inside: {configured}: {said}");
            assert_eq!(!said.contains("index.lock: Read-only"), may_write, "{configured}: {said}");
            assert!(!root.join(".git/commondir").exists(), "{configured}: {said}");
        }
    }
}

/// It is told as what it is.
#[test]
fn a_repository_that_is_held_as_a_whole_denies() {
    use sandbox::{CommandLine, SandboxProvider};
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        let yard = Yard::new(Who::Self_, Home::Outside);
        fs::write(yard.root.join(".git/config"), "[core]\n\tworktree = ../src\n").unwrap();
        let argv = sh("echo x > .git/index.lock");
        let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &argv);
        let command = CommandLine { argv: &argv, cwd: &yard.root };
        let confinement = crate::runs::confinement(&yard, Mode::WorkspaceWrite);
        let denial = sandbox.evidence(&command, &confinement, &ran.output.text).expect("it was denied");
        assert_eq!(Path::new(&denial.target), yard.root.join(".git/index.lock"));
        let names: Vec<_> = fs::read_dir(yard.root.join(".git")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names.len(), 5, "nothing was put there: {names:?}");
    }
}
