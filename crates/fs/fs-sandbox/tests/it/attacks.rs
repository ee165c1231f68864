//! What attackers and accidents try. Whatever comes of it, the outside is as it was.

use std::os::unix::net::UnixListener;
use std::path::Path;

use fs::{FileSystem, FsError, MAX_FILE_BYTES, Why};
use rustix::fs::{CWD, FileType, Mode as Permissions, mknodat};
use sandbox::{Mode, Operation};

use crate::world::{CONFINING, Home, How, World, first_line, how};

fn fifo(world: &World, path: &str) {
    mknodat(CWD, world.at(path), FileType::Fifo, Permissions::from_raw_mode(0o666), 0).unwrap();
}

/// Links and special files of every sort, below the root.
fn armed(mode: Mode) -> World {
    let world = World::new(mode);
    world.link("../outside/secret.txt", "ws/link-out");
    world.link(world.at("outside/secret.txt"), "ws/link-abs");
    world.link("../outside", "ws/dir-out");
    world.link(world.at("outside"), "ws/dir-abs");
    world.link("sub/deep.txt", "ws/link-in");
    world.link("sub", "ws/dir-in");
    world.link("../outside/new.txt", "ws/dangling-out");
    world.link("nothing", "ws/dangling-in");
    world.link("dir-in/../../outside", "ws/sneaky");
    world.link("turning", "ws/turning");
    world.link(".git/hooks", "ws/my-hooks");
    world.link(".git", "ws/my-git");
    world.link("/dev/zero", "ws/zero");
    world.link(world.at("home/sessions/other.jsonl"), "ws/session-link");
    world.link(world.at("home"), "ws/home-link");
    std::fs::hard_link(world.at("outside/secret.txt"), world.at("ws/hard")).unwrap();
    std::fs::hard_link(world.at("ws/.git/config"), world.at("ws/hard-config")).unwrap();
    fifo(&world, "ws/pipe");
    UnixListener::bind(world.at("ws/socket")).unwrap();
    world
}

fn long_name() -> String {
    "n".repeat(256)
}

#[test]
fn nothing_is_written_outside_or_where_it_is_protected() {
    use How::{Denied, IsADirectory, NotADirectory, NotAFile, NotFound};
    let world = armed(Mode::WorkspaceWrite);
    let fence = world.fence();
    let abs = |path: &str| world.at(path).to_str().unwrap().to_owned();
    let pid = std::process::id();
    let out = Denied(Why::Outside);
    let protected = Denied(Why::Protected);
    let link = Denied(Why::Symlink);
    // Path, and what becomes of a write and of an edit.
    let table: Vec<(String, How, How)> = vec![
        ("../outside/secret.txt".into(), out, out),
        ("../new.txt".into(), out, out),
        ("sub/../../outside/secret.txt".into(), out, out),
        ("sub/../../ws/../outside/secret.txt".into(), out, out),
        ("nowhere/../../outside/secret.txt".into(), NotFound, NotFound),
        (abs("outside/secret.txt"), out, out),
        (abs("ws/../outside/secret.txt"), out, out),
        ("/etc/passwd".into(), out, out),
        ("/dev/null".into(), out, out),
        // links
        ("link-out".into(), link, link),
        ("link-abs".into(), link, link),
        ("link-in".into(), link, link),
        ("dangling-out".into(), link, link),
        ("dangling-in".into(), link, link),
        ("turning".into(), link, link),
        ("dir-out/secret.txt".into(), out, out),
        ("dir-out/new.txt".into(), out, out),
        ("dir-out/new/new.txt".into(), out, out),
        ("dir-abs/secret.txt".into(), out, out),
        ("sneaky/secret.txt".into(), out, out),
        ("dangling-out/new.txt".into(), out, out),
        ("dangling-in/new.txt".into(), NotADirectory, NotFound),
        ("turning/new.txt".into(), link, link),
        ("hard".into(), Denied(Why::HardLink), Denied(Why::HardLink)),
        // processes
        (format!("/proc/self/root{}", abs("outside/secret.txt")), out, out),
        (format!("/proc/{pid}/root{}", abs("outside/secret.txt")), out, out),
        ("/proc/self/cwd/x".into(), out, out),
        ("/proc/self/fd/1".into(), out, out),
        // things that are no files
        ("pipe".into(), NotAFile, NotAFile),
        ("socket".into(), NotAFile, NotAFile),
        ("sub".into(), IsADirectory, IsADirectory),
        (".".into(), How::InvalidPath, How::InvalidPath),
        (abs("ws"), IsADirectory, IsADirectory),
        ("sub/".into(), How::InvalidPath, How::InvalidPath),
        ("file.txt/x".into(), NotADirectory, NotADirectory),
        ("pipe/x".into(), NotADirectory, NotADirectory),
        // names
        ("a\0b".into(), How::InvalidPath, How::InvalidPath),
        ("".into(), How::InvalidPath, How::InvalidPath),
        (long_name(), How::InvalidPath, How::InvalidPath),
        (format!("sub/{}/x", long_name()), How::InvalidPath, How::InvalidPath),
        ("d/".repeat(2100), How::InvalidPath, How::InvalidPath),
        ("../out\nside".into(), out, out),
        // what would run later
        (".git/config".into(), protected, protected),
        (".git/config.worktree".into(), protected, protected),
        (".git/commondir".into(), protected, protected),
        (".git/hooks".into(), protected, protected),
        (".git/hooks/pre-commit".into(), protected, protected),
        (".git/hooks/a/b".into(), protected, protected),
        (".git/modules/m/config".into(), protected, protected),
        (".git/worktrees/w/commondir".into(), protected, protected),
        (".git".into(), protected, protected),
        (".tether/config.toml".into(), protected, protected),
        ("ci/deploy.sh".into(), protected, protected),
        ("sub/../.git/config".into(), protected, protected),
        ("./.git//hooks/./x".into(), protected, protected),
        (".GIT/config".into(), protected, protected),
        (".git/HOOKS/pre-commit".into(), protected, protected),
        (".git/hooKſ/pre-commit".into(), protected, protected),
        (".g\u{200c}it/config".into(), protected, protected),
        (".git./config".into(), protected, protected),
        ("git~1/config".into(), protected, protected),
        (".Git".into(), protected, protected),
        // …by other names
        ("my-hooks/pre-commit".into(), protected, protected),
        ("my-git/hooks/pre-commit".into(), protected, protected),
        ("my-git/config".into(), protected, protected),
        ("my-git/modules/x".into(), protected, NotFound),
        ("hard-config".into(), protected, protected),
        // Tether's own
        (abs("home/sessions/other.jsonl"), Denied(Why::Home), Denied(Why::Home)),
        (abs("home/new"), Denied(Why::Home), Denied(Why::Home)),
        ("session-link".into(), link, link),
        ("home-link/sessions/other.jsonl".into(), out, out),
    ];
    let before = ["outside", "home", "ws/.git", "ws"].map(|path| world.picture(path));
    for (path, write, edit) in &table {
        let written = world.run(fence.write(path, b"mine".to_vec(), None));
        assert_eq!(how(&written), *write, "write {path:?}: {written:?}");
        let edited = world.run(fence.update(path, Box::new(|_| Ok("mine".into())), None));
        assert_eq!(how(&edited), *edit, "edit {path:?}: {edited:?}");
        let after = ["outside", "home", "ws/.git", "ws"].map(|path| world.picture(path));
        let same = before
            .iter()
            .zip(&after)
            .all(|(before, after)| without_times_of_root(before) == without_times_of_root(after));
        assert!(same, "{path:?} changed something");
        assert_eq!(before[..3], after[..3], "{path:?} touched something");
    }
}

/// A directory in which a temporary file came and went has a new time, and nothing else.
fn without_times_of_root(picture: &crate::world::Picture) -> Vec<(&Path, u32, &[u8])> {
    picture.iter().map(|(path, (mode, _, _, content))| (path.as_path(), *mode, content.as_slice())).collect()
}

#[test]
fn read_only_writes_nothing_anywhere() {
    let world = armed(Mode::ReadOnly);
    let fence = world.fence();
    let before = world.picture("");
    let absolute = world.at("outside/secret.txt");
    let (absolute, long) = (absolute.to_str().unwrap(), long_name());
    for path in ["file.txt", "new.txt", "sub/../new", "link-in", "pipe", "../x", absolute, "/dev/null", ".git/config"] {
        let written = world.run(fence.write(path, b"mine".to_vec(), None));
        let edited = world.run(fence.update(path, Box::new(|_| Ok("mine".into())), None));
        for (operation, error) in [(Operation::Write, written.unwrap_err()), (Operation::Edit, edited.unwrap_err())] {
            let denial = error.denial().unwrap_or_else(|| panic!("{path}: {error}"));
            assert_eq!((denial.operation, denial.mode), (operation, Mode::ReadOnly), "{path}");
            assert!(Path::new(&denial.target).is_absolute() && !denial.target.contains(".."), "{denial}");
        }
    }
    for path in ["", "a\0b", &long] {
        assert_eq!(how(&world.run(fence.write(path, b"mine".to_vec(), None))), How::InvalidPath);
    }
    let error = world.run(fence.write("sub/../x\ny", b"mine".to_vec(), None)).unwrap_err().to_string();
    let target = world.at(r"ws/x\ny");
    assert_eq!(error.lines().next().unwrap(), first_line(Operation::Write, &target, Mode::ReadOnly));
    assert_eq!(world.picture(""), before);
}

#[test]
fn whatever_is_readable_is_read_but_no_home_and_no_process() {
    use How::{Denied, Done, InvalidPath, IsADirectory, NotADirectory, NotAFile, NotFound};
    let home = Denied(Why::Home);
    let link = Denied(Why::Symlink);
    let process = Denied(Why::Process);
    for mode in CONFINING {
        let world = armed(mode);
        let fence = world.fence();
        let abs = |path: &str| world.at(path).to_str().unwrap().to_owned();
        let pid = std::process::id();
        let session = abs("home/sessions/other.jsonl");
        // Path, and what becomes of reading, of asking, and of listing.
        let table: Vec<(String, How, How, How)> = vec![
            ("file.txt".into(), Done, Done, NotADirectory),
            (abs("ws/file.txt"), Done, Done, NotADirectory),
            ("link-in".into(), Done, Done, NotADirectory),
            ("dir-in/deep.txt".into(), Done, Done, NotADirectory),
            ("../outside/secret.txt".into(), Done, Done, NotADirectory),
            ("link-out".into(), Done, Done, NotADirectory),
            ("link-abs".into(), Done, Done, NotADirectory),
            ("dir-abs/secret.txt".into(), Done, Done, NotADirectory),
            ("hard".into(), Done, Done, NotADirectory),
            (".git/config".into(), Done, Done, NotADirectory),
            ("dangling-out".into(), NotFound, NotFound, NotFound),
            ("nothing".into(), NotFound, NotFound, NotFound),
            ("turning".into(), How::Other, How::Other, How::Other),
            ("turning/x".into(), link, link, link),
            ("sub".into(), IsADirectory, Done, Done),
            (".".into(), IsADirectory, Done, Done),
            ("..".into(), IsADirectory, Done, Done),
            ("/".into(), IsADirectory, Done, Done),
            ("sub/".into(), IsADirectory, Done, Done),
            ("file.txt/x".into(), NotADirectory, NotADirectory, NotADirectory),
            ("pipe".into(), NotAFile, Done, NotADirectory),
            ("socket".into(), NotAFile, Done, NotADirectory),
            ("zero".into(), NotAFile, Done, NotADirectory),
            ("/dev/zero".into(), NotAFile, Done, NotADirectory),
            ("a\0b".into(), InvalidPath, InvalidPath, InvalidPath),
            (long_name(), InvalidPath, InvalidPath, InvalidPath),
            // Tether's own
            (session.clone(), home, home, home),
            (abs("home"), home, home, home),
            (abs("home/sessions/nothing"), home, home, home),
            ("../home/sessions/other.jsonl".into(), home, home, home),
            ("session-link".into(), home, home, home),
            ("home-link/sessions/other.jsonl".into(), home, home, home),
            ("home-link".into(), home, home, home),
            ("home-link/..".into(), IsADirectory, Done, Done),
            // processes
            (format!("/proc/self/root{session}"), link, link, link),
            (format!("/proc/{pid}/root{session}"), link, link, link),
            (format!("/proc/thread-self/root{session}"), link, link, link),
            ("/proc/self/root".into(), process, process, process),
            ("/proc/self/cwd".into(), process, process, process),
            ("/proc/self/cwd/Cargo.toml".into(), link, link, link),
            ("/proc/self/fd/0".into(), process, process, process),
            ("/dev/fd/0".into(), process, process, process),
            ("/dev/stdin".into(), process, process, process),
            ("/proc/self/environ".into(), process, process, process),
            ("/proc/self/mem".into(), process, process, process),
            (format!("/proc/{pid}/environ"), process, process, process),
            (format!("/proc/{pid}/task/{pid}/environ"), process, process, process),
            ("/proc".into(), process, process, process),
        ];
        let before = world.picture("");
        for (path, read, stat, list) in &table {
            let got = world.run(fence.read(path, MAX_FILE_BYTES));
            assert_eq!(how(&got), *read, "{mode}: read {path:?}: {got:?}");
            let got = world.run(fence.stat(path));
            assert_eq!(how(&got), *stat, "{mode}: stat {path:?}: {got:?}");
            let got = world.run(fence.list(path, 1000));
            assert_eq!(how(&got), *list, "{mode}: list {path:?}: {got:?}");
        }
        assert_eq!(world.picture(""), before);
    }
}

#[test]
fn home_inside_the_root_is_neither_read_nor_written() {
    for mode in CONFINING {
        let world = World::new(mode);
        world.link(".home", "ws/alias");
        world.link("sessions", "ws/.home/again");
        let fence = world.fence_around(world.workspace(Home::InsideRoot));
        let before = world.picture("ws/.home");
        let paths =
            [".home/sessions/other.jsonl", ".home/new", "alias/sessions/other.jsonl", "alias/again/new", ".HOME/x"];
        for path in paths {
            let written = how(&world.run(fence.write(path, b"mine".to_vec(), None)));
            let edited = how(&world.run(fence.update(path, Box::new(|_| Ok("mine".into())), None)));
            let want = How::Denied(if mode == Mode::ReadOnly { Why::ReadOnly } else { Why::Home });
            assert_eq!((written, edited), (want, want), "{mode} {path}");
        }
        for path in &paths[..4] {
            let read = how(&world.run(fence.read(path, 10)));
            assert_eq!(read, How::Denied(Why::Home), "{mode} {path}");
        }
        assert_eq!(world.picture("ws/.home"), before);
    }
}

#[test]
fn what_is_not_there_yet_is_protected_from_coming() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::remove_dir_all(world.at("ws/.git")).unwrap();
    world.link(".", "ws/here");
    let fence = world.fence();
    let before = world.picture("ws");
    for path in [
        ".git",
        ".git/HEAD",
        ".git/hooks/pre-commit",
        "here/.git/HEAD",
        "here/.git/hooks/pre-commit",
        "here/.tether/config.toml",
        "here/.TETHER/config.toml",
        "here/ci/deploy.sh",
        "here/CI/../ci/deploy.sh",
    ] {
        let written = world.run(fence.write(path, b"mine".to_vec(), None));
        assert!(!matches!(how(&written), How::Done), "{path}: {written:?}");
        assert_eq!(without_times_of_root(&before), without_times_of_root(&world.picture("ws")), "{path}");
    }
    world.run(fence.write("ci/other.sh", b"fine".to_vec(), None)).unwrap();
    let written = world.run(fence.write("here/ci/deploy.sh", b"mine".to_vec(), None));
    assert_eq!(how(&written), How::Denied(Why::Protected));
    assert!(!world.at("ws/ci/deploy.sh").exists());
}

#[test]
fn a_protected_place_that_is_a_link_is_protected_where_it_leads() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::remove_dir_all(world.at("ws/.git/hooks")).unwrap();
    std::fs::create_dir(world.at("ws/shared-hooks")).unwrap();
    world.link("../shared-hooks", "ws/.git/hooks");
    let fence = world.fence();
    for path in ["shared-hooks/pre-commit", "shared-hooks/d/pre-commit", ".git/hooks/pre-commit"] {
        let written = world.run(fence.write(path, b"mine".to_vec(), None));
        assert_eq!(how(&written), How::Denied(Why::Protected), "{path}");
    }
    assert_eq!(std::fs::read_dir(world.at("ws/shared-hooks")).unwrap().count(), 0);
}

#[test]
fn a_pipe_with_nobody_at_its_other_end_is_not_waited_for() {
    for mode in Mode::ALL {
        let world = armed(mode);
        let fence = world.fence();
        let read = world.run(fence.read("pipe", 10));
        assert_eq!(how(&read), How::NotAFile, "{mode}");
        let written = world.run(fence.write("pipe", b"x".to_vec(), None));
        assert!(matches!(written, Err(FsError::NotAFile { .. } | FsError::Denied(_, Why::ReadOnly))), "{written:?}");
        world.close();
    }
}

#[test]
fn full_access_still_replaces_nothing_but_files() {
    let world = armed(Mode::DangerFullAccess);
    let fence = world.fence();
    for path in ["/dev/null", "zero", "pipe", "socket"] {
        assert_eq!(how(&world.run(fence.write(path, b"x".to_vec(), None))), How::NotAFile, "{path}");
    }
    use std::os::unix::fs::FileTypeExt;
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
    assert!(world.at("ws/pipe").symlink_metadata().unwrap().file_type().is_fifo());
}
