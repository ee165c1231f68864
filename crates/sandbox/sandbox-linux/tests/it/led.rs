//! What git is led to is one thing for commands and for file tools, at every call.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::Scope;
use fs::write as put;
use fs_sandbox::{Fence, Fences, GitUser};
use sandbox::{Mode, Workspace};
use sandbox_linux::LinuxSandbox;
use shell::{ConfinedShell, Line, Parts, Ran, Shell, ShellError, Temporary};
use subprocess::Environment;
use tokio::runtime::Runtime;

use crate::attacks::{Tier, usable};
use crate::who::Who;
use crate::yard::{Home, Yard};

/// An agent with both.
struct Agent {
    yard: Yard,
    runtime: Runtime,
    scope: Option<Scope>,
    files: Fence,
    shell: ConfinedShell,
}

impl Agent {
    fn new(sandbox: LinuxSandbox) -> Self {
        let yard = Yard::new(Who::Self_, Home::Outside);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let inside = runtime.enter();
        let scope = Scope::root("agent");
        let workspace = Workspace::new(&yard.root).temp(&yard.temp).home(&yard.home);
        let mode = Arc::new(Mode::WorkspaceWrite);
        let person = yard.outside.join("dir");
        let user = GitUser { configs: vec![person.join(".gitconfig")], home: Some(person) };
        let files = Fences::for_user(user).open(workspace, mode.clone(), (*scope).clone()).unwrap();
        let parts = Parts {
            workspace: files.workspace().clone(),
            mode,
            provider: Some(Arc::new(sandbox)),
            helper: "/proc/self/exe".into(),
            env: Environment::inherited(),
            network: None,
            temporary: Temporary::Private,
            scratch: None,
        };
        let shell = ConfinedShell::open(&scope, parts).unwrap();
        drop(inside);
        Self { yard, runtime, scope: Some(scope), files, shell }
    }

    fn bash(&self, command: &str) -> Result<Ran, ShellError> {
        let cancelled = self.scope.as_ref().expect("not closed").cancelled().clone();
        let line = Line::new(command, Duration::from_secs(60));
        self.runtime.block_on(async { self.shell.run(line, None, &cancelled, &mut |_| {}).await })
    }

    fn write(&self, path: &str) -> Result<(), ::fs::FsError> {
        use ::fs::FileSystem;
        self.runtime.block_on(async { self.files.write(path, b"x".to_vec(), None).await.map(drop) })
    }

    #[track_caller]
    fn check(&self, path: &str, is_free: bool) {
        let target = self.yard.root.join(path);
        let _gone = fs::remove_file(&target);
        let ran = self.bash(&format!("mkdir -p $(dirname {path}); echo x > {path}; echo tried")).unwrap();
        assert_eq!(target.exists(), is_free, "by a command: {path}: {ran:?}");
        assert_eq!(self.write(path).is_ok(), is_free, "by a file tool: {path}");
        assert_eq!(target.exists(), is_free, "by a file tool: {path}");
    }
}

fn sandbox(tier: Tier) -> LinuxSandbox {
    match tier {
        Tier::Best => LinuxSandbox::new(),
        Tier::WithoutNamespaces => LinuxSandbox::new().without_namespaces(),
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(scope) = self.scope.take() {
            let _closed = self.runtime.block_on(async { scope.close().await });
        }
    }
}

#[test]
fn a_lead_from_outside_counts_from_the_next_call_on() {
    for (tier, ..) in usable() {
        let agent = Agent::new(sandbox(tier));
        let git = agent.yard.root.join(".git");
        agent.check("h/pre-commit", true);
        let _hook = fs::remove_file(agent.yard.root.join("h/pre-commit"));
        put(git.join("config"), "[core]\nhooksPath = h\n").unwrap();
        agent.check("h/pre-commit", false);
        agent.check("i/pre-commit", true);
        let _hook = fs::remove_file(agent.yard.root.join("i/pre-commit"));
        put(git.join("config"), "[core]\nhooksPath = i\n").unwrap();
        agent.check("i/pre-commit", false);
        agent.check("h/pre-commit", true);
        agent.check("theirs/pre-commit", true);
        let _hook = fs::remove_file(agent.yard.root.join("theirs/pre-commit"));
        put(agent.yard.outside.join("dir/.gitconfig"), "[core]\nhooksPath = theirs\n").unwrap();
        agent.check("theirs/pre-commit", false);
    }
}

/// Git stumbles over a directory in the place of a file that it includes.
#[test]
fn a_file_that_is_missing_is_held_by_a_file() {
    for (tier, ..) in usable() {
        let agent = Agent::new(sandbox(tier));
        put(agent.yard.root.join(".git/config"), "[include]\npath = ../inc\n").unwrap();
        let ran = agent.bash("if [ -e inc ]; then test -f inc || echo wrong; fi; echo x > inc; echo tried").unwrap();
        assert!(!ran.finished.output.text.contains("wrong"), "{ran:?}");
        assert!(!agent.yard.root.join("inc").exists(), "{ran:?}");
    }
}

#[test]
fn where_git_cannot_be_followed_nothing_is_written() {
    for (tier, ..) in usable() {
        let agent = Agent::new(sandbox(tier));
        let config = agent.yard.root.join(".git/config");
        put(&config, format!("#{}\n", "x".repeat(4 * 1024 * 1024))).unwrap();
        let refused = agent.bash("echo x > src/new").unwrap_err();
        assert!(matches!(refused, ShellError::Withheld(_)), "{refused}");
        let said = refused.to_string();
        assert!(
            said.contains("git's configuration cannot be followed") && said.contains(".git/config is longer"),
            "{said}"
        );
        assert!(agent.write("src/new").is_err() && !agent.yard.root.join("src/new").exists());
        put(&config, "").unwrap();
        agent.check("src/new", true);
    }
}

/// A repository in another directory of the workspace, as a worktree's or a submodule's.
#[test]
fn a_git_file_leads_commands_as_well() {
    for (tier, ..) in usable() {
        let agent = Agent::new(sandbox(tier));
        let root = &agent.yard.root;
        fs::create_dir(root.join("store")).unwrap();
        fs::rename(root.join(".git"), root.join("store/tree")).unwrap();
        put(root.join(".git"), "gitdir: store/tree\n").unwrap();
        put(root.join("store/tree/commondir"), "../common\n").unwrap();
        for path in
            ["store/tree/hooks/new", "store/tree/config.worktree", "store/common/hooks/x", "store/common/config"]
        {
            agent.check(path, false);
        }
        agent.check("store/tree/index", true);
        let script = "mv store/tree/hooks h; mv store/tree t; mv store s; echo x > .git; echo tried";
        let ran = agent.bash(script).unwrap();
        let is_held = root.join("store/tree/hooks/sample").exists() && fs::read(root.join(".git")).unwrap().len() > 2;
        // Without namespaces a name cannot be held, but it is told that it was not.
        assert!(is_held || !ran.finished.notes.is_empty(), "{ran:?}");
    }
}

/// Also one between the first, which git names, and what the last leads to.
#[test]
fn every_link_that_leads_git_on_is_held() {
    use std::os::unix::fs::symlink;
    for (tier, ..) in usable() {
        let agent = Agent::new(sandbox(tier));
        let root = &agent.yard.root;
        fs::create_dir_all(root.join("far")).unwrap();
        fs::create_dir_all(root.join("v1/hooks")).unwrap();
        put(root.join("far/check"), "mine").unwrap();
        let links = [("../../one", ".git/hooks/pre-push"), ("two", "one"), ("far/check", "two"), ("v1", "alias")];
        links.iter().for_each(|(target, link)| symlink(target, root.join(link)).unwrap());
        put(root.join(".git/config"), "[core]\nhooksPath = alias/hooks\n").unwrap();
        agent.check("far/check2", true);
        let script = "for link in one two alias; do rm $link; mv $link gone; ln -sfn src $link; echo x > $link; done; \
                      mv far f; mv v1 v; echo x > far/check; echo x > v1/hooks/x; echo tried";
        let ran = agent.bash(script).unwrap();
        let leads =
            |(target, link): &(&str, &str)| fs::read_link(root.join(link)).is_ok_and(|to| to == Path::new(target));
        let is_held = links.iter().all(leads)
            && fs::read_to_string(root.join("far/check")).is_ok_and(|text| text == "mine")
            && fs::read_dir(root.join("v1/hooks")).is_ok_and(|hooks| hooks.count() == 0);
        // Without namespaces a name cannot be held, but it is told that it was not.
        assert!(is_held || tier == Tier::WithoutNamespaces && !ran.finished.notes.is_empty(), "{ran:?}");
    }
}
