use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Long enough for a slow machine; only a test that hangs meets it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// What a process left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Runs a command to its end, with nothing to read.
    pub(crate) fn of(command: Command) -> Self {
        Self::fed(command, Vec::new())
    }

    /// Runs a command to its end, with this to read.
    pub(crate) fn fed(command: Command, stdin: impl Into<Vec<u8>>) -> Self {
        let mut command = assert_cmd::Command::from_std(command);
        let ran = command.write_stdin(stdin).timeout(DEADLINE).output().unwrap();
        Self::new(ran.status, ran.stdout, ran.stderr)
    }

    fn new(status: ExitStatus, stdout: Vec<u8>, stderr: Vec<u8>) -> Self {
        let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        let status = status.code().unwrap_or_else(|| panic!("{status}\n{stdout}\n{stderr}"));
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self { status, stdout, stderr }
    }

    /// It ended with this status.
    #[track_caller]
    pub(crate) fn ended(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// It complained in one line and printed nothing.
    #[track_caller]
    pub(crate) fn refused(self, status: i32) -> String {
        assert_eq!((self.status, &*self.stdout), (status, ""), "{}", self.stderr);
        assert!(self.stderr.starts_with("tether: ") && self.stderr.ends_with('\n'), "{:?}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        self.stderr.trim_end().to_owned()
    }

    /// The one line of standard error that is about this.
    #[track_caller]
    pub(crate) fn complaint(&self, about: &str) -> &str {
        let lines: Vec<&str> = self.stderr.lines().filter(|line| line.contains(about)).collect();
        assert_eq!(lines.len(), 1, "about {about}:\n{}", self.stderr);
        lines[0]
    }

    /// The session that it told of.
    #[track_caller]
    pub(crate) fn id(&self) -> String {
        match self.stderr.lines().find_map(|line| line.strip_prefix("session ")) {
            Some(rest) => rest.split(' ').next().unwrap().to_owned(),
            None => self.json()[0]["id"].as_str().unwrap().to_owned(),
        }
    }

    /// Every line that it printed.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// A process at work, killed when it is dropped or takes longer than it may.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    _watchdog: Sender<()>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut all = Vec::new();
            stderr.read_to_end(&mut all).unwrap();
            all
        });
        let _watchdog = watch(&child);
        Self { child, lines, seen: Vec::new(), stderr: Some(stderr), _watchdog }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints, unless it has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => {
                self.seen.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more after {:?}", self.seen.last()),
        }
    }

    /// Waits for a line with this in it.
    #[track_caller]
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        loop {
            let Some(line) = self.line() else { panic!("it ended without `{part}`: {:?}", self.seen.last()) };
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_child(&self.child, signal);
    }

    /// Ends it with no chance to do anything about it, and gives every whole line that it printed.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while self.line().is_some() {}
        std::mem::take(&mut self.seen)
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Ran {
        while self.line().is_some() {}
        let stderr = self.stderr.take().unwrap().join().unwrap();
        let status = self.child.wait().unwrap();
        let stdout = self.seen.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
        Ran::new(status, stdout, stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills a process that takes longer than it may, until what is returned is dropped.
pub(crate) fn watch(child: &Child) -> Sender<()> {
    let (sender, over) = mpsc::channel();
    let pid = pid(child);
    thread::spawn(move || {
        if over.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    sender
}

pub(crate) fn signal_child(child: &Child, signal: Signal) {
    kill_process(pid(child), signal).unwrap();
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}
