//! What a command sees of the file system, made of mounts in a namespace of its own.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, unlinkat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};

use super::mounts::{
    NO_DEVICES, NO_EXECUTION, NO_SET_UID, READ_ONLY, at, attach, copy, fresh, memory, mount_point, restrict,
    restrict_alone,
};
use super::protect::{Bind, Hold};
use super::stage::{SetUp, Stage};
use crate::plan::{Files, Plan, Tmp};

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const TMP: &str = "/tmp";
const MEMORY: &str = "/dev/shm";
/// Memory that nobody else can limit.
const MOST_MEMORY: &str = "256m";

/// Mounts of the host as they were before it was made read-only, attached nowhere yet.
struct Taken<'a> {
    /// Where each is to be.
    roots: Vec<(&'a Path, OwnedFd)>,
    devices: Vec<(&'static str, OwnedFd)>,
    tmp: Option<OwnedFd>,
}

/// Makes the view. This process has namespaces of its own and every capability in them.
pub(crate) fn make(plan: &Plan, binds: &[Bind]) -> Result<(), SetUp> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).stage("propagation")?;
    let taken = take(plan)?;
    let root = at(Path::new("/")).stage("root")?;
    restrict(&root, READ_ONLY | NO_SET_UID | NO_DEVICES).stage("root")?;
    // Over the devices lies a file system of our own from here on, and nothing to hide with can be had anywhere else.
    let covers = devices(plan, taken.devices).stage("devices")?;
    processes().stage("processes")?;
    let tmp = temporary(plan, taken.tmp).stage("temporary directory")?;
    for (path, mount) in taken.roots {
        if plan.files == Files::ReadOnly && !plan.exceptions().any(|exception| exception == path) {
            restrict(&mount, READ_ONLY).stage_at("workspace", path.display())?;
        }
        restrict(&mount, NO_SET_UID | NO_DEVICES).stage_at("workspace", path.display())?;
        let onto = mount_point(path).stage_at("workspace", path.display())?;
        attach(mount, onto).stage_at("workspace", path.display())?;
    }
    if let Some(tmp) = tmp {
        restrict_alone(&tmp, READ_ONLY).stage("temporary directory")?;
    }
    for bind in binds {
        hold(bind).stage_at("protected path", bind.path.display())?;
    }
    covers.hide(plan)
}

fn take(plan: &Plan) -> Result<Taken<'_>, SetUp> {
    let taken = |path: &Path| at(path).and_then(copy);
    let shown = plan.files == Files::ReadOnly && shows_through(plan);
    let roots = plan.writable().chain(plan.exceptions()).chain(shown.then(|| plan.root.path()));
    let mut roots: Vec<_> = roots.collect();
    // What is around another one first, or it would cover it.
    roots.sort();
    let roots = roots.into_iter().map(|path| Ok((path, taken(path).stage_at("workspace", path.display())?)));
    let devices = DEVICES.iter().filter_map(|name| Some((*name, taken(&Path::new("/dev").join(name)).ok()?)));
    let tmp = match &plan.tmp {
        Tmp::Session(path) => Some(taken(path.path()).stage_at("temporary directory", path.path().display())?),
        Tmp::Empty | Tmp::Machine => None,
    };
    Ok(Taken { roots: roots.collect::<Result<_, SetUp>>()?, devices: devices.collect(), tmp })
}

/// Whether the session's directory is below something that is covered, though nothing of it is writable.
fn shows_through(plan: &Plan) -> bool {
    let root = plan.root.path();
    root.starts_with("/dev") || (plan.tmp == Tmp::Empty && root.starts_with(TMP))
}

/// Mounts `/dev`, and says what hides a directory or a file.
fn devices(plan: &Plan, taken: Vec<(&'static str, OwnedFd)>) -> io::Result<Covers> {
    let dev = memory(&[("mode", "755"), ("size", "64k")], NO_EXECUTION)?;
    attach(&dev, at(Path::new("/dev"))?)?;
    let inside = |name: &str| Path::new("/dev").join(name);
    for (name, mount) in taken {
        File::create(inside(name))?;
        attach(mount, at(&inside(name))?)?;
    }
    for (name, to) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        symlink(Path::new("/proc/self").join(to), inside(name))?;
    }
    let covers = Covers::make(&dev, plan.hidden.len())?;
    mkdirat(&dev, "shm", Mode::RWXU)?;
    let shared = memory(&[("mode", "1777"), ("size", MOST_MEMORY)], NO_DEVICES)?;
    attach(&shared, at(Path::new(MEMORY))?)?;
    if plan.files == Files::Writable {
        mkdirat(&dev, "pts", Mode::RWXU)?;
        let terminals = fresh("devpts", &[("ptmxmode", "0666"), ("mode", "620")], NO_SET_UID | NO_EXECUTION)?;
        attach(terminals, at(&inside("pts"))?)?;
        symlink("pts/ptmx", inside("ptmx"))?;
    } else if !plan.root.path().starts_with(MEMORY) {
        restrict_alone(&shared, READ_ONLY)?;
    }
    restrict_alone(&dev, READ_ONLY)?;
    Ok(covers)
}

/// Mounts a `/proc` of this namespace alone, which cannot be written.
fn processes() -> io::Result<()> {
    let processes = fresh("proc", &[], NO_SET_UID | NO_DEVICES | NO_EXECUTION)?;
    attach(&processes, at(Path::new("/proc"))?)?;
    super::limits::limit_namespace()?;
    restrict(&processes, READ_ONLY)
}

/// Mounts `/tmp`. What is returned is still to be made read-only.
fn temporary(plan: &Plan, taken: Option<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    match (&plan.tmp, taken) {
        (Tmp::Session(_), Some(mount)) => {
            restrict(&mount, NO_SET_UID | NO_DEVICES)?;
            attach(mount, at(Path::new(TMP))?)?;
            Ok(None)
        }
        (Tmp::Empty, _) => {
            let empty = memory(&[("mode", "755"), ("size", "64k")], NO_DEVICES)?;
            attach(&empty, at(Path::new(TMP))?)?;
            Ok(Some(empty))
        }
        (Tmp::Session(_) | Tmp::Machine, _) => Ok(None),
    }
}

/// Holds a protected path: over itself, so that it cannot be renamed or removed, and read-only if nothing below it may change.
fn hold(bind: &Bind) -> io::Result<()> {
    let onto = at(&bind.path)?;
    let mount = copy(&onto)?;
    match bind.hold {
        Hold::Name => {}
        Hold::Whole => restrict(&mount, READ_ONLY)?,
    }
    attach(mount, onto)
}

/// For each hidden path an empty directory and an empty file: one of them is put over it.
struct Covers(Vec<(OwnedFd, OwnedFd)>);

impl Covers {
    /// Copies are made while there is something attached to copy, which older kernels need.
    fn make(dev: &OwnedFd, count: usize) -> io::Result<Self> {
        const NAME: &str = "hidden";
        let place = Path::new("/dev").join(NAME);
        let covers = memory(&[("mode", "555"), ("size", "4k"), ("nr_inodes", "4")], NO_EXECUTION)?;
        mkdirat(dev, NAME, Mode::RWXU)?;
        attach(&covers, at(&place)?)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(openat(&covers, "file", flags, Mode::from_raw_mode(0o444))?);
        mkdirat(&covers, "directory", Mode::from_raw_mode(0o555))?;
        restrict(&covers, READ_ONLY | NO_SET_UID | NO_DEVICES | NO_EXECUTION)?;
        let (directory, file) = (at(&place.join("directory"))?, at(&place.join("file"))?);
        let copies = (0..count).map(|_| Ok((copy(&directory)?, copy(&file)?))).collect::<io::Result<_>>()?;
        unmount(&place, UnmountFlags::DETACH)?;
        unlinkat(dev, NAME, AtFlags::REMOVEDIR)?;
        Ok(Self(copies))
    }

    fn hide(self, plan: &Plan) -> Result<(), SetUp> {
        for (path, (directory, file)) in plan.hidden().zip(self.0) {
            let onto = match at(path) {
                Ok(onto) => onto,
                // There is nothing to hide; and nothing can be made there, for it is protected or outside.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                Err(error) => return Err(SetUp::new("hidden path", format_args!("{}: {error}", path.display()))),
            };
            let kind = fstat(&onto).map(|stat| FileType::from_raw_mode(stat.st_mode));
            let cover = if kind.stage_at("hidden path", path.display())?.is_dir() { directory } else { file };
            attach(cover, onto).stage_at("hidden path", path.display())?;
        }
        Ok(())
    }
}
