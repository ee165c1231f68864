//! What the fence lets through, and how it leaves the files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fs::{Entry, FileSystem, FsError, Kind, MAX_FILE_BYTES, MAX_PREVIOUS_BYTES, Previous};
use fs_sandbox::OpenError;
use sandbox::{Mode, Workspace};

use crate::world::{How, World, how};

fn permissions(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_file_is_created_with_its_directories_replaced_and_edited() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    let made = world.run(fence.write("a/b/c.txt", b"one".to_vec(), None)).unwrap();
    assert_eq!((made.path, made.previous, made.bytes), (world.at("ws/a/b/c.txt"), Previous::Absent, 3));
    let replaced = world.run(fence.write("a/b/c.txt", b"two!".to_vec(), None)).unwrap();
    assert_eq!((replaced.previous, replaced.bytes), (Previous::Content(b"one".to_vec()), 4));
    let edited = world.run(fence.update("a/b/c.txt", Box::new(|text| Ok(text.replace('!', "?"))), None)).unwrap();
    assert_eq!((edited.previous, edited.bytes), (Previous::Content(b"two!".to_vec()), 4));
    assert_eq!(world.text("ws/a/b/c.txt"), "two?");
    assert_eq!(world.run(fence.read_text("a/b/c.txt", 10)).unwrap(), "two?");
    assert_eq!(std::fs::read_dir(world.at("ws/a/b")).unwrap().count(), 1, "no temporary file is left");
}

/// A `..` behind a link leads elsewhere than its text says, and what is told is where it led.
#[test]
fn what_was_written_is_told_by_its_own_name() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::create_dir_all(world.at("ws/sub/inner")).unwrap();
    world.link("sub/inner", "ws/way");
    let fence = world.fence();
    let made = world.run(fence.write("way/../x", b"x".to_vec(), None)).unwrap();
    assert_eq!((made.path, world.text("ws/sub/x").as_str()), (world.at("ws/sub/x"), "x"));
    let edited = world.run(fence.update("way/../x", Box::new(|text| Ok(text.replace('x', "y"))), None)).unwrap();
    assert_eq!((edited.path, world.text("ws/sub/x").as_str()), (world.at("ws/sub/x"), "y"));
}

#[test]
fn the_root_has_every_spelling_it_was_given() {
    let world = World::new(Mode::WorkspaceWrite);
    world.link("ws", "nick");
    let fence = world.fence_around(Workspace::new(world.at("nick")).temp(world.at("temp")));
    assert_eq!(fence.root(), world.at("ws"));
    for path in [world.at("ws/1"), world.at("nick/2"), world.at("temp/3"), world.at("outside/../ws/4")] {
        world.run(fence.write(path.to_str().unwrap(), b"x".to_vec(), None)).unwrap();
        assert!(path.exists());
    }
    let other = World::new(Mode::WorkspaceWrite);
    let denied = world.run(fence.write(other.at("ws/5").to_str().unwrap(), b"x".to_vec(), None)).unwrap_err();
    assert!(denied.denial().is_some());
}

#[test]
fn a_link_to_a_directory_inside_is_followed() {
    let world = World::new(Mode::WorkspaceWrite);
    world.link("sub", "ws/alias");
    world.run(world.fence().write("alias/new.txt", b"x".to_vec(), None)).unwrap();
    assert_eq!(world.text("ws/sub/new.txt"), "x");
}

#[test]
fn a_root_that_was_renamed_is_still_the_root() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    std::fs::rename(world.at("ws"), world.at("renamed")).unwrap();
    std::fs::create_dir(world.at("ws")).unwrap();
    world.link(".git", "renamed/my-git");
    world.run(fence.write("new.txt", b"x".to_vec(), None)).unwrap();
    assert_eq!(world.text("renamed/new.txt"), "x");
    let refused = world.run(fence.write("my-git/config", b"x".to_vec(), None));
    assert_eq!(how(&refused), How::Denied(fs::Why::Protected));
}

#[test]
fn permissions_are_kept_and_new_ones_are_ordinary() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    let path = world.at("ws/file.txt");
    for mode in [0o755, 0o600, 0o640, 0o4755] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        world.run(fence.write("file.txt", b"x".to_vec(), None)).unwrap();
        assert_eq!(permissions(&path), mode & 0o777);
    }
    std::fs::write(world.at("ws/by-std"), "").unwrap();
    world.run(fence.write("by-fence", b"x".to_vec(), None)).unwrap();
    assert_eq!(permissions(&world.at("ws/by-fence")), permissions(&world.at("ws/by-std")));
}

#[test]
fn ownership_is_kept_where_it_can_be() {
    let world = World::new(Mode::WorkspaceWrite);
    let path = world.at("ws/file.txt");
    let may = std::os::unix::fs::chown(&path, Some(12345), Some(12345)).is_ok();
    world.run(world.fence().write("file.txt", b"x".to_vec(), None)).unwrap();
    let owner = std::os::unix::fs::MetadataExt::uid(&path.metadata().unwrap());
    assert_eq!(owner == 12345, may);
}

#[test]
fn a_file_whose_owner_made_it_read_only_is_not_replaced() {
    let world = World::new(Mode::WorkspaceWrite);
    let path = world.at("ws/file.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    let root_may = std::fs::OpenOptions::new().append(true).open(&path).is_ok();
    let written = world.run(world.fence().write("file.txt", b"x".to_vec(), None));
    assert_eq!(written.is_ok(), root_may, "{written:?}");
}

#[test]
fn a_change_may_refuse_and_sizes_are_bounded() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    let refused = world.run(fence.update("file.txt", Box::new(|_| Err("no such text".into())), None)).unwrap_err();
    assert!(matches!(&refused, FsError::Refused(why) if why == "no such text"));
    let big = "x".repeat(MAX_FILE_BYTES as usize + 1);
    let (copy, bytes) = (big.clone(), big.clone().into_bytes());
    let results = [
        world.run(fence.write("file.txt", bytes, None)).map(drop),
        world.run(fence.update("file.txt", Box::new(|_| Ok(copy)), None)).map(drop),
        world.run(fence.read("file.txt", 5)).map(drop),
    ];
    for (result, want) in results.into_iter().zip([MAX_FILE_BYTES, MAX_FILE_BYTES, 5]) {
        let Err(FsError::TooLarge { size, limit, .. }) = result else { panic!("{result:?}") };
        assert_eq!((size, limit), (want + 1, want));
    }
    assert_eq!(world.run(fence.read("file.txt", 6)).unwrap().bytes, b"inside");
    assert_eq!(world.text("ws/file.txt"), "inside");
    let most = big[1..].to_owned().into_bytes();
    assert_eq!(world.run(fence.write("most", most, None)).unwrap().bytes, MAX_FILE_BYTES);
    std::fs::write(world.at("ws/big"), &big).unwrap();
    assert!(matches!(world.run(fence.read("big", u64::MAX)), Err(FsError::TooLarge { .. })));
    assert!(matches!(
        world.run(fence.update("big", Box::new(|_| Ok("x".into())), None)),
        Err(FsError::TooLarge { .. })
    ));
    assert_eq!(world.run(fence.write("big", b"x".to_vec(), None)).unwrap().previous, Previous::Unknown);
    let most = "x".repeat(MAX_PREVIOUS_BYTES as usize);
    world.run(fence.write("big", most.clone().into(), None)).unwrap();
    let edited = world.run(fence.update("big", Box::new(|text| Ok(format!("{text}!"))), None)).unwrap();
    assert_eq!(edited.previous, Previous::Content(most.into()));
    let edited = world.run(fence.update("big", Box::new(|_| Ok(String::new())), None)).unwrap();
    assert_eq!((edited.previous, edited.bytes), (Previous::Unknown, 0));
}

#[test]
fn only_text_is_edited() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    std::fs::write(world.at("ws/bytes"), b"\xff\xfe").unwrap();
    let edited = world.run(fence.update("bytes", Box::new(|_| Ok("x".into())), None));
    assert!(matches!(edited, Err(FsError::NotUtf8(_))));
    assert!(matches!(world.run(fence.read_text("bytes", 10)), Err(FsError::NotUtf8(_))));
    assert_eq!(world.run(fence.read("bytes", 10)).unwrap().bytes, b"\xff\xfe");
    assert_eq!(how(&world.run(fence.update("none", Box::new(|_| Ok("x".into())), None))), How::NotFound);
}

#[test]
fn directories_that_were_made_for_nothing_go_again() {
    let world = World::new(Mode::WorkspaceWrite);
    world.link(".", "ws/here");
    let fence = world.fence();
    let written = world.run(fence.write("new/here/../x", b"x".to_vec(), None));
    assert_eq!(how(&written), How::NotFound);
    let written = world.run(fence.write("here/ci/deploy.sh/a/b", b"x".to_vec(), None));
    assert_eq!(how(&written), How::Denied(fs::Why::Protected));
    assert!(!world.at("ws/new").exists() && !world.at("ws/ci").exists());
}

#[test]
fn a_directory_is_listed_in_order_and_within_bounds() {
    let world = World::new(Mode::ReadOnly);
    world.link("nothing", "ws/sub/z");
    std::fs::create_dir(world.at("ws/sub/a")).unwrap();
    let fence = world.fence();
    let all = world.run(fence.list("sub", 10)).unwrap();
    let entry = |name: &str, kind| Entry { name: name.into(), kind };
    let want = [entry("a", Kind::Directory), entry("deep.txt", Kind::File), entry("z", Kind::Symlink)];
    assert_eq!((all.entries.as_slice(), all.truncated, all.path), (&want[..], false, world.at("ws/sub")));
    let exactly = world.run(fence.list("sub", 3)).unwrap();
    assert_eq!((exactly.entries.len(), exactly.truncated), (3, false));
    let some = world.run(fence.list("sub", 2)).unwrap();
    assert_eq!((some.entries.len(), some.truncated), (2, true));
}

#[test]
fn a_path_is_asked_what_it_leads_to() {
    let world = World::new(Mode::ReadOnly);
    world.link("file.txt", "ws/link");
    let fence = world.fence();
    let file = world.run(fence.stat("link")).unwrap();
    let real = world.at("ws/file.txt").metadata().unwrap();
    assert_eq!((file.kind, file.size, file.modified), (Kind::File, 6, real.modified().unwrap()));
    assert_eq!(world.run(fence.stat("sub")).unwrap().kind, Kind::Directory);
}

#[test]
fn full_access_goes_where_names_lead() {
    let world = World::new(Mode::DangerFullAccess);
    world.link("../outside/secret.txt", "ws/link");
    world.link("../outside/new.txt", "ws/dangling");
    world.link("turning", "ws/turning");
    std::fs::hard_link(world.at("ws/file.txt"), world.at("ws/twin")).unwrap();
    let fence = world.fence();
    let session = world.at("home/sessions/other.jsonl");
    for path in ["link", "dangling", "../up.txt", "twin", ".git/hooks/x", session.to_str().unwrap(), "../made/for/it"] {
        world.run(fence.write(path, b"x".to_vec(), None)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    for path in
        ["outside/secret.txt", "outside/new.txt", "up.txt", "ws/twin", "home/sessions/other.jsonl", "made/for/it"]
    {
        assert_eq!(world.text(path), "x", "{path}");
    }
    assert!(world.at("ws/link").is_symlink(), "the link is kept");
    assert_eq!(how(&world.run(fence.write("turning", b"x".to_vec(), None))), How::Other);
    assert_eq!(how(&world.run(fence.read("turning/x", 9))), How::Other, "it leads nowhere, and is not denied");
    assert!(world.run(fence.read("/proc/self/status", MAX_FILE_BYTES)).unwrap().bytes.starts_with(b"Name:"));
}

#[test]
fn a_fence_needs_a_directory_and_no_home_yet() {
    let world = World::new(Mode::WorkspaceWrite);
    let scope = world.run(async { context::Scope::root("agent") });
    let open = |workspace| fs_sandbox::Fence::open(workspace, world.mode.clone(), scope.clone());
    for root in [world.at("ws/file.txt"), world.at("nowhere")] {
        assert!(matches!(open(Workspace::new(root)), Err(OpenError::Directory { .. })));
    }
    assert!(matches!(
        open(world.workspace(crate::world::Home::Beside).temp(world.at("none"))),
        Err(OpenError::Directory { .. })
    ));
    world.link("outside", "elsewhere");
    let fence = open(Workspace::new(world.at("ws")).home(world.at("elsewhere/later/home"))).unwrap();
    std::fs::create_dir_all(world.at("outside/later/home")).unwrap();
    std::fs::write(world.at("outside/later/home/x"), "x").unwrap();
    assert_eq!(how(&world.run(fence.read("../outside/later/home/x", 10))), How::Denied(fs::Why::Home));
    world.run(async { scope.close().await.unwrap() });
}
