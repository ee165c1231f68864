//! Mounts, by handles: no path is followed through a link.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string,
    fsmount, fsopen, move_mount, open_tree,
};

use crate::sys;

pub(crate) const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
pub(crate) const NO_SET_UID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
pub(crate) const NO_DEVICES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NODEV;
pub(crate) const NO_EXECUTION: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;

/// What is at a path. No part of it may be a link but the last, which is then what is opened.
pub(crate) fn at(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

/// A copy of the mount that `at` is at, from there on, that is attached nowhere.
pub(crate) fn copy(at: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(at, "", flags | OpenTreeFlags::AT_RECURSIVE)?)
}

/// Puts a mount over what `onto` is.
pub(crate) fn attach(mount: impl AsFd, onto: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", onto, "", flags)?)
}

/// A new file system in memory, attached nowhere.
pub(crate) fn memory(options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    fresh("tmpfs", options, attributes | NO_SET_UID)
}

/// A new file system of a kind, attached nowhere.
pub(crate) fn fresh(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(context.as_fd(), *name, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Adds attributes to a mount and to those below it.
pub(crate) fn restrict(mount: impl AsFd, attributes: MountAttrFlags) -> io::Result<()> {
    sys::add_mount_attributes(mount, attributes, libc::AT_RECURSIVE)
}

/// Adds attributes to one mount, and to none of those on it.
pub(crate) fn restrict_alone(mount: impl AsFd, attributes: MountAttrFlags) -> io::Result<()> {
    sys::add_mount_attributes(mount, attributes, 0)
}

/// A directory to mount on: what of it is missing is made, below `/tmp` or `/dev/shm` as the command sees them.
pub(crate) fn mount_point(path: &Path) -> io::Result<OwnedFd> {
    let mut here = at(Path::new("/"))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let step = |from: &OwnedFd, name| {
        rustix::fs::openat2(from, Path::new(name), flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
    };
    for part in path.components() {
        let Component::Normal(name) = part else { continue };
        here = match step(&here, name) {
            Err(Errno::NOENT) => {
                rustix::fs::mkdirat(&here, Path::new(name), Mode::RWXU)?;
                step(&here, name)?
            }
            opened => opened?,
        };
    }
    Ok(here)
}
