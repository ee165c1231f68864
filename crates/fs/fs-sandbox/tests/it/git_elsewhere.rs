//! A repository that is not the `.git` directory of the root, and configuration that is not a repository's.

use fs::{FileSystem, Why};
use fs_sandbox::Fence;
use sandbox::{Mode, Workspace};

use crate::world::{How, World, how};

const PROTECTED: How = How::Denied(Why::Protected);

#[track_caller]
fn check(world: &World, fence: &Fence, protected: &[&str], free: &[&str]) {
    let write = |path: &str| how(&world.run(fence.write(path, b"x".to_vec(), None)));
    for path in protected {
        assert_eq!(write(path), PROTECTED, "{path}");
    }
    for path in free {
        assert_eq!(write(path), How::Done, "{path}");
    }
}

impl World {
    /// Without the repository that every root begins with.
    fn bare(self) -> Self {
        std::fs::remove_dir_all(self.at("ws/.git")).unwrap();
        self
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn a_git_file_leads_to_a_directory_that_is_protected_like_git() {
    let world = World::new(Mode::WorkspaceWrite).bare();
    world.put("ws/.git", "gitdir: store/tree\n");
    let fence = world.fence();
    // Not even there yet.
    check(&world, &fence, &["store/tree", "store/tree/config", "store/tree/hooks/pre-commit"], &["store/other"]);
    world.put("ws/store/tree/commondir", "../common\n");
    world.put("ws/store/tree/config.worktree", "[core]\nhooksPath = ../ws/mine\n");
    world.put("ws/store/common/config", "[core]\nhooksPath = theirs\n[include]\npath = more\n");
    let protected = [
        ".git",
        "store/tree/commondir",
        "store/tree/config.worktree",
        "store/tree/worktrees/w/gitdir",
        "store/tree/rebase-merge/git-rebase-todo",
        "store/common",
        "store/common/hooks/pre-commit",
        "store/common/config",
        "store/common/modules/m/config",
        "store/common/more",
        "mine/pre-commit",
        "theirs/pre-commit",
    ];
    check(&world, &fence, &protected, &["store/tree/index", "store/common/HEAD", "more", "file.txt"]);
}

/// As `git worktree` and `git submodule` make them: with the repository beside the root, and configuration that names
/// places in the root.
#[test]
fn a_repository_outside_leads_into_the_root() {
    let world = World::new(Mode::WorkspaceWrite).bare();
    world.put("ws/.git", &format!("gitdir: {}\n", world.at("repo/.git/worktrees/ws").display()));
    world.put("repo/.git/worktrees/ws/commondir", "../..\n");
    world.put("repo/.git/config", "[core]\nhooksPath = .husky\n");
    world.link(world.at("ws/ci/hook"), "repo/.git/hook");
    std::fs::create_dir(world.at("repo/.git/hooks")).unwrap();
    world.link("../hook", "repo/.git/hooks/pre-push");
    check(&world, &world.fence(), &[".git", ".husky/pre-commit", "ci/hook"], &["ci/other", "husky/x"]);

    // The top of a submodule is where its own configuration says.
    let world = World::new(Mode::WorkspaceWrite).bare();
    world.put("top/.git", "gitdir: ../repo/sub");
    world.put("repo/sub/HEAD", "ref: refs/heads/main");
    world.put("repo/sub/config", "[core]\nworktree = ../../ws\nhooksPath = .husky\n");
    world.put("ws/.git", "gitdir: ../repo/sub");
    check(&world, &world.fence(), &[".husky/pre-commit"], &["x"]);
}

#[test]
fn a_root_inside_a_repository_is_led_into_by_it() {
    let world = World::new(Mode::WorkspaceWrite).bare();
    world.put(".git/HEAD", "ref: refs/heads/main");
    world.put(".git/config", "[core]\nhooksPath = ws/tools/hooks\n[include]\npath = ../ws/conf/git\n");
    let fence = world.fence();
    check(&world, &fence, &["tools/hooks/pre-commit", "conf/git"], &["tools/x", "conf/x", "hooks/x"]);
    // Once there is one here, that one counts.
    world.put("ws/.git/HEAD", "ref: refs/heads/main");
    check(&world, &fence, &[".git/config"], &["tools/hooks/pre-commit", "conf/git"]);

    let world = World::new(Mode::WorkspaceWrite).bare();
    world.put(".git", "gitdir: ws/store\n");
    check(&world, &world.fence(), &["store/hooks/x", "store/config", "store"], &["x"]);
}

#[test]
fn a_persons_own_configuration_leads_into_the_root() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    check(&world, &fence, &[], &[".githooks/pre-commit", "conf/git", "at/home/pre-commit"]);
    world.put(
        "person/.gitconfig",
        "[core]\n\thooksPath = .githooks\n[include]\n\tpath = ~/../ws/conf/git\n[include]\npath = more\n",
    );
    world.put("person/more", "[core]\nhooksPath = ~/../ws/at/home\n");
    check(&world, &fence, &[".githooks/pre-commit", "conf/git", "at/home/pre-commit"], &["conf/other", "at/x"]);

    // Where the root is somebody's home, the file itself leads git.
    let home = world.at("person");
    let fence = world.open(Workspace::new(&home)).unwrap();
    check(&world, &fence, &[".gitconfig", "more", ".githooks/x"], &["notes", "githooks/x"]);
}

/// Git runs the commands in them when a person goes on with a rebase.
#[test]
fn what_git_goes_on_with_later_is_not_written_by_tools() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    world.put("ws/.git/rebase-merge/git-rebase-todo", "pick 1\n");
    let protected = [
        ".git/rebase-merge/git-rebase-todo",
        ".git/rebase-merge/new",
        ".git/rebase-apply/patch",
        ".git/sequencer/todo",
    ];
    check(&world, &fence, &protected, &[".git/description", ".git/info/exclude"]);
    assert_eq!(world.text("ws/.git/rebase-merge/git-rebase-todo"), "pick 1\n");
}

/// Hooks that are the root's own files: there is nothing in it that git would not run.
#[test]
fn a_root_of_hooks_is_not_written() {
    let world = World::new(Mode::WorkspaceWrite);
    world.put("ws/.git/config", "[core]\nhooksPath = .\n");
    check(&world, &world.fence(), &["pre-commit", "file.txt", "sub/deep.txt"], &[]);
}
