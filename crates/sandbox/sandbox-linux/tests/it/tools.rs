//! Real work goes on inside.

use std::process::Command;

use sandbox::Mode;
use subprocess::How;

use crate::attacks::{has, usable};
use crate::runs::{confined, sh};
use crate::who::Who;
use crate::yard::{Home, Yard};

#[track_caller]
fn works(tool: &str, script: &str, says: &str) {
    if !has(tool) {
        return;
    }
    for (tier, sandbox, _) in usable() {
        let yard = Yard::new(Who::Self_, Home::Outside);
        // A repository of git's own making is there before.
        let made = Command::new("git").args(["init", "-q", "."]).current_dir(&yard.root).output();
        drop(made);
        let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
        assert_eq!(ran.how, How::Exited(0), "{tier:?}: {}", ran.output.text);
        assert!(ran.output.text.contains(says), "{tier:?}: {}", ran.output.text);
    }
}

#[test]
fn git() {
    let script = "git -c user.name=a -c user.email=a@b add src && git -c user.name=a -c user.email=a@b commit -qm first \
                  && git clone -q . copy && cd copy && git log --oneline && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m more \
                  && git checkout -qb other && git gc -q && git status";
    works("git", script, "On branch other");
}

/// What git goes on with later is kept from file tools alone.
#[test]
fn rebase() {
    let script = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_EDITOR=true \
                  && for n in 1 2 3; do git commit -q --allow-empty -m c$n; done \
                  && GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i --keep-empty HEAD~2 && test -d .git/rebase-merge \
                  && git rebase --continue && git log --oneline | wc -l && test ! -e .git/rebase-merge && echo rebased";
    works("git", script, "rebased");
}

#[test]
fn make() {
    works("make", "printf 'all:\\n\\t@echo made > out && cat out\\n' > Makefile && make -j4", "made");
}

#[test]
fn tar() {
    works("tar", "tar -czf a.tgz src && mkdir x && tar -C x -xzf a.tgz && cat x/src/a.txt", "a\n");
}

#[test]
fn python() {
    let script = "python3 -c 'import tempfile, subprocess, socket, threading; tempfile.TemporaryFile(); \
                  print(subprocess.check_output([\"echo\", \"worked\"]).decode()); socket.socketpair()'";
    works("python3", script, "worked");
}

#[test]
fn cargo() {
    works("cargo", "cargo --version", "cargo");
    let script = "export CARGO_NET_OFFLINE=true && mkdir -p p/src && cd p && echo '#[test] fn works() {}' > src/lib.rs \
                  && printf '[package]\\nname = \"p\"\\nedition = \"2021\"\\n[workspace]\\n' > Cargo.toml && cargo test -q --lib";
    works("cargo", script, "test result: ok");
}

#[test]
fn node() {
    works("node", "node -e 'require(\"child_process\").execSync(\"echo worked\", {stdio: \"inherit\"})'", "worked");
}

/// A compiler, with pipes and temporary files.
#[test]
fn cc() {
    works("cc", "printf 'int main(void){return 0;}' > m.c && cc -pipe -o m m.c && ./m && echo ran", "ran");
}
