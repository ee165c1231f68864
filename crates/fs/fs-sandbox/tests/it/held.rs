//! What is below a directory, looked through by its handle.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fs::{Directory, FileSystem, FsError, Kind, MAX_FILE_BYTES, Why};
use rustix::fs::{CWD, FileType, mknodat};
use sandbox::{Mode, Operation};

use crate::world::{CONFINING, Home, How, World, first_line, how};

const HIDDEN: How = How::Denied(Why::Home);

fn open(world: &World, fence: &fs_sandbox::Fence, path: &str) -> Box<dyn Directory> {
    world.run(fence.directory(path)).unwrap()
}

fn read(directory: &dyn Directory, name: &str) -> Result<Vec<u8>, FsError> {
    directory.read(OsStr::new(name), MAX_FILE_BYTES)
}

fn names(directory: &dyn Directory) -> Vec<String> {
    let names = directory.entries(100).unwrap().names;
    names.into_iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn names_are_as_they_are_and_in_order() {
    let world = World::new(Mode::ReadOnly);
    let odd = OsStr::from_bytes(b"a\xff\nb");
    std::fs::write(world.at("ws/sub").join(odd), "odd").unwrap();
    std::fs::create_dir(world.at("ws/sub/b")).unwrap();
    world.link("nowhere", "ws/sub/link");
    mknodat(CWD, world.at("ws/sub/pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
    let sub = open(&world, &world.fence(), "sub");
    assert_eq!(sub.path(), world.at("ws/sub"));
    let all = sub.entries(100).unwrap();
    let want = [
        (odd.to_owned(), Kind::File),
        (OsString::from("b"), Kind::Directory),
        (OsString::from("deep.txt"), Kind::File),
        (OsString::from("link"), Kind::Symlink),
        (OsString::from("pipe"), Kind::Pipe),
    ];
    assert_eq!((&all.names[..], all.truncated), (&want[..], false));
    let some = sub.entries(2).unwrap();
    assert_eq!((some.names.len(), some.truncated), (2, true));
    assert_eq!(sub.read(odd, 10).unwrap(), b"odd");
    let below = sub.directory(OsStr::new("b")).unwrap();
    assert_eq!((below.path(), names(&*below)), (&*world.at("ws/sub/b"), Vec::new()));
}

#[test]
fn a_step_takes_one_name_and_no_link() {
    let world = World::new(Mode::ReadOnly);
    world.link("../outside", "ws/out");
    world.link("sub", "ws/in");
    world.link("file.txt", "ws/alias");
    world.link("turning", "ws/turning");
    mknodat(CWD, world.at("ws/pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
    let root = open(&world, &world.fence(), ".");
    let step = |name: &str| how(&root.directory(OsStr::new(name)));
    for name in ["", ".", "..", "sub/", "sub/..", "../outside", "/", "/etc", "./sub"] {
        assert_eq!(step(name), How::InvalidPath, "{name}");
        assert_eq!(how(&read(&*root, name)), How::InvalidPath, "{name}");
    }
    for name in ["out", "in", "turning", "file.txt", "pipe"] {
        assert_eq!(step(name), How::NotADirectory, "{name}");
    }
    for name in ["alias", "out", "turning", "pipe"] {
        assert_eq!(how(&read(&*root, name)), How::NotAFile, "{name}");
    }
    assert_eq!((step("none"), how(&read(&*root, "none"))), (How::NotFound, How::NotFound));
    assert_eq!(how(&read(&*root, "sub")), How::IsADirectory);
    assert_eq!(step("a\0b"), How::Other);
    assert!(matches!(root.read(OsStr::new("file.txt"), 5), Err(FsError::TooLarge { size: 6, limit: 5, .. })));
}

#[test]
fn what_is_tethers_own_is_neither_seen_nor_opened() {
    for mode in CONFINING {
        let world = World::new(mode);
        std::fs::write(world.at("ws/key"), "key").unwrap();
        std::fs::hard_link(world.at("ws/key"), world.at("ws/twin")).unwrap();
        let workspace = world.workspace(Home::InsideRoot).home(world.at("ws/key")).home(world.at("ws/sub/later"));
        let fence = world.fence_around(workspace);
        let root = open(&world, &fence, ".");
        assert_eq!(names(&*root), [".git", "file.txt", "sub"], "{mode}");
        for name in [".home", ".HOME"] {
            assert_eq!(how(&root.directory(OsStr::new(name))), HIDDEN, "{name} ({mode})");
        }
        for name in ["key", "twin", "KEY"] {
            assert_eq!(how(&read(&*root, name)), HIDDEN, "{name} ({mode})");
        }
        assert_eq!(how(&world.run(fence.directory(".home"))), HIDDEN);
        assert_eq!(how(&world.run(fence.directory("/proc/self"))), How::Denied(Why::Process));
        let top = open(&world, &fence, "/");
        assert_eq!(how(&top.directory(OsStr::new("proc"))), How::Denied(Why::Process));
        let said = root.directory(OsStr::new(".home")).err().unwrap().to_string();
        assert!(said.starts_with(&first_line(Operation::Search, &world.at("ws/.home"), mode)), "{said}");

        let sub = root.directory(OsStr::new("sub")).unwrap();
        std::fs::write(world.at("ws/sub/later"), "x").unwrap();
        assert_eq!((names(&*sub), how(&read(&*sub, "later"))), (vec!["deep.txt".into()], HIDDEN), "looked for anew");
        std::fs::rename(world.at("ws/sub"), world.at("ws/.home/sub")).unwrap();
        assert_eq!(how(&sub.entries(10)), HIDDEN, "moved to where nothing is read");
        assert_eq!(how(&read(&*sub, "deep.txt")), HIDDEN);
    }
}

#[test]
fn the_mode_is_asked_for_at_each_step() {
    let world = World::new(Mode::DangerFullAccess);
    let fence = world.fence_around(world.workspace(Home::InsideRoot));
    let root = open(&world, &fence, ".");
    let home = root.directory(OsStr::new(".home")).unwrap();
    assert_eq!(names(&*home), ["sessions"]);
    world.mode.set(Mode::ReadOnly);
    assert_eq!((how(&home.entries(10)), how(&root.directory(OsStr::new(".home")))), (HIDDEN, HIDDEN));
}

#[test]
fn a_directory_that_was_moved_is_still_the_one() {
    let world = World::new(Mode::ReadOnly);
    let sub = open(&world, &world.fence(), "sub");
    std::fs::rename(world.at("ws/sub"), world.at("ws/moved")).unwrap();
    world.link("../outside", "ws/sub");
    assert_eq!((names(&*sub), read(&*sub, "deep.txt").unwrap()), (vec!["deep.txt".into()], b"deep".to_vec()));
    std::fs::remove_dir_all(world.at("ws/moved")).unwrap();
    assert_eq!(how(&read(&*sub, "deep.txt")), How::NotFound);
}

#[test]
fn nothing_is_looked_at_for_an_agent_that_closes() {
    let world = World::new(Mode::ReadOnly);
    let root = open(&world, &world.fence(), ".");
    world.close();
    assert!(matches!(root.entries(10), Err(FsError::Closing)));
    assert!(matches!(root.directory(OsStr::new("sub")), Err(FsError::Closing)));
    assert!(matches!(read(&*root, "file.txt"), Err(FsError::Closing)));
}
