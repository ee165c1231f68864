//! Programs that are given so much time, and are ended after it with all that they started.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The variable by which a process is known as one of ours, wherever it has moved to.
pub(crate) const MARK: &str = "REAL_MARK";

/// How often what is waited for is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A program on its way.
pub(crate) struct Running {
    child: Child,
    streams: [Receiver<String>; 2],
}

/// How a program ended.
pub(crate) struct Ended {
    /// Its exit status; none if a signal or we ended it.
    pub(crate) code: Option<i32>,
    /// Whether it had not ended in time.
    pub(crate) late: bool,
    /// What it wrote to both its streams, the errors last.
    pub(crate) said: String,
    /// Of that, the standard output.
    pub(crate) out: String,
}

impl Running {
    /// Starts it in a process group of its own, without input.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().with_context(|| format!("{:?} could not be started", command.get_program()))?;
        let out = collected(child.stdout.take().expect("it was piped just now"));
        let errors = collected(child.stderr.take().expect("it was piped just now"));
        Ok(Self { child, streams: [out, errors] })
    }

    /// Waits for its end, for so long; then ends it.
    pub(crate) fn finish(mut self, limit: Duration) -> anyhow::Result<Ended> {
        let ended = until(limit, || self.child.try_wait().ok().flatten());
        let late = ended.is_none();
        if late {
            self.kill();
        }
        let status = self.child.wait()?;
        // What it left behind may hold the pipes open.
        let [out, errors] = self.streams.each_ref().map(|stream| stream.recv_timeout(Duration::from_secs(2)));
        let (out, errors) = (out.unwrap_or_default(), errors.unwrap_or_default());
        Ok(Ended { code: status.code(), late, said: format!("{out}{errors}"), out })
    }

    fn kill(&self) {
        // It is not waited for yet, so that its number is still its own.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

/// Runs to the end, or for so long.
pub(crate) fn run(command: &mut Command, limit: Duration) -> anyhow::Result<Ended> {
    Running::start(command)?.finish(limit)
}

impl Ended {
    /// The last words, for a cell of the table.
    pub(crate) fn tail(&self) -> String {
        let text = self.said.trim();
        let from = text.char_indices().rev().nth(300).map_or(0, |(at, _)| at);
        let status = match self.code {
            _ if self.late => "no end in time".to_owned(),
            Some(code) => format!("status {code}"),
            None => "ended by a signal".to_owned(),
        };
        format!("{status}: {}", &text[from..])
    }
}

/// Looks until there is something to see, or for so long.
pub(crate) fn until<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= end {
            return seen;
        }
        thread::sleep(LOOK);
    }
}

/// What lives of those that carry a mark, after the time they have to go; they are ended.
pub(crate) fn survivors(mark: &str, grace: Duration) -> Vec<String> {
    if until(grace, || marked(mark).is_empty().then_some(())).is_some() {
        return Vec::new();
    }
    let left = marked(mark);
    for (pid, _) in &left {
        let _ = kill_process(*pid, Signal::KILL);
    }
    left.into_iter().map(|(pid, line)| format!("{}: {line}", pid.as_raw_nonzero())).collect()
}

/// What lives now of those that carry a mark.
pub(crate) fn survivors_now(mark: &str) -> Vec<String> {
    marked(mark).into_iter().map(|(_, line)| line).collect()
}

/// The processes whose environment has the mark, or one of whose arguments is it.
fn marked(mark: &str) -> Vec<(Pid, String)> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        // A process of another user, or one that has ended meanwhile, is none of ours.
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let mut words = environment.split(|byte| *byte == 0).chain(line.split(|byte| *byte == 0));
        words.any(|word| word == wanted).then_some(())?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (!line.is_empty()).then_some((pid, line.chars().take(90).collect()))
    };
    entries.filter_map(of).collect()
}

fn collected(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_it_says_and_how_it_ends() {
        let ended = run(&mut sh("echo a; echo b >&2; exit 3"), Duration::from_secs(10)).unwrap();
        assert_eq!(
            (ended.code, ended.late, ended.said.as_str(), ended.out.as_str()),
            (Some(3), false, "a\nb\n", "a\n")
        );
    }

    #[test]
    fn one_that_stays_is_ended_and_what_it_left_is_found() {
        let mark = format!("test-{}", std::process::id());
        let mut command = sh("setsid sleep 600 & exec sleep 600");
        let started = Instant::now();
        let ended = run(command.env(MARK, &mark), Duration::from_millis(300)).unwrap();
        assert!(ended.late && ended.code.is_none() && started.elapsed() < Duration::from_secs(10));
        let left = survivors(&mark, Duration::ZERO);
        assert!(left.len() == 1 && left[0].contains("sleep 600"), "{left:?}");
        assert_eq!(survivors(&mark, Duration::from_secs(5)), [""; 0]);
    }
}
