//! Files that somebody prepared.

use std::fs;
use std::os::unix::fs::symlink;

use app_boot::{Boot, Env};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::world::{PROJECTS, USERS, World};

#[track_caller]
fn check(world: &World, file: &str, part: &str) {
    let wrong = world.load().unwrap_err();
    let [told] = &wrong[..] else { panic!("{wrong:#?}") };
    assert!(told.starts_with(&format!("{file}: ")) && told.contains(part), "{told}\nshould say: {part}");
}

#[test]
fn what_is_no_text_file() {
    for file in [USERS, PROJECTS] {
        let world = World::new();
        world.write(file, b"\n\nmodel = '\xff'");
        check(&world, file, "line 3 is not UTF-8");
        world.write(file, vec![b'#'; 256 * 1024 + 1]);
        check(&world, file, "more than 262144 bytes");
        fs::remove_file(world.path(file)).unwrap();
        fs::create_dir(world.path(file)).unwrap();
        check(&world, file, "not a regular file");
        fs::remove_dir(world.path(file)).unwrap();
        // Nobody writes it, and whoever waits for that waits forever.
        mknodat(CWD, world.path(file), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        check(&world, file, "not a regular file");
    }
}

#[test]
fn a_file_of_keys_that_is_none() {
    let world = World::new();
    let pipe = world.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for (path, part) in
        [(pipe, "not a regular file"), ("/".into(), "not a regular file"), ("/nowhere".into(), "No such")]
    {
        let told = Boot::new(Env::of(&[("HOME", "/u")]), None, Some(&path)).unwrap_err().to_string();
        assert!(told.starts_with(path.to_str().unwrap()) && told.contains(part), "{told}");
    }
}

#[test]
fn a_home_that_is_no_directory() {
    let world = World::new();
    let file = world.write("file", "x");
    for home in [file.clone(), file.join("below")] {
        let told = Boot::new(Env::of(&[("HOME", "/u")]), Some(home.clone()), None).unwrap_err();
        assert_eq!(told.to_string(), format!("{}: not a directory, and sessions are kept in one", home.display()));
    }
    Boot::new(Env::of(&[("HOME", "/u")]), Some(world.path("not/yet")), None).unwrap();
}

#[test]
fn a_users_file_may_be_a_link() {
    let world = World::new();
    world.write("dotfiles/tether.toml", "[budget]\nmax_depth = 1");
    fs::create_dir_all(world.path("config/tether")).unwrap();
    symlink(world.path("dotfiles/tether.toml"), world.path(USERS)).unwrap();
    assert_eq!(world.told("budget.max_depth"), "1 config/tether/config.toml:2");
    fs::remove_file(world.path(USERS)).unwrap();
    symlink("config.toml", world.path(USERS)).unwrap();
    check(&world, USERS, "symbolic links");
    fs::remove_file(world.path(USERS)).unwrap();
    symlink("/dev/zero", world.path(USERS)).unwrap();
    check(&world, USERS, "not a regular file");
}

#[test]
fn a_projects_file_is_no_link() {
    let world = World::new();
    let secret = world.write("user/secret", "hunter2 = 1");
    fs::create_dir_all(world.path("project/.tether")).unwrap();
    for target in [secret.to_str().unwrap(), "/dev/zero", "nowhere", "config.toml"] {
        symlink(target, world.path(PROJECTS)).unwrap();
        check(&world, PROJECTS, "a link: a project's configuration is a file of its own");
        fs::remove_file(world.path(PROJECTS)).unwrap();
    }
    // Nor is the directory that it stands in.
    fs::remove_dir(world.path("project/.tether")).unwrap();
    world.write("user/elsewhere/config.toml", "hunter2 = 1");
    symlink(world.path("user/elsewhere"), world.path("project/.tether")).unwrap();
    check(&world, "project/.tether", "a link");
}

#[test]
fn no_file_is_no_configuration() {
    World::new().load().unwrap();
    let world = World::new();
    world.write("project/.tether", "a file");
    world.load().unwrap();
    // The project itself may be reached by a link.
    world.write("real/.tether/config.toml", "[budget]\nmax_depth = 1");
    symlink(world.path("real"), world.path("linked")).unwrap();
    let config = world.boot().configure(&world.path("linked"), Default::default()).unwrap();
    assert_eq!(config.max_depth.value, 1);
}

#[test]
fn what_is_no_toml() {
    let deep = format!("a{} = 1", ".a".repeat(100_000));
    let nested = format!("a = {}", "[".repeat(100_000));
    let cases =
        [("\n\n]]", 3), ("model = ", 1), ("[budget]\nmax_depth = 1\nmax_depth = 2", 3), (&deep, 1), (&nested, 1)];
    for (text, line) in cases {
        let wrong = World::of("", text).load().unwrap_err();
        let [told] = &wrong[..] else { panic!("{wrong:#?}") };
        assert!(told.starts_with(&format!("{PROJECTS}:{line}: ")) && !told.contains('\n'), "{told}");
        assert!(told.len() < 1000, "{} bytes", told.len());
    }
}

#[test]
fn thousands_of_values_are_read_at_once() {
    let names: String = (0..20_000).map(|at| format!("'a{at}',\n")).collect();
    let text = format!("[tools]\nallow = [\n{names}]\ndeny = ['b']");
    let world = World::of(&text, &text);
    let config = world.load().unwrap();
    assert_eq!((config.tools.allow.unwrap().value.len(), config.tools.deny.len()), (20_000, 1));
}
