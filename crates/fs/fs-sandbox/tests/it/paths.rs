//! Whatever the path: nothing outside changes, and nothing is read that is Tether's.

use fs::FileSystem;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sandbox::Mode;

use crate::world::{CONFINING, Picture, World};

const PARTS: [&str; 28] = [
    "..",
    ".",
    "",
    "ws",
    "sub",
    "file.txt",
    "deep.txt",
    "outside",
    "secret.txt",
    "home",
    "sessions",
    "other.jsonl",
    "out",
    "up",
    "root",
    "in",
    ".git",
    "hooks",
    "HOOKS",
    "config",
    "new",
    "proc",
    "self",
    "cwd",
    "tmp",
    "\0",
    "\n",
    "~",
];

fn path(top: String) -> impl Strategy<Value = String> {
    let part = prop_oneof![12 => prop::sample::select(&PARTS[..]).prop_map(String::from), 1 => "\\PC{1,3}"];
    let start = prop::sample::select(vec![String::new(), "/".into(), format!("{top}/"), format!("{top}/ws/")]);
    (start, prop::collection::vec(part, 1..8)).prop_map(|(start, parts)| start + &parts.join("/"))
}

/// What no path may change: the outside, Tether's home, and what git would run.
fn guarded(world: &World) -> [Picture; 3] {
    let mut git = world.picture("ws/.git");
    git.retain(|path, _| {
        path.strip_prefix(world.at("ws/.git")).is_ok_and(|p| p.starts_with("hooks") || p.starts_with("config"))
    });
    [world.picture("outside"), world.picture("home"), git]
}

#[test]
fn no_path_leads_out() {
    for mode in CONFINING {
        let world = World::new(mode);
        world.link("../outside", "ws/out");
        world.link("..", "ws/up");
        world.link("/", "ws/root");
        world.link("sub", "ws/in");
        std::fs::write(world.at("home/sessions/other.jsonl"), "their log").unwrap();
        let fence = world.fence();
        let before = guarded(&world);
        let mut runner = TestRunner::new(ProptestConfig { cases: 600, failure_persistence: None, ..<_>::default() });
        let every = |path: String| {
            let read = world.run(fence.read(&path, 100));
            prop_assert!(read.is_err() || read.is_ok_and(|read| read.bytes != b"their log"));
            let edited = world.run(fence.update(&path, Box::new(|_| Ok("mine".into())), None));
            let written = world.run(fence.write(&path, b"mine".to_vec(), None));
            if mode == Mode::ReadOnly {
                prop_assert!(edited.is_err() && written.is_err());
            }
            prop_assert_eq!(&before, &guarded(&world));
            Ok(())
        };
        runner.run(&path(world.top.to_str().unwrap().to_owned()), every).unwrap();
    }
}
