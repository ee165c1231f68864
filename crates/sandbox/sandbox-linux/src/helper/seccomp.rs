//! Which system calls are refused.
//!
//! *Refused:* looking into other processes, mounting, namespaces, keyrings, io_uring, kernel programs, opening by file handle,
//! limits of others, putting input into a terminal, setting a file's flags, sockets by path, other machines' calling
//! conventions. Everything else is allowed: what a call reaches is held by mounts and Landlock.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

use super::stage::{SetUp, Stage};
use crate::plan::{Net, Plan, Tier};

const STAGE: &str = "seccomp";

/// The calls that are refused whatever their arguments.
const NEVER: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    FILE_SETATTR,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
];

#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: &[i64] = &[];

/// The machine's shared memory, semaphores and message queues, which a namespace would keep apart.
const SHARED: [i64; 12] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
];

/// Numbers that are the same on every machine, of calls younger than the C library's list.
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// `ioctl`s that put input into a terminal, or set a file's flags.
const REFUSED_IOCTLS: [u64; 5] = [
    0x5412,      // TIOCSTI
    0x541C,      // TIOCLINUX
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
];

const NEW_TIME: i32 = 0x80;
const NEW_NAMESPACE: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Applies them to this thread and all that it starts, for good.
pub(crate) fn apply(plan: &Plan) -> Result<(), SetUp> {
    for program in programs(plan)? {
        seccompiler::apply_filter(&program).stage(STAGE)?;
    }
    Ok(())
}

fn programs(plan: &Plan) -> Result<Vec<BpfProgram>, SetUp> {
    let clone3 = Rules::from([(libc::SYS_clone3, Vec::new())]);
    let mut programs = vec![compile(rules(plan)?, libc::EPERM)?, compile(clone3, libc::ENOSYS)?];
    if cfg!(target_arch = "x86_64") {
        programs.push(no_x32());
    }
    Ok(programs)
}

fn compile(rules: Rules, errno: i32) -> Result<BpfProgram, SetUp> {
    let arch = std::env::consts::ARCH.try_into().stage(STAGE)?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).stage(STAGE)?;
    filter.try_into().stage(STAGE)
}

fn rules(plan: &Plan) -> Result<Rules, SetUp> {
    let shared = if plan.tier == Tier::WithoutNamespaces { &SHARED[..] } else { &[] };
    let mut rules: Rules = NEVER.iter().chain(OF_THIS_MACHINE).chain(shared).map(|call| (*call, Vec::new())).collect();
    let flag = |flag: i32| is(0, SeccompCmpOp::MaskedEq(bits(flag)), bits(flag));
    let spaces = |flags: &[i32]| flags.iter().map(|it| all([flag(*it)?])).collect::<Result<Vec<_>, _>>();
    rules.insert(libc::SYS_clone, spaces(&NEW_NAMESPACE)?);
    rules.insert(libc::SYS_unshare, spaces(&[&NEW_NAMESPACE[..], &[NEW_TIME]].concat())?);
    let ioctls = REFUSED_IOCTLS.iter().map(|it| all([is(1, SeccompCmpOp::Eq, *it)?]));
    rules.insert(libc::SYS_ioctl, ioctls.collect::<Result<_, _>>()?);
    let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0).stage(STAGE)?;
    rules.insert(libc::SYS_prlimit64, vec![all([is(0, SeccompCmpOp::Ne, 0)?, sets])?]);
    sockets(plan, &mut rules)?;
    Ok(rules)
}

/// No socket that reaches a path or another family than the internet's; none at all where the network is denied and there is
/// no namespace for it. Pairs are allowed if they are connected for good.
fn sockets(plan: &Plan, rules: &mut Rules) -> Result<(), SetUp> {
    if plan.tier == Tier::WithoutNamespaces && plan.network == Net::Denied {
        for call in [libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen] {
            rules.insert(call, Vec::new());
        }
    } else {
        let not = |family: i32| is(0, SeccompCmpOp::Ne, bits(family));
        let other = all([not(libc::AF_INET)?, not(libc::AF_INET6)?, not(libc::AF_NETLINK)?])?;
        let netlink = is(0, SeccompCmpOp::Eq, bits(libc::AF_NETLINK))?;
        let beyond_routes = all([netlink, is(2, SeccompCmpOp::Ne, bits(libc::NETLINK_ROUTE))?])?;
        rules.insert(libc::SYS_socket, vec![other, beyond_routes]);
    }
    const TYPES: i32 = 0xf;
    let loose = (0..=TYPES).filter(|kind| ![libc::SOCK_STREAM, libc::SOCK_SEQPACKET].contains(kind));
    let loose = loose.map(|kind| all([is(1, SeccompCmpOp::MaskedEq(bits(TYPES)), bits(kind))?]));
    rules.insert(libc::SYS_socketpair, loose.collect::<Result<_, _>>()?);
    Ok(())
}

fn is(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, SetUp> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).stage(STAGE)
}

fn all<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, SetUp> {
    SeccompRule::new(conditions.into()).stage(STAGE)
}

fn bits(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

/// Refuses the x32 calling convention, which shares its architecture with this one: `number >= 0x4000_0000`.
fn no_x32() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const FIRST: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_AT_LEAST, 0, 1, FIRST),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
