//! What stays open where there are no namespaces, in words.

use landlock::ABI;
use rustix::process::geteuid;

/// What Landlock and seccomp cannot close, with a Landlock of this version.
pub(crate) fn without_namespaces(known: ABI) -> Vec<String> {
    let always = [
        "metadata: chmod, chown, utimes and setxattr work on files outside that are this user's",
        "protected paths: they can be changed while a command runs; they are compared before and after it, and restored or \
         reported",
        "processes: the command lines of other processes are readable, and the priority and processor affinity of this user's \
         can be changed",
        "killing a tree: if the helper itself is killed, processes that have left its session go on",
        "temporary directory: it has its own name; the machine's `/tmp` and `/dev/shm` can be read",
        "machine: the names of mounts, users, network devices and other processes are readable",
    ];
    let root = "fork bombs: root is stopped only by the machine's own limits";
    let scopes =
        "signals: the command can signal this user's other processes (the kernel's Landlock is older than version 6)";
    let ioctl = "devices: open devices can be controlled (the kernel's Landlock is older than version 5)";
    let root = geteuid().is_root().then_some(root);
    let scopes = (known < ABI::V6).then_some(scopes);
    let ioctl = (known < ABI::V5).then_some(ioctl);
    always.into_iter().chain(root).chain(scopes).chain(ioctl).map(str::to_owned).collect()
}
