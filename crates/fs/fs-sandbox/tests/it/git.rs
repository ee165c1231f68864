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

/// Bounded in all that is looked at; where it is cut off, nothing is written, and everything is read.
#[test]
fn what_is_protected_is_bounded() {
    let world = World::new(Mode::WorkspaceWrite);
    let open = |count: usize| {
        let workspace = (0..count).fold(Workspace::new(world.at("ws")), |all, n| all.protect(format!("p{n}")));
        world.open(workspace)
    };
    assert_eq!(write(&world, &open(1_024).unwrap(), "p1023/x"), How::Denied(Why::Protected));
    let error = open(20_000).err().unwrap();
    assert!(matches!(error, OpenError::TooManyProtected { count: 20_000 }));
    assert!(error.to_string().starts_with("20000 paths are to be protected"), "{error}");

    let fence = open(3).unwrap();
    let includes = |count: usize, place: &str| {
        let includes = (0..count).map(|n| format!("path = {place}/i{n}\n")).collect::<String>();
        std::fs::write(world.at("ws/.git/config"), format!("[include]\n{includes}")).unwrap();
    };
    includes(1_021, "..");
    assert_eq!(write(&world, &fence, "file.txt"), How::Done);
    includes(1_022, "..");
    assert!(
        refused(&world, &fence).contains("leads to 1022 places in this workspace, and at most 1021 can be protected")
    );
    includes(20_000, "/nowhere");
    assert_eq!(write(&world, &fence, "file.txt"), How::Done);
    includes(23_000, "/nowhere");
    assert!(refused(&world, &fence).contains("leads along more names than are followed"));
    world.mode.set(Mode::DangerFullAccess);
    assert_eq!(write(&world, &fence, "file.txt"), How::Done);
    world.mode.set(Mode::WorkspaceWrite);

    // Few settings, each of which leads through as many links as there may be, and all of them to one place.
    std::fs::create_dir(world.at("ws/ring")).unwrap();
    for n in 0..38 {
        world.link(format!("../ring/{n}"), &format!("ws/ring/{}", n + 1));
    }
    includes(1_900, "../ring/38");
    assert!(refused(&world, &fence).contains("leads along more names than are followed"));

    std::fs::write(world.at("ws/.git/config"), "[core]\nhooksPath = a").unwrap();
    assert_eq!(write(&world, &fence, "file.txt"), How::Done);
    let many = |directory: &str| {
        std::fs::create_dir_all(world.at(directory)).unwrap();
        (0..=65_536).for_each(|n| std::fs::write(world.at(&format!("{directory}/{n}")), "").unwrap());
        assert!(refused(&world, &fence).contains("leads along more names than are followed"), "{directory}");
        std::fs::remove_dir_all(world.at(directory)).unwrap();
    };
    many("ws/.git/hooks");
    many("ws/.git/worktrees");

    let words = (0..1_000).map(|n| format!("[filter \"f\"]\nclean = w{n}\n")).collect::<String>();
    std::fs::write(world.at("ws/.git/config"), words).unwrap();
    assert_eq!(write(&world, &fence, "file.txt"), How::Done);
    for n in 0..300 {
        let own = world.at(&format!("ws/.git/worktrees/t{n}"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("gitdir"), format!("/nowhere/{n}/.git\n")).unwrap();
    }
    assert!(refused(&world, &fence).contains("leads along more names than are followed"));
}

#[test]
fn no_configuration_is_left_unread() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    // With `.git/config` itself, and hooks that only the last one names.
    let spread = |files: usize| {
        let includes = (1..files).map(|n| format!("path = ../../outside/i{n}\n")).collect::<String>();
        std::fs::write(world.at("ws/.git/config"), format!("[include]\n{includes}")).unwrap();
        for n in 1..files {
            let hooks = if n + 1 == files { "[core]\nhooksPath = quiet\n" } else { "" };
            std::fs::write(world.at(&format!("outside/i{n}")), hooks).unwrap();
        }
    };
    spread(4_096);
    assert_eq!(write(&world, &fence, "quiet/pre-commit"), How::Denied(Why::Protected));
    spread(4_097);
    let said = refused(&world, &fence);
    assert!(said.contains("more than 4096 files") && said.contains("i4096 among them"), "{said}");

    let long = format!("#{}\n[core]\nhooksPath = quiet\n", "x".repeat(4 * 1024 * 1024));
    std::fs::write(world.at("ws/.git/config"), long).unwrap();
    let said = refused(&world, &fence);
    assert!(said.contains("ws/.git/config is longer than is read of it"), "{said}");
    std::fs::remove_file(world.at("ws/.git/config")).unwrap();
    world.link("config", "ws/.git/config");
    assert_eq!(write(&world, &fence, "file.txt"), How::Done, "git is led nowhere by a link to itself");
    std::fs::remove_file(world.at("ws/.git/config")).unwrap();
    world.link("/proc/self/root/etc/hostname", "ws/.git/config");
    assert!(refused(&world, &fence).contains("ws/.git/config cannot be read"));
}

/// What git is led to changes from outside while a session runs, in every way that leads it.
#[test]
fn what_git_is_led_to_is_found_anew_at_each_call() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    let protected_from_now_on = |path: &str, lead: &dyn Fn()| {
        assert_eq!(write(&world, &fence, path), How::Done, "{path}");
        lead();
        assert_eq!(write(&world, &fence, path), How::Denied(Why::Protected), "{path}");
        let edit = world.run(fence.update(path, Box::new(|_| Ok("y".into())), None));
        assert_eq!(how(&edit), How::Denied(Why::Protected), "{path}");
    };
    let config = |text: &str| std::fs::write(world.at("ws/.git/config"), text).unwrap();
    protected_from_now_on("a/pre-commit", &|| config("[core]\nhooksPath = a\n"));
    // The same length, within one tick of a clock.
    protected_from_now_on("b/pre-commit", &|| config("[core]\nhooksPath = b\n"));
    protected_from_now_on("c/pre-commit", &|| {
        std::fs::write(world.at("ws/.git/config.worktree"), "[core]\nhooksPath = c").unwrap()
    });
    protected_from_now_on("inc", &|| config("[include]\npath = ../inc\n"));
    protected_from_now_on("d/pre-commit", &|| std::fs::write(world.at("ws/inc"), "[core]\nhooksPath = d\n").unwrap());
    protected_from_now_on("tools/check", &|| world.link("../../tools/check", "ws/.git/hooks/pre-commit"));
    assert_eq!(write(&world, &fence, "b/pre-commit"), How::Done, "git is not led there any more");
}

fn refused(world: &World, fence: &Fence) -> String {
    let error = world.run(fence.write("file.txt", b"never".to_vec(), None)).unwrap_err();
    assert_ne!(world.text("ws/file.txt"), "never");
    assert_eq!(how(&world.run(fence.read("file.txt", 100))), How::Done);
    let said = error.to_string();
    assert!(said.contains("git's configuration cannot be followed, so nothing in this workspace is written"), "{said}");
    said
}
