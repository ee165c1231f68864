//! A repository that is not the `.git` directory of the root, and configuration that is not a repository's.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fs::{FileSystem, Why};
use fs_sandbox::Fence;
use sandbox::{Extent, Mode, Protected, Workspace};

use crate::world::{How, World, how};

const PROTECTED: How = How::Denied(Why::Protected);

#[track_caller]
fn check(world: &World, fence: &Fence, protected: &[&str], free: &[&str]) {
    let withheld = fence.workspace().boundary(Mode::WorkspaceWrite).withheld().map(str::to_owned);
    assert_eq!(withheld, None);
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
    // Whoever works above goes on to be led here when there is one here as well.
    world.put("ws/.git/HEAD", "ref: refs/heads/main");
    check(&world, &fence, &[".git/config", "tools/hooks/pre-commit", "conf/git"], &["tools/x", "hooks/x"]);

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

/// As `git worktree add` makes them, inside the root and beside it.
#[test]
fn each_worktree_has_hooks_and_settings_of_its_own() {
    let world = World::new(Mode::WorkspaceWrite);
    for (name, place) in [("in", "ws/trees/in"), ("beside", "beside")] {
        let own = format!("ws/.git/worktrees/{name}");
        world.put(&format!("{place}/.git"), &format!("gitdir: {}\n", world.at(&own).display()));
        world.put(&format!("{own}/gitdir"), &format!("{}\n", world.at(place).join(".git").display()));
        world.put(&format!("{own}/commondir"), "../..\n");
        world.put(&format!("{own}/HEAD"), "ref: refs/heads/x");
    }
    world.put("ws/.git/config", "[core]\nhooksPath = .husky\n[extensions]\nworktreeConfig = true\n");
    world.put(
        "ws/.git/worktrees/beside/config.worktree",
        &format!("[core]\nhooksPath = {}\n", world.at("ws/far").display()),
    );
    let protected = [".husky/x", "trees/in/.husky/x", "trees/in/.git", "far/pre-commit"];
    check(&world, &world.fence(), &protected, &["trees/in/file", "trees/in/husky/x", "trees/x", "beside/x"]);

    // Where the root is such a one, and the repository lies in it.
    let world = World::new(Mode::WorkspaceWrite).bare();
    world.put("ws/.git", "gitdir: main/.git/worktrees/ws\n");
    world.put("ws/main/.git/worktrees/ws/commondir", "../..\n");
    world.put("ws/main/.git/config", "[core]\nhooksPath = .husky\n");
    check(&world, &world.fence(), &["main/.husky/x", ".husky/x", "main/.git/config"], &["main/file"]);
}

/// As `git submodule` keeps them, with parts in a name and with some of their own.
#[test]
fn each_submodule_has_hooks_of_its_own() {
    let world = World::new(Mode::WorkspaceWrite);
    for (module, top) in [("a/b", "../../../../lib/b"), ("a/b/modules/c", "../../../../../../lib/b/c")] {
        world.put(&format!("ws/.git/modules/{module}/HEAD"), "ref: refs/heads/main");
        let config = format!("[core]\nworktree = {top}\nhooksPath = .githooks\n");
        world.put(&format!("ws/.git/modules/{module}/config"), &config);
    }
    world.link("../../../../tools/check", "ws/.git/modules/a/b/check");
    std::fs::create_dir(world.at("ws/.git/modules/a/b/hooks")).unwrap();
    world.link("../check", "ws/.git/modules/a/b/hooks/pre-push");
    // One that a worktree has, which is not the main one's.
    world.put("ws/.git/worktrees/w/modules/d/HEAD", "ref: refs/heads/main");
    let config = "[core]\nworktree = ../../../../../trees/w/d\nhooksPath = .githooks\n";
    world.put("ws/.git/worktrees/w/modules/d/config", config);
    // Its settings are not the root's.
    let free = [".githooks/x", "lib/b/file", "lib/.githooks/x", "tools/other"];
    check(
        &world,
        &world.fence(),
        &["lib/b/.githooks/x", "lib/b/c/.githooks/x", "trees/w/d/.githooks/x", "tools/check"],
        &free,
    );

    let deep = std::iter::repeat_n("m", 14).collect::<Vec<_>>().join("/");
    world.put(&format!("ws/.git/modules/{deep}/HEAD"), "ref: refs/heads/main");
    let withheld = world.fence().workspace().boundary(Mode::WorkspaceWrite).withheld().map(str::to_owned);
    assert!(withheld.is_some_and(|why| why.contains("submodules lie more than 12 deep")));
}

/// Husky's ninth version: what git is led to calls what is beside it.
#[test]
fn what_a_dispatcher_of_hooks_calls_is_protected() {
    let world = World::new(Mode::WorkspaceWrite);
    world.put("ws/.git/config", "[core]\nhooksPath = .husky/_\n");
    let fence = world.fence();
    check(&world, &fence, &[".husky/_/pre-commit", ".husky/pre-commit", ".husky/new"], &["husky"]);
    let boundary = fence.workspace().boundary(Mode::WorkspaceWrite);
    let below = Protected { path: world.at("ws/.husky/_"), extent: Extent::Tree };
    assert!(!boundary.protected().contains(&below), "what is around it is enough");
    world.put("ws/.git/config", "[core]\nhooksPath = sub/../_\n");
    check(&world, &fence, &["_/pre-commit"], &["sub/x", "file.txt"]);
}

#[test]
fn what_git_has_for_a_program_is_protected_where_it_is_there() {
    let world = World::new(Mode::WorkspaceWrite);
    for there in ["tools/clean.js", "monitor", "mine", "my tools/m", "plain.sh"] {
        world.put(&format!("ws/{there}"), "");
    }
    world.put(
        "ws/.git/config",
        "[core]\nfsmonitor = ./my tools/m\n[filter \"f\"]\nclean = node tools/clean.js %f sub\nsmudge = sh plain.sh\n\
         process = sh tools/missing\n[alias]\nm = !./mine\n[init]\ntemplateDir = ~/../ws/template\n",
    );
    let fence = world.fence();
    let protected = ["my tools/m", "tools/clean.js", "plain.sh", "template/hooks/x"];
    check(&world, &fence, &protected, &["mine", "sub/x", "node", "tools/x", "my tools/other"]);
    world.put("person/.gitconfig", "[core]\nfsmonitor = ~/../ws/monitor\n");
    check(&world, &fence, &["monitor"], &["tools/missing"]);
    check(&world, &fence, &["tools/missing"], &[]);
    world.put("person/.gitconfig", "[core]\nhooksPath = ~nobody-of-this-name/hooks\n");
    let said = world.run(fence.write("file.txt", b"x".to_vec(), None)).unwrap_err().to_string();
    assert!(said.contains("names the home of \"nobody-of-this-name\", who is not in /etc/passwd"), "{said}");
}

/// A name that git has for a program is nobody's way to keep everybody from writing.
#[test]
fn what_is_put_in_the_place_of_a_program_locks_nobody_out() {
    let world = World::new(Mode::WorkspaceWrite);
    world.put("ws/.git/config", "[filter \"f\"]\nclean = sh tools/f\n");
    let fence = world.fence();
    std::fs::create_dir(world.at("ws/tools")).unwrap();
    for target in ["/proc/self/root/etc/passwd".to_owned(), "x".repeat(255), "f".to_owned(), "../".repeat(600)] {
        world.link(&target, "ws/tools/f");
        check(&world, &fence, &[], &["file.txt"]);
        std::fs::remove_file(world.at("ws/tools/f")).unwrap();
    }
}

/// As a push from elsewhere has it, and `git -C .git`.
#[test]
fn hooks_are_also_relative_to_the_repository() {
    let world = World::new(Mode::WorkspaceWrite);
    world.put("ws/.git/config", "[core]\nhooksPath = .husky/_\n");
    check(&world, &world.fence(), &[".git/.husky/_/pre-receive", ".git/.husky/x"], &[".git/other"]);
}

#[test]
fn a_module_or_an_outer_repository_that_is_a_link_is_protected_where_it_leads() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::create_dir_all(world.at("ws/.git/modules")).unwrap();
    world.link("../../mods/foo", "ws/.git/modules/foo");
    world.put("ws/mods/foo/HEAD", "ref: refs/heads/main");
    world.put("ws/mods/foo/config", "[core]\nworktree = ../../foo\n");
    world.put("ws/foo/.git", "gitdir: ../.git/modules/foo\n");
    std::fs::create_dir_all(world.at("ws/.git/worktrees")).unwrap();
    world.link("../../trees/t", "ws/.git/worktrees/t");
    world.put("ws/trees/t/gitdir", "elsewhere/.git");
    world.link("ws/outer", ".git");
    world.put("ws/outer", "gitdir: nowhere\n");
    let protected = ["mods/foo/commondir", "mods/foo/hooks/x", "trees/t/commondir", "foo/.git", "outer"];
    check(&world, &world.fence(), &protected, &["mods/x", "foo/x", "mods/foo/index"]);
}

/// What people have.
#[test]
fn a_large_repository_is_followed() {
    let world = World::new(Mode::WorkspaceWrite);
    for n in 0..300 {
        world.put(&format!("ws/.git/modules/m{n}/HEAD"), "ref: refs/heads/main");
        world.put(&format!("ws/.git/modules/m{n}/config"), &format!("[core]\nworktree = ../../../lib/m{n}\n"));
        world.put(&format!("ws/lib/m{n}/.git"), &format!("gitdir: ../../.git/modules/m{n}\n"));
    }
    for n in 0..100 {
        world.put(&format!("ws/trees/t{n}/.git"), &format!("gitdir: ../../.git/worktrees/t{n}\n"));
        let gitdir = world.at(&format!("ws/trees/t{n}/.git"));
        world.put(&format!("ws/.git/worktrees/t{n}/gitdir"), &format!("{}\n", gitdir.display()));
    }
    world.put("ws/.git/config", "[core]\nhooksPath = .husky/_\n");
    let commands =
        (0..100).map(|n| format!("[alias]\na{n} = !f() {{ git log; }}; f\n[filter \"f{n}\"]\nclean = a b c\n"));
    world.put("person/.gitconfig", &commands.collect::<String>());
    let protected = ["lib/m299/.git", "trees/t99/.git", "trees/t99/.husky/x", ".husky/x"];
    check(&world, &world.fence(), &protected, &["file.txt", "lib/m1/x"]);
}

/// A directory may be put away, and a file put there.
#[test]
fn a_directory_in_the_place_of_a_configuration_stays_one() {
    let world = World::new(Mode::WorkspaceWrite);
    world.put("ws/.git/config", "[include]\npath = ../inc\npath = ..\n");
    world.put("ws/inc/x", "");
    let fence = world.fence();
    check(&world, &fence, &["inc"], &["inc/y", "file.txt"]);
    let boundary = fence.workspace().boundary(Mode::WorkspaceWrite);
    let entry = Protected { path: world.at("ws/inc"), extent: Extent::Entry };
    assert!(boundary.protected().contains(&entry), "{:?}", boundary.protected());
}

/// A link that leads git on is not put to lead it elsewhere.
#[test]
fn every_link_on_the_way_is_protected() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::create_dir(world.at("ws/far")).unwrap();
    for (target, link) in [("../../one", "ws/.git/hooks/pre-push"), ("two", "ws/one"), ("far/three", "ws/two")] {
        world.link(target, link);
    }
    world.link("../last", "ws/far/three");
    // One that is a file and a directory of hooks; and one outside the root, where commands write as well.
    world.put(
        "ws/.git/config",
        "[core]\nhooksPath = alias/hooks\nhooksPath = both\nhooksPath = ../temp/hooks\n\
         [include]\npath = ../none/../inc\npath = ../both\n",
    );
    world.link("sub", "ws/alias");
    world.link("../../ring", "ws/.git/hooks/post-merge");
    world.link("gnir", "ws/ring");
    world.link("ring", "ws/gnir");
    world.put("ws/.git/commondir", "");
    let boundary = world.fence().workspace().boundary(Mode::WorkspaceWrite);
    let protected = |path: &str, extent| {
        let path = path.strip_prefix("../").map_or_else(|| world.at("ws").join(path), |path| world.at(path));
        let wanted = Protected { path, extent };
        assert!(boundary.protected().contains(&wanted), "{wanted:?}: {:#?}", boundary.protected());
    };
    for link in ["one", "two", "far/three", "alias", "ring", "gnir", "none"] {
        protected(link, Extent::Entry);
    }
    for file in ["last", "inc"] {
        protected(file, Extent::File);
    }
    for tree in ["sub/hooks", "both", "../temp/hooks"] {
        protected(tree, Extent::Tree);
    }
}

/// Whoever owns what is closed can open it within the next command.
#[test]
fn what_is_closed_inside_the_root_is_not_passed_over() {
    let world = World::new(Mode::WorkspaceWrite);
    world.put("ws/.git/config", "[core]\nhooksPath = shut/hooks\n");
    world.put("ws/shut/hooks/pre-commit", "");
    let closed = world.at("ws/shut");
    let mode = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).unwrap();
    let fence = world.fence();
    let withheld = || as_nobody(|| fence.workspace().boundary(Mode::WorkspaceWrite).withheld().map(str::to_owned));
    open_to_nobody(&world.top);
    assert_eq!(withheld(), None);
    mode(0o000);
    let held = Protected { path: closed.clone(), extent: Extent::Tree };
    let holds = || as_nobody(|| fence.workspace().boundary(Mode::WorkspaceWrite).protected().contains(&held));
    assert!(withheld().is_none() && holds(), "nothing of it changes until somebody outside opens it");
    let config = |text: &str| world.put("ws/.git/config", text);
    config("[filter \"f\"]\nclean = sh shut/x.sh\n");
    assert!(withheld().is_none() && holds(), "by a program's name");
    config("");
    assert!(withheld().is_none() && !holds());
    std::fs::create_dir_all(world.at("ws/.git/modules")).unwrap();
    world.link("../../shut/m", "ws/.git/modules/m");
    assert!(withheld().is_none() && holds(), "by a submodule");
    std::fs::remove_file(world.at("ws/.git/modules/m")).unwrap();
    config("[core]\nhooksPath = shut/hooks\n");
    mode(0o711);
    assert!(!holds());
    // The directory itself can be entered, and what is in it not be listed.
    std::fs::set_permissions(world.at("ws/shut/hooks"), std::fs::Permissions::from_mode(0o311)).unwrap();
    assert!(withheld().expect("closed").contains("ws/shut/hooks cannot be read"));
    std::fs::remove_dir_all(world.at("ws/shut")).unwrap();
    assert_eq!(withheld(), None);
    // Outside it counts as git has it: nobody gets there.
    world.put("ws/.git/config", &format!("[core]\nhooksPath = {}\n", world.at("vault/hooks").display()));
    world.put("vault/hooks/x", "");
    std::fs::set_permissions(world.at("vault"), std::fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(withheld(), None);
    // A person's own file counts where it is in the root.
    world.put("person/.gitconfig", "");
    let shut = |path: &str| std::fs::set_permissions(world.at(path), std::fs::Permissions::from_mode(0o000)).unwrap();
    shut("person/.gitconfig");
    assert_eq!(withheld(), None);
    std::fs::remove_file(world.at("person/.gitconfig")).unwrap();
    world.link("../ws/dotfile", "person/.gitconfig");
    world.put("ws/dotfile", "");
    shut("ws/dotfile");
    assert!(withheld().expect("closed").contains(".gitconfig cannot be read"));
}

/// What an ordinary user finds. Who is one already is that one.
fn as_nobody<T: Send>(look: impl FnOnce() -> T + Send) -> T {
    let look = || {
        if rustix::process::geteuid().is_root() {
            // Of this thread alone.
            let nobody = rustix::process::Uid::from_raw(NOBODY);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        look()
    };
    std::thread::scope(|scope| scope.spawn(look).join().unwrap())
}

/// All that is there now is the ordinary user's, and so not by the mode of what is around it.
fn open_to_nobody(top: &Path) {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(top, Some(NOBODY), None).unwrap();
    }
    std::fs::set_permissions(top, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const NOBODY: u32 = 65534;

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
