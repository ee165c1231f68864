//! How much of the machine a command may take.

use std::fs::File;
use std::io::{self, Write};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::uname;

/// How many processes and threads one command may have.
const MOST_PROCESSES: u64 = 4_096;

/// From this version on, the highest process id is a matter of each process namespace.
const PER_NAMESPACE: (u32, u32) = (6, 14);

/// Whether the processes of a namespace can be limited, whoever runs them.
pub(crate) fn namespace_is_limited() -> bool {
    let release = uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= PER_NAMESPACE)
}

/// Limits the processes of this namespace, in the `/proc` of this namespace. An older kernel would limit the whole machine.
pub(crate) fn limit_namespace() -> io::Result<()> {
    if !namespace_is_limited() {
        return Ok(());
    }
    File::options().write(true).open("/proc/sys/kernel/pid_max")?.write_all(MOST_PROCESSES.to_string().as_bytes())
}

/// Limits the processes of this user in this namespace. It does not bind root.
pub(crate) fn limit_user() -> io::Result<()> {
    limit(MOST_PROCESSES)
}

/// The same where the user's other processes count as well: as many more as there are in the whole machine.
pub(crate) fn limit_user_beyond_others() -> io::Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let threads = load.split([' ', '/']).nth(4).and_then(|count| count.parse::<u64>().ok());
    limit(MOST_PROCESSES + threads.ok_or_else(|| io::Error::other("no count of threads in /proc/loadavg"))?)
}

fn limit(most: u64) -> io::Result<()> {
    let now = getrlimit(Resource::Nproc);
    let at_most = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    setrlimit(Resource::Nproc, Rlimit { current: at_most(now.current), maximum: at_most(now.maximum) })?;
    // One byte: with none, a program that the system feeds core dumps to would still be started, outside.
    let one = Some(getrlimit(Resource::Core).maximum.map_or(1, |limit| limit.min(1)));
    Ok(setrlimit(Resource::Core, Rlimit { current: one, maximum: one })?)
}
