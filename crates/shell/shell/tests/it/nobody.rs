//! What works although nobody is at a terminal is run.

use sandbox::Mode;

use crate::world::*;

const COMMITS: &str = "git init -q . && git config user.email me@example.org && git config user.name me && \
    for n in 1 2 3; do echo $n >> f && git add f && git commit -qm c$n || exit 1; done";

#[tokio::test]
async fn git_takes_what_an_editor_would_be_given() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    said(&shell, line(COMMITS)).await;
    let before = said(&shell, line("git rev-parse HEAD")).await;
    said(&shell, line("git rebase -i HEAD~2")).await;
    assert_eq!(said(&shell, line("git rev-parse HEAD")).await, before, "the list as it is");
    said(&shell, line("echo fix >> f; git commit -qa --fixup HEAD; git rebase -i --autosquash HEAD~2")).await;
    assert_eq!(said(&shell, line("git log --format=%s | less")).await, "c3\nc2\nc1");
    said(&shell, line("git commit -q --amend; echo more >> f; git add -e")).await;
    assert_eq!(said(&shell, line("git diff --cached --numstat")).await, "1\t0\tf");
    let empty = run(&shell, line("git commit")).await.unwrap().finished;
    assert_eq!(empty.how, subprocess::How::Exited(1));
    assert!(empty.output.text.contains("empty commit message"), "{}", empty.output.text);
    world.close().await;
}

#[tokio::test]
async fn a_pager_passes_everything_on() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    for pager in ["less", "more"] {
        if said(&shell, line(&format!("command -v {pager} || true"))).await.is_empty() {
            continue;
        }
        let all = said(&shell, line(&format!("seq 1 500 | {pager}"))).await;
        assert_eq!((all.lines().count(), all.lines().last()), (500, Some("500")), "{pager}");
    }
    world.close().await;
}
