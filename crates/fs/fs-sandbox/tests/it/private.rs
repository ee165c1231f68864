//! What is Tether's own: several places, files among them, some of them links, some not there yet.

use fs::{FileSystem, MAX_FILE_BYTES, Why};
use sandbox::{Mode, Operation, Workspace};

use crate::world::{CONFINING, How, World, first_line, how};

const HIDDEN: How = How::Denied(Why::Home);

/// A configuration directory and a file of keys, inside the root and outside, and a home whose sessions are elsewhere.
fn furnished(mode: Mode) -> World {
    let world = World::new(mode);
    for path in ["config", "ws/config", "ws/logs"] {
        std::fs::create_dir(world.at(path)).unwrap();
    }
    for path in ["config/config.toml", "config/.env", "ws/config/.env", "ws/.env", "ws/logs/old.jsonl", "keys"] {
        std::fs::write(world.at(path), "key").unwrap();
    }
    world.link(world.at("ws/logs"), "home/kept");
    world.link("../ws/later", "home/coming");
    world.link("../config/.env", "ws/link");
    world.link("config", "ws/alias");
    std::fs::hard_link(world.at("keys"), world.at("ws/twin")).unwrap();
    world
}

fn workspace(world: &World) -> Workspace {
    let private = ["home", "home/kept", "home/coming", "config", "ws/config", "ws/.env", "keys", "ws/none/yet"];
    private.iter().fold(Workspace::new(world.at("ws")), |workspace, path| workspace.home(world.at(path)))
}

#[test]
fn nothing_of_it_is_read_under_confinement() {
    for mode in CONFINING {
        let world = furnished(mode);
        let fence = world.fence_around(workspace(&world));
        for path in [
            "../home/sessions/other.jsonl",
            "../config/config.toml",
            "../config/.env",
            "../keys",
            "config/.env",
            "alias/.env",
            ".env",
            "link",
            "twin",
            "logs/old.jsonl",
            "../home/kept/old.jsonl",
        ] {
            assert_eq!(how(&world.run(fence.read(path, MAX_FILE_BYTES))), HIDDEN, "{path} ({mode})");
            assert_eq!(how(&world.run(fence.stat(path))), HIDDEN, "{path} ({mode})");
        }
        for path in ["../home", "../config", "config", "alias", "logs", "../home/kept"] {
            assert_eq!(how(&world.run(fence.list(path, 10))), HIDDEN, "{path} ({mode})");
        }
        assert_eq!(world.run(fence.read("file.txt", MAX_FILE_BYTES)).unwrap().bytes, b"inside");
    }
}

#[test]
fn nothing_of_it_is_written_where_the_root_holds_it() {
    let world = furnished(Mode::WorkspaceWrite);
    let before = [world.picture("home"), world.picture("config"), world.picture("ws")];
    let fence = world.fence_around(workspace(&world));
    for path in [
        "config/.env",
        "config/new",
        "alias/.env",
        ".env",
        ".ENV",
        "twin",
        "logs/old.jsonl",
        "logs/new",
        "later",
        "later/new",
        "none/yet",
        "none/yet/new",
    ] {
        let write = world.run(fence.write(path, b"x".to_vec(), None));
        assert_eq!(how(&write), HIDDEN, "{path}");
        let said = write.unwrap_err().to_string();
        assert!(said.starts_with(&first_line(Operation::Write, &world.at("ws").join(path), Mode::WorkspaceWrite)));
        let update = world.run(fence.update(path, Box::new(|_| Ok("x".into())), None));
        assert!(matches!(how(&update), HIDDEN | How::NotFound), "{path}");
    }
    assert_eq!(before[..2], [world.picture("home"), world.picture("config")]);
    let after = world.picture("ws");
    assert_eq!(before[2].keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert!(before[2].iter().zip(&after).all(|(before, after)| before.1.3 == after.1.3));
    world.run(fence.write("none/other", b"x".to_vec(), None)).unwrap();
}

#[test]
fn a_root_above_it_does_not_open_it() {
    let world = furnished(Mode::WorkspaceWrite);
    let workspace = Workspace::new(&world.top).home(world.at("config")).home(world.at("home"));
    let fence = world.fence_around(workspace);
    for path in ["config/config.toml", "config/new", "home/sessions/other.jsonl"] {
        assert_eq!(how(&world.run(fence.write(path, b"x".to_vec(), None))), HIDDEN, "{path}");
    }
    assert_eq!(world.text("config/config.toml"), "key");
    let within = world.fence_around(Workspace::new(world.at("config")).home(world.at("config")));
    assert_eq!(how(&world.run(within.read("config.toml", 10))), HIDDEN);
    assert_eq!(how(&world.run(within.write("config.toml", b"x".to_vec(), None))), HIDDEN);
}

#[test]
fn it_is_looked_for_anew_each_time() {
    let world = furnished(Mode::WorkspaceWrite);
    let fence = world.fence_around(workspace(&world));
    std::fs::remove_file(world.at("home/kept")).unwrap();
    world.link("../ws/sub", "home/kept");
    assert_eq!(how(&world.run(fence.read("sub/deep.txt", 10))), HIDDEN);
    std::fs::create_dir_all(world.at("ws/later")).unwrap();
    std::fs::write(world.at("ws/later/x"), "x").unwrap();
    assert_eq!(how(&world.run(fence.read("later/x", 10))), HIDDEN);
    std::fs::create_dir(world.at("ws/none")).unwrap();
    world.link("none", "ws/way");
    assert_eq!(how(&world.run(fence.read("way/yet", 10))), HIDDEN, "also while it is being replaced");
    assert_eq!(how(&world.run(fence.write("way/yet", b"x".to_vec(), None))), HIDDEN);
}

#[test]
fn a_link_that_is_its_own_stays_so_when_the_way_to_it_leads_elsewhere() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::write(world.at("keys"), "key").unwrap();
    world.link("sub", "ws/way");
    world.link("../../keys", "ws/sub/keys");
    let fence = world.fence_around(Workspace::new(world.at("ws")).home(world.at("ws/way/keys")));
    // As a command may do it, which is not held by this fence.
    std::fs::remove_file(world.at("ws/way")).unwrap();
    std::fs::remove_file(world.at("ws/sub/keys")).unwrap();
    for path in ["sub/keys", "way/keys"] {
        assert_eq!(how(&world.run(fence.write(path, b"x".to_vec(), None))), HIDDEN, "{path}");
        assert!(!world.at("ws").join(path).exists());
    }
    world.run(fence.write("sub/other", b"x".to_vec(), None)).unwrap();
}

#[test]
fn full_access_reaches_it() {
    let world = furnished(Mode::DangerFullAccess);
    let fence = world.fence_around(workspace(&world));
    assert_eq!(world.run(fence.read("../config/.env", 10)).unwrap().bytes, b"key");
    world.run(fence.write(".env", b"new".to_vec(), None)).unwrap();
    assert_eq!(world.text("ws/.env"), "new");
}
