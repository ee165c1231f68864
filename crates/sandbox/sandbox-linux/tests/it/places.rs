//! Where a command works, and what it sees there.

use std::fs;
use std::path::Path;

use sandbox::{Confinement, Mode, Network, SandboxProvider, Temp, Workspace};
use subprocess::How;

use crate::attacks::{Tier, usable};
use crate::runs::{confined, confined_by, confinement, sh};
use crate::who::Who;
use crate::yard::{Home, Yard};

/// What is mounted over the machine's own is mounted under the workspace.
#[test]
fn a_workspace_below_a_covered_directory_is_there() {
    for (tier, sandbox, _) in usable() {
        for (above, who) in
            ["/tmp", "/var/tmp", "/dev/shm"].iter().flat_map(|it| Who::all().iter().map(move |who| (it, *who)))
        {
            if !Path::new(above).is_dir() {
                continue;
            }
            let yard = Yard::below(Path::new(above), who, Home::Outside);
            let script =
                "pwd; cat src/a.txt; echo x > src/new; echo x > $OUT/file; echo x > .git/hooks/new; echo y > $TMPDIR/t";
            let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
            let text = format!("{tier:?} {above} {who}: {ran:?}");
            assert!(ran.output.text.starts_with(&format!("{}\na\n", yard.root.display())), "{text}");
            assert_eq!(fs::read_to_string(yard.root.join("src/new")).unwrap(), "x\n", "{text}");
            assert_eq!(fs::read_to_string(yard.temp.join("t")).unwrap(), "y\n", "{text}");
            assert_eq!(fs::read_to_string(yard.outside.join("file")).unwrap(), "outside\n", "{text}");
            assert!(!yard.root.join(".git/hooks/new").exists(), "{text}");

            let ran = confined(sandbox, &yard, Mode::ReadOnly, &sh("cat src/a.txt && echo x > src/other"));
            assert!(ran.output.text.starts_with("a\n") && !yard.root.join("src/other").exists(), "{ran:?}");
        }
    }
}

#[test]
fn the_temporary_directory_is_the_sessions_own() {
    for (tier, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        let yard = Yard::new(Who::Self_, Home::Outside);
        let other = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        let script = format!("echo $TMPDIR; ls {}; echo x > /tmp/x; cat $TEMP/x", other.path().display());
        let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(&script));
        let tmpdir = format!("{}\n", yard.temp.display());
        assert!(ran.output.text.starts_with(&tmpdir) && ran.output.text.ends_with("x\n"), "{tier:?} {ran:?}");
        assert!(ran.output.text.contains("No such file"), "{ran:?}");
        assert_eq!(fs::read_to_string(yard.temp.join("x")).unwrap(), "x\n");
    }
}

#[test]
fn the_machines_temporary_directory_if_it_is_shared() {
    for (tier, sandbox, _) in usable() {
        let yard = Yard::new(Who::Self_, Home::Outside);
        let shared = tempfile::tempdir_in("/tmp").unwrap();
        let target = shared.path().join("x");
        let boundary = |mode| Workspace::new(&yard.root).home(&yard.home).boundary(mode);
        let confinement = |mode| Confinement {
            boundary: boundary(mode),
            network: Network::Denied,
            temp: Temp::Shared("/tmp".into()),
        };
        let script = format!("echo x > {}; echo $TMPDIR", target.display());
        let ran = confined_by(sandbox, &yard, &confinement(Mode::ReadOnly), &sh(&script));
        assert!(!target.exists(), "{tier:?} {ran:?}");
        let ran = confined_by(sandbox, &yard, &confinement(Mode::WorkspaceWrite), &sh(&script));
        assert!(target.exists() && ran.output.text == "/tmp\n", "{tier:?} {ran:?}");
    }
}

/// A file can be hidden as well, and a place that configuration names is protected even where nothing is.
#[test]
fn files_are_hidden_and_named_places_protected() {
    for (tier, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        let yard = Yard::new(Who::Self_, Home::Outside);
        fs::write(yard.root.join(".env"), "KEY=1").unwrap();
        fs::create_dir_all(yard.root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", yard.root.join("ci")).unwrap();
        let workspace = Workspace::new(&yard.root).temp(&yard.temp).home(yard.root.join(".env"));
        let workspace = workspace.protect("ci/deploy").protect("new/deep/hooks").protect("src/a.txt");
        let confinement = Confinement {
            boundary: workspace.boundary(Mode::WorkspaceWrite),
            network: Network::Denied,
            temp: Temp::Private(yard.temp.clone()),
        };
        let script = "cat .env; echo x > .env; rm .env; mkdir real/deploy; echo x > ci/deploy; rm ci; mv real x
                      mkdir -p new/deep/hooks; echo x > new/deep/hooks/h; echo x > src/a.txt; mv src s
                      echo ok > allowed; echo ok > src/allowed; echo ok > real/allowed";
        let ran = confined_by(sandbox, &yard, &confinement, &sh(script));
        let text = format!("{tier:?} {ran:?}");
        assert!(!ran.output.text.contains("KEY"), "{text}");
        assert_eq!(fs::read_to_string(yard.root.join(".env")).unwrap(), "KEY=1", "{text}");
        assert_eq!(fs::read_to_string(yard.root.join("src/a.txt")).unwrap(), "a\n", "{text}");
        assert!(yard.root.join("ci").is_symlink() && yard.root.join("real").is_dir(), "{text}");
        assert!(!yard.root.join("real/deploy").exists() && !yard.root.join("new").exists(), "{text}");
        for allowed in ["allowed", "src/allowed", "real/allowed"] {
            assert_eq!(fs::read_to_string(yard.root.join(allowed)).unwrap(), "ok\n", "{text}");
        }
    }
}

/// A workspace that is protected as a whole, such as one whose own files are hooks.
#[test]
fn a_protected_root_is_not_written() {
    for (tier, sandbox, _) in usable() {
        let yard = Yard::new(Who::Self_, Home::Outside);
        for protected in [yard.root.clone(), yard.root.join("..")] {
            let workspace = Workspace::new(&yard.root).temp(&yard.temp).protect(protected);
            let boundary = workspace.boundary(Mode::WorkspaceWrite);
            let temp = Temp::Private(yard.temp.clone());
            let confinement = Confinement { boundary, network: Network::Denied, temp };
            let script = "echo x > pre-commit; echo x > src/a.txt; echo x > src/new; echo tried";
            let ran = confined_by(sandbox, &yard, &confinement, &sh(script));
            let made = ["pre-commit", "src/new"].map(|name| yard.root.join(name).exists());
            assert!(made == [false; 2] && ran.output.text.ends_with("tried\n"), "{tier:?} {ran:?}");
            assert_eq!(fs::read_to_string(yard.root.join("src/a.txt")).unwrap(), "a\n", "{tier:?} {ran:?}");
        }
    }
}

/// A `.git` that is a link, or a file as in a worktree.
#[test]
fn a_repository_elsewhere_is_held_where_it_is() {
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        let yard = Yard::new(Who::Self_, Home::Outside);
        fs::rename(yard.root.join(".git"), yard.root.join("data")).unwrap();
        std::os::unix::fs::symlink("data", yard.root.join(".git")).unwrap();
        let script = "echo x > .git/hooks/h; echo x > data/hooks/h2; rm .git; mv data d; echo x >> data/config; echo x > data/ok";
        let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
        assert!(yard.root.join(".git").is_symlink() && yard.root.join("data/ok").is_file(), "{ran:?}");
        assert_eq!(fs::read_dir(yard.root.join("data/hooks")).unwrap().count(), 1, "{ran:?}");
        assert_eq!(fs::read_to_string(yard.root.join("data/config")).unwrap().lines().count(), 2, "{ran:?}");

        let yard = Yard::new(Who::Self_, Home::Outside);
        fs::remove_dir_all(yard.root.join(".git")).unwrap();
        fs::write(yard.root.join(".git"), "gitdir: /elsewhere").unwrap();
        let script = "echo 'gitdir: evil' > .git; rm .git; mv .git x; mkdir .git";
        let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
        assert_eq!(fs::read_to_string(yard.root.join(".git")).unwrap(), "gitdir: /elsewhere", "{ran:?}");
    }
}

/// Replaced from outside, a file is no longer what was mounted over. Tether's own directory changes all the time.
#[test]
fn what_changes_from_outside_is_told() {
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        for (changed, told) in
            [(".git/config", true), ("src/a.txt", false), ("own/home/log", false), ("own/home/new", false)]
        {
            let yard = Yard::new(Who::Self_, Home::Inside);
            let root = &yard.root;
            let ran = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !root.join("ready").exists() {
                        std::thread::yield_now();
                    }
                    fs::write(root.join("new"), "changed").unwrap();
                    fs::rename(root.join("new"), root.join(changed)).unwrap();
                    fs::write(root.join("go"), "").unwrap();
                });
                let script = "touch ready; until [ -e go ]; do sleep 0.01; done";
                confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script))
            });
            let notes: Vec<_> = ran.notes.iter().filter(|note| note.contains("something outside")).collect();
            assert_eq!(notes.len(), usize::from(told), "{changed}: {ran:?}");
            assert!(!told || notes[0].contains(changed), "{changed}: {ran:?}");
        }
    }
}

/// In a network of its own there is still a loopback device; and without a denial there is the machine's.
#[test]
fn the_network_is_what_is_said() {
    for (tier, sandbox, _) in usable() {
        let yard = Yard::new(Who::Self_, Home::Outside);
        let script = "cat /proc/net/dev | wc -l";
        let lines = |network| {
            let confinement = Confinement { network, ..confinement(&yard, Mode::WorkspaceWrite) };
            confined_by(sandbox, &yard, &confinement, &sh(script)).output.text
        };
        let host = format!("{}\n", fs::read_to_string("/proc/net/dev").unwrap().lines().count());
        assert_eq!(lines(Network::Allowed), host, "{tier:?}");
        assert_eq!(lines(Network::Denied), if tier == Tier::Best { "3\n" } else { &host }, "{tier:?}");
        if tier == Tier::Best {
            let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &crate::attacks::programs::argv("own loopback"));
            assert!(ran.output.text.contains("reached itself"), "{ran:?}");
        }
        let argv = crate::attacks::programs::argv("tcp");
        let allowed = Confinement { network: Network::Allowed, ..confinement(&yard, Mode::WorkspaceWrite) };
        let ran = confined_by(sandbox, &yard, &allowed, &argv);
        assert!(ran.output.text.contains("ESCAPED: connect"), "{tier:?} {ran:?}");
        let ran = confined_by(sandbox, &yard, &allowed, &crate::attacks::programs::argv("unix socket"));
        assert!(!ran.output.text.contains("ESCAPED"), "{tier:?}: never by a path: {ran:?}");
    }
}

#[test]
fn a_command_ends_as_it_ends() {
    for (tier, sandbox, _) in usable() {
        let yard = Yard::new(Who::Self_, Home::Outside);
        for (script, how) in [
            ("exit 7", How::Exited(7)),
            ("exit 255", How::Exited(255)),
            ("kill -TERM $$", How::Signaled(15)),
            ("kill -KILL $$", How::Signaled(9)),
            ("sleep 100 & exit 3", How::Exited(3)),
        ] {
            let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
            assert_eq!(ran.how, how, "{tier:?} {script}");
        }
        assert_eq!(sandbox.name(), "linux");
    }
}

/// An exception is writable under either mode, and nothing else becomes so; what an agent is denied there is not shown as denied.
// D-62
#[test]
fn an_exception_is_writable_whatever_the_mode_is() {
    for (tier, sandbox, _) in usable() {
        for (who, mode) in Who::all().iter().flat_map(|who| [(*who, Mode::ReadOnly), (*who, Mode::WorkspaceWrite)]) {
            let yard = Yard::new(who, Home::Outside);
            let state = yard.outside.join("state");
            fs::create_dir(&state).unwrap();
            fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
            let workspace = Workspace::new(&yard.root).temp(&yard.temp).home(&yard.home);
            let boundary = workspace.boundary_except(mode, std::slice::from_ref(&state)).unwrap();
            let confinement = Confinement { boundary, ..confinement(&yard, mode) };
            let script = "echo x > $OUT/state/new; mkdir $OUT/state/d && mv $OUT/state/new $OUT/state/d/x; \
                          echo x > $OUT/new; echo x > $OUT/state/../other; mv $OUT/state $OUT/moved; rm -r $OUT/state; \
                          echo x > src/new; echo x > .git/hooks/new";
            let ran = confined_by(sandbox, &yard, &confinement, &sh(&format!("{script}; cat $OUT/state/d/x; true")));
            let text = format!("{tier:?} {who} {mode}: {ran:?}");
            assert!(!yard.outside.join("new").exists() && !yard.outside.join("other").exists(), "{text}");
            assert!(state.is_dir() && !yard.outside.join("moved").exists(), "{text}");
            assert_eq!(yard.root.join("src/new").exists(), mode == Mode::WorkspaceWrite, "{text}");
            assert!(!yard.root.join(".git/hooks/new").exists(), "{text}");
            let ran = confined_by(sandbox, &yard, &confinement, &sh("echo again > $OUT/state/again"));
            assert_eq!(fs::read_to_string(state.join("again")).unwrap(), "again\n", "{ran:?}");
            let (argv, said) =
                (sh("true"), format!("sh: cannot create {}: Read-only file system", state.join("x").display()));
            let command = sandbox::CommandLine { argv: &argv, cwd: &yard.root };
            assert_eq!(sandbox.evidence(&command, &confinement, &said), None);
        }
    }
}

/// Sessions' temporary directories are in one, which goes with the last of them, but not while a command runs that is to write
/// nothing there: the next session would make it anew.
#[test]
fn where_sessions_have_theirs_stays_while_a_command_runs() {
    use rustix::fs::{FlockOperation, flock};
    for (_, sandbox, _) in usable().into_iter().filter(|(tier, ..)| *tier == Tier::Best) {
        for is_there in [true, false] {
            let yard = Yard::new(Who::Self_, Home::Outside);
            let place = yard.temp.join(format!("tether-{}", rustix::process::geteuid().as_raw()));
            if is_there {
                fs::create_dir_all(place.join("tether-abcdef/output")).unwrap();
            }
            let workspace = Workspace::new(&yard.root).temp(&yard.temp).home(&yard.home).protect(&place);
            let confinement = Confinement {
                boundary: workspace.boundary(Mode::WorkspaceWrite),
                network: Network::Denied,
                temp: Temp::Shared(yard.temp.clone()),
            };
            let script = "touch ran; until [ -e go ]; do sleep 0.01; done; cd $TMPDIR; for i in tether-*; do \
                          echo x > $i/new; mv $i other; done; mkdir tether-abc; echo tried";
            let is_free = || {
                let opened = fs::File::open(&place).unwrap();
                flock(&opened, FlockOperation::NonBlockingLockExclusive).is_ok()
            };
            let ran = std::thread::scope(|scope| {
                let running = scope.spawn(|| confined_by(sandbox, &yard, &confinement, &sh(script)));
                while !yard.root.join("ran").exists() && !running.is_finished() {
                    std::thread::yield_now();
                }
                assert!(!is_free(), "whoever wants to remove it is told that it is needed");
                if !is_there {
                    // One that begins meanwhile.
                    fs::create_dir(place.join("tether-abcdef")).unwrap();
                }
                fs::write(yard.root.join("go"), "").unwrap();
                running.join().unwrap()
            });
            assert!(ran.output.text.ends_with("tried\n") && is_free(), "{ran:?}");
            let names: Vec<_> = fs::read_dir(&place).unwrap().map(|it| it.unwrap().file_name()).collect();
            assert_eq!(names, ["tether-abcdef"], "{ran:?}");
            assert!(yard.temp.join("tether-abc").exists(), "beside it anything may be made");
        }
    }
}
