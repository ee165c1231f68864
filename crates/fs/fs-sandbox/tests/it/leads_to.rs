//! What somebody is shown who decides on a write is what that write then reaches.

use fs::FileSystem;
use sandbox::Mode;

use crate::world::{How, World, how};

#[test]
fn an_unconfined_write_lands_where_it_was_said_to() {
    let world = World::new(Mode::DangerFullAccess);
    world.link("../outside/new.txt", "ws/dangling");
    world.link("dangling", "ws/twice");
    world.link(world.at("outside/absolute.txt"), "ws/absolute");
    world.link("../outside", "ws/out");
    world.link("file.txt", "ws/link");
    let fence = world.fence();
    for (path, want) in [
        ("twice", "outside/new.txt"),
        ("dangling", "outside/new.txt"),
        ("absolute", "outside/absolute.txt"),
        ("out/x", "outside/x"),
        ("out/../up.txt", "up.txt"),
        ("made/for/it", "ws/made/for/it"),
        ("link", "ws/file.txt"),
        ("sub/./../plain", "ws/plain"),
    ] {
        assert_eq!(world.run(fence.leads_to(path)).unwrap(), world.at(want), "{path}");
        world.run(fence.write(path, path.as_bytes().to_vec(), None)).unwrap();
        assert_eq!(world.text(want), path);
    }
}

#[test]
fn what_cannot_be_told_is_not_guessed() {
    let world = World::new(Mode::ReadOnly);
    world.link("turning", "ws/turning");
    let fence = world.fence();
    assert_eq!(how(&world.run(fence.leads_to("turning"))), How::Other);
    assert_eq!(how(&world.run(fence.leads_to("/proc/self/root/etc/x"))), How::Other);
    assert_eq!(how(&world.run(fence.leads_to("nowhere/../x"))), How::NotFound);
    assert_eq!(how(&world.run(fence.leads_to("file.txt/../x"))), How::NotADirectory);
    assert_eq!(how(&world.run(fence.leads_to("a\0b"))), How::InvalidPath);
    std::fs::rename(world.at("ws"), world.at("moved")).unwrap();
    assert_eq!(how(&world.run(fence.leads_to("file.txt"))), How::NotFound);
    std::fs::create_dir(world.at("ws")).unwrap();
    assert_eq!(how(&world.run(fence.leads_to("file.txt"))), How::Changed);
}
