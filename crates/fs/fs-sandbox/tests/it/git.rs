//! What git's own configuration leads to inside the root would run later, and is not written.

use fs::{FileSystem, Why};
use fs_sandbox::{Fence, OpenError};
use sandbox::{Mode, Workspace};

use crate::world::{How, World, how};

fn write(world: &World, fence: &Fence, path: &str) -> How {
    how(&world.run(fence.write(path, b"x".to_vec(), None)))
}

#[test]
fn places_that_git_is_led_to_are_not_written() {
    const PROTECTED: How = How::Denied(Why::Protected);
    let world = World::new(Mode::WorkspaceWrite);
    let config = format!(
        "[core]\n\thooksPath = .githooks\n[include]\n\tpath = ../inc # ours\n[includeIf \"gitdir:/x/\"]\n\tpath = \"{}\"\n\
         [include]\n\tpath = ../alias/more\n\tpath = ..\n",
        world.at("ws/conf/inc").display()
    );
    std::fs::write(world.at("ws/.git/config"), config).unwrap();
    std::fs::write(world.at("ws/.git/config.worktree"), "[core]\nhooksPath = alias/hooks").unwrap();
    std::fs::write(world.at("ws/inc"), "[core]\nhooksPath = deeper/hooks").unwrap();
    std::fs::create_dir_all(world.at("ws/.githooks")).unwrap();
    world.link("sub", "ws/alias");
    world.link("../../tools/check", "ws/.git/hooks/pre-commit");
    world.link("../tools/push", "ws/.githooks/pre-push");
    world.link("../../sub", "ws/.git/hooks/directory");
    world.link("../../../outside/secret.txt", "ws/.git/hooks/out");
    let fence = world.fence();
    for path in [
        ".githooks/pre-commit",
        ".githooks",
        "inc",
        "INC",
        "conf/inc",
        "alias/more",
        "sub/more",
        "sub/hooks/x",
        "deeper/hooks/x",
        "tools/check",
        "tools/push",
    ] {
        assert_eq!(write(&world, &fence, path), PROTECTED, "{path}");
    }
    for path in ["file.txt", "conf/other", "sub/deep.txt", "tools/other", "hooks"] {
        assert_eq!(write(&world, &fence, path), How::Done, "{path}");
    }
}

#[test]
fn a_configuration_that_is_a_link_is_protected_where_it_leads() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::remove_file(world.at("ws/.git/config")).unwrap();
    world.link("../gitconfig", "ws/.git/config");
    std::fs::remove_dir(world.at("ws/.git/hooks")).unwrap();
    world.link("../my/hooks", "ws/.git/hooks");
    let fence = world.fence();
    for path in ["gitconfig", "my/hooks", "my/hooks/pre-commit"] {
        assert_eq!(write(&world, &fence, path), How::Denied(Why::Protected), "{path}");
    }
}

#[test]
fn a_configuration_that_is_no_file_is_not_waited_for() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::remove_file(world.at("ws/.git/config")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, world.at("ws/.git/config"), fifo, mode, 0).unwrap();
    assert_eq!(write(&world, &world.fence(), "file.txt"), How::Done);
}

#[test]
fn what_is_protected_is_bounded() {
    let world = World::new(Mode::WorkspaceWrite);
    let scope = world.run(async { context::Scope::root("agent") });
    let open = |count: usize| {
        let workspace = (0..count).fold(Workspace::new(world.at("ws")), |all, n| all.protect(format!("p{n}")));
        Fence::open(workspace, world.mode.clone(), scope.clone())
    };
    assert_eq!(write(&world, &open(256).unwrap(), "p255/x"), How::Denied(Why::Protected));
    let error = open(20_000).err().unwrap();
    assert!(matches!(error, OpenError::TooManyProtected { count: 20_000 }));
    assert!(error.to_string().starts_with("20000 paths are to be protected"), "{error}");
    let includes = (0..20_000).map(|n| format!("path = ../i{n}\n")).collect::<String>();
    std::fs::write(world.at("ws/.git/config"), format!("[include]\n{includes}")).unwrap();
    assert!(matches!(open(0), Err(OpenError::TooManyProtected { .. })));
    // Three places are looked at in any root, and each of these once, although none is to be protected.
    let elsewhere = |count: usize| {
        let includes = (0..count).map(|n| format!("path = /nowhere/i{n}\n")).collect::<String>();
        std::fs::write(world.at("ws/.git/config"), format!("[include]\n{includes}")).unwrap();
        open(0).map(drop)
    };
    assert!(elsewhere(4096 - 3).is_ok());
    assert!(matches!(elsewhere(4096 - 2), Err(OpenError::TooManyProtected { count: 4097 })));
    world.run(async { scope.close().await.unwrap() });
}

#[test]
fn no_configuration_is_left_unread() {
    let world = World::new(Mode::WorkspaceWrite);
    let scope = world.run(async { context::Scope::root("agent") });
    // With `.git/config` itself, and hooks that only the last one names.
    let spread = |files: usize| {
        let includes = (1..files).map(|n| format!("path = ../i{n}\n")).collect::<String>();
        std::fs::write(world.at("ws/.git/config"), format!("[include]\n{includes}")).unwrap();
        for n in 1..files {
            let hooks = if n + 1 == files { "[core]\nhooksPath = quiet\n" } else { "" };
            std::fs::write(world.at(&format!("ws/i{n}")), hooks).unwrap();
        }
        Fence::open(Workspace::new(world.at("ws")), world.mode.clone(), scope.clone())
    };
    assert_eq!(write(&world, &spread(16).unwrap(), "quiet/pre-commit"), How::Denied(Why::Protected));
    let error = spread(17).err().unwrap();
    assert!(matches!(&error, OpenError::TooManyConfigs { first_unread } if first_unread.ends_with("i16")), "{error}");
    world.run(async { scope.close().await.unwrap() });
}
