//! Taking more than a share of the machine.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, getrlimit};
use sandbox::Mode;

use super::{Tier, programs, usable};
use crate::runs::{confined, sh};
use crate::who::Who;
use crate::yard::{Home, Yard};

#[test]
fn a_fork_bomb_goes_off_alone() {
    for (tier, sandbox, open) in usable() {
        for who in Who::all() {
            if tier == Tier::WithoutNamespaces && who.is_root() {
                assert!(open.iter().any(|line| line.starts_with("fork bombs")), "{open:?}");
                continue;
            }
            let yard = Yard::new(*who, Home::Outside);
            let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &programs::argv("fork bomb"));
            let text = &ran.output.text;
            let made = text.strip_prefix("made ").and_then(|text| text.split(' ').next()?.parse().ok());
            // Without namespaces, what else runs on the machine is counted too.
            let most = if tier == Tier::Best { 4_200 } else { 5_900 };
            assert!(made.is_some_and(|made: u32| made > 1_000 && made < most), "{tier:?} {who}: {ran:?}");
            assert_eq!(yard.survivors(), [0_u32; 0], "{tier:?} {who}");
        }
    }
}

/// What fills is memory that is limited, and a directory that is the session's own.
#[test]
fn filling_the_temporary_directory_leaves_the_machines_alone() {
    for (tier, sandbox, _) in usable() {
        for who in Who::all() {
            let yard = Yard::new(*who, Home::Outside);
            let name = format!("filled-{}", std::process::id());
            let script = format!(
                "head -c 32m /dev/zero > $TMPDIR/{name}; head -c 300m /dev/zero > /dev/shm/{name}; wc -c < /dev/shm/{name};
                 head -c 1m /dev/zero > /tmp/{name}; head -c 1m /dev/zero > /var/tmp/{name}; true"
            );
            let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(&script));
            let on_host =
                ["/dev/shm", "/tmp", "/var/tmp"].map(|dir| Path::new(dir).join(&name)).map(|path| path.exists());
            assert_eq!(on_host, [false; 3], "{tier:?} {who}: {}", ran.output.text);
            let filled = fs::metadata(yard.temp.join(&name)).unwrap().len();
            let last = if tier == Tier::Best { 1 << 20 } else { 32 << 20 };
            assert_eq!(filled, last, "{tier:?} {who}: {}", ran.output.text);
            let memory = ran.output.text.lines().find_map(|line| line.parse::<u64>().ok());
            assert_eq!(memory, (tier == Tier::Best).then_some(256 << 20), "{tier:?} {who}: {}", ran.output.text);
        }
    }
}

#[test]
fn limits_are_set() {
    for (tier, sandbox, _) in usable() {
        for who in Who::all() {
            let yard = Yard::new(*who, Home::Outside);
            let ran = confined(sandbox, &yard, Mode::ReadOnly, &sh("grep -e processes -e core /proc/self/limits"));
            let limit = |name| {
                let line = ran.output.text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
                line.split_whitespace().next().and_then(|limit| limit.parse::<u64>().ok())
            };
            let core = getrlimit(Resource::Core).maximum.map_or(1, |limit| limit.min(1));
            assert_eq!(limit("Max core file size"), Some(core), "{tier:?} {who}: {ran:?}");
            let most = limit("Max processes").unwrap_or_else(|| panic!("{tier:?} {who}: {ran:?}"));
            assert!(most == 4_096 || (tier == Tier::WithoutNamespaces && most > 4_096), "{tier:?} {who}: {most}");
        }
    }
}

/// Mounts do not hold devices. Landlock is behind them, also where there are namespaces.
#[test]
fn devices_are_held_as_well() {
    for (tier, sandbox, _) in usable() {
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
            let yard = Yard::new(Who::Self_, Home::Outside);
            let script = "echo x > /dev/urandom && echo WROTE; head -c1 /dev/urandom >/dev/null && echo x > /dev/zero && echo done";
            let ran = confined(sandbox, &yard, mode, &sh(script));
            assert!(ran.output.text.ends_with("done\n") && !ran.output.text.contains("WROTE"), "{tier:?}: {ran:?}");
        }
    }
}

#[test]
fn nothing_can_be_written_read_only() {
    for (tier, sandbox, _) in usable() {
        for who in Who::all() {
            let yard = Yard::new(*who, Home::Outside);
            let script = "for d in . $TMPDIR /tmp /dev/shm /dev /proc /run /var/tmp $HOME; do echo x > $d/new && echo WROTE $d; done
                          echo x > /dev/null && echo x >&1 && echo done";
            let ran = confined(sandbox, &yard, Mode::ReadOnly, &sh(script));
            assert!(!ran.output.text.contains("WROTE"), "{tier:?} {who}: {}", ran.output.text);
            assert!(ran.output.text.ends_with("done\n"), "{tier:?} {who}: {}", ran.output.text);
        }
    }
}

/// A descriptor that the harness has open for writing, and that is not closed by itself.
#[test]
fn descriptors_of_the_harness_are_not_inherited() {
    for (tier, sandbox, _) in usable() {
        let yard = Yard::new(Who::Self_, Home::Outside);
        let leaked = fs::File::options().append(true).open(yard.outside.join("file")).unwrap();
        fcntl_setfd(&leaked, FdFlags::empty()).unwrap();
        let script = format!(
            "echo x >&{}; for f in /proc/self/fd/*; do echo ${{f##*/}} $(readlink $f); done",
            leaked.as_raw_fd()
        );
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
            let ran = confined(sandbox, &yard, mode, &sh(&script));
            let text = &ran.output.text;
            assert_eq!(fs::read_to_string(yard.outside.join("file")).unwrap(), "outside\n", "{tier:?} {text}");
            assert!(
                !text.contains("outside/file") && !text.contains("3 pipe") && !text.contains("4 pipe"),
                "{tier:?} {text}"
            );
        }
    }
}
