//! What changes under the fence's hands.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use fs::{Change, FileSystem, FsError, Why};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use sandbox::{Grant, Mode};

use crate::world::{How, World, how};

/// Edits made while another thread swaps what the path leads through, or what it leads to.
#[test]
fn a_link_swapped_in_a_loop_lets_nothing_out() {
    const EDITS: usize = 2000;
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::create_dir(world.at("ws/way")).unwrap();
    for (path, text) in [("ws/way/secret.txt", "0"), ("ws/end", "0")] {
        std::fs::write(world.at(path), text).unwrap();
    }
    world.link(world.at("outside"), "ws/way-out");
    world.link("../outside/secret.txt", "ws/end-out");
    let before = world.picture("outside");
    let fence = world.fence();
    let stop = Stop(AtomicBool::new(false));
    let (swaps, mut done, mut refused) = (AtomicUsize::new(0), 0, 0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let swap = |a, b| {
                renameat_with(CWD, world.at(a), CWD, world.at(b), RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            };
            while !stop.0.load(Ordering::Relaxed) {
                swap("ws/way", "ws/way-out");
                swap("ws/end", "ws/end-out");
            }
        });
        let _at_the_end = At(&stop);
        world.run(async {
            for n in 0..EDITS {
                let change: Change = Box::new(move |_| Ok(n.to_string()));
                let result = match n % 4 {
                    0 => fence.update("way/secret.txt", change, None).await,
                    1 => fence.update("end", change, None).await,
                    2 => fence.write("way/secret.txt", n.to_string().into(), None).await,
                    _ => fence.write("end", n.to_string().into(), None).await,
                };
                match how(&result) {
                    How::Done => done += 1,
                    How::Denied(Why::Outside | Why::Symlink) | How::Changed | How::NotFound => refused += 1,
                    other => panic!("{other:?}: {result:?}"),
                }
            }
        });
    });
    assert_eq!(done + refused, EDITS);
    assert!(done > 0 && swaps.into_inner() > 0, "{done} done");
    assert_eq!(world.picture("outside"), before);
}

struct Stop(AtomicBool);

/// Stops it at the end of a block, however that ends.
struct At<'a>(&'a Stop);

impl Drop for At<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Each runs while the fence holds the file: between its reading and its writing.
#[test]
fn what_moves_during_an_edit_is_noticed() {
    type Meddle = fn(&World);
    let table: [(&str, &str, Meddle, How); 7] = [
        ("moved out", "sub/deep.txt", |w| std::fs::rename(w.at("ws/sub"), w.at("outside/sub")).unwrap(), How::NotFound),
        (
            "swapped for a link that leads out",
            "sub/deep.txt",
            |w| {
                std::fs::rename(w.at("ws/sub"), w.at("outside/sub")).unwrap();
                symlink("../outside/sub", w.at("ws/sub")).unwrap();
            },
            How::Denied(Why::Outside),
        ),
        (
            "moved into a protected place",
            "alias/deep.txt",
            |w| {
                std::fs::rename(w.at("ws/sub"), w.at("ws/.git/hooks/sub")).unwrap();
                std::fs::remove_file(w.at("ws/alias")).unwrap();
                symlink(".git/hooks/sub", w.at("ws/alias")).unwrap();
            },
            How::Denied(Why::Protected),
        ),
        (
            "another directory in its place",
            "sub/deep.txt",
            |w| {
                std::fs::rename(w.at("ws/sub"), w.at("ws/old")).unwrap();
                std::fs::create_dir(w.at("ws/sub")).unwrap();
                std::fs::write(w.at("ws/sub/deep.txt"), "deep").unwrap();
            },
            How::Changed,
        ),
        ("rewritten", "sub/deep.txt", |w| std::fs::write(w.at("ws/sub/deep.txt"), "theirs").unwrap(), How::Changed),
        ("removed", "sub/deep.txt", |w| std::fs::remove_file(w.at("ws/sub/deep.txt")).unwrap(), How::Changed),
        (
            "replaced by the same",
            "sub/deep.txt",
            |w| {
                std::fs::write(w.at("ws/other"), "deep").unwrap();
                std::fs::rename(w.at("ws/other"), w.at("ws/sub/deep.txt")).unwrap();
            },
            How::Changed,
        ),
    ];
    for (what, path, meddle, want) in table {
        let world = Arc::new(World::new(Mode::WorkspaceWrite));
        world.link("sub", "ws/alias");
        let (fence, meddler) = (world.fence(), world.clone());
        let (send, after) = mpsc::channel();
        let change: Change = Box::new(move |text| {
            assert_eq!(text, "deep");
            meddle(&meddler);
            send.send(meddler.picture("")).unwrap();
            Ok("mine".into())
        });
        let result = world.run(fence.update(path, change, None));
        assert_eq!(how(&result), want, "{what}: {result:?}");
        let (after, now) = (after.recv().unwrap(), world.picture(""));
        let texts =
            |picture: &crate::world::Picture| picture.iter().map(|(p, x)| (p.clone(), x.3.clone())).collect::<Vec<_>>();
        assert_eq!(texts(&after), texts(&now), "{what}");
    }
}

#[test]
fn agents_of_one_process_that_edit_one_file_lose_nothing() {
    const EACH: usize = 100;
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::write(world.at("ws/count"), "0").unwrap();
    let fences = [world.fence(), world.fence()];
    let count = |fence| async move {
        let fence: &fs_sandbox::Fence = fence;
        for _ in 0..EACH {
            let change: Change = Box::new(|text| Ok((text.parse::<usize>().unwrap() + 1).to_string()));
            fence.update("count", change, None).await.unwrap();
        }
    };
    world.run(async { tokio::join!(count(&fences[0]), count(&fences[0]), count(&fences[1]), count(&fences[1])) });
    assert_eq!(world.text("ws/count"), (4 * EACH).to_string());
}

#[test]
fn an_edit_that_nobody_waits_for_any_more_changes_nothing() {
    let world = World::new(Mode::WorkspaceWrite);
    let fence = world.fence();
    let (began, begun) = tokio::sync::oneshot::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let change: Change = Box::new(move |_| {
        began.send(()).unwrap();
        may_go.recv().unwrap();
        Ok("late".into())
    });
    world.run(async {
        tokio::select! {
            biased;
            _ = fence.update("file.txt", change, None) => panic!("it was held up"),
            begun = begun => begun.unwrap(),
        }
    });
    go.send(()).unwrap();
    world.close();
    assert_eq!(world.text("ws/file.txt"), "inside");
    assert_eq!(std::fs::read_dir(world.at("ws")).unwrap().count(), 4, "no temporary file is left");
    let refused = world.run(fence.write("file.txt", b"x".to_vec(), None));
    assert!(matches!(refused, Err(FsError::Closing)), "{refused:?}");
}

#[test]
fn a_switch_reaches_the_next_call_and_a_grant_only_its_own() {
    let world = World::new(Mode::ReadOnly);
    let fence = world.fence();
    let write = |path: &str, grant: Option<Grant>| how(&world.run(fence.write(path, b"x".to_vec(), grant.as_ref())));
    let (read_only, outside) = (How::Denied(Why::ReadOnly), How::Denied(Why::Outside));
    assert_eq!(write("a", None), read_only);
    assert_eq!(write("a", Some(Grant::new(Mode::WorkspaceWrite))), How::Done);
    assert_eq!(write("../b", Some(Grant::new(Mode::WorkspaceWrite))), outside);
    assert_eq!(write("../b", Some(Grant::new(Mode::DangerFullAccess))), How::Done);
    assert_eq!(world.text("b"), "x", "the root stays what relative paths are relative to");
    assert_eq!(write("a", None), read_only);
    world.mode.set(Mode::WorkspaceWrite);
    assert_eq!((fence.mode(), write("a", None), write("../b", None)), (Mode::WorkspaceWrite, How::Done, outside));
    world.mode.set(Mode::DangerFullAccess);
    assert_eq!((write("../c", None), write(".git/hooks/x", None)), (How::Done, How::Done));
    world.mode.set(Mode::ReadOnly);
    assert_eq!(write("a", None), read_only);
}
