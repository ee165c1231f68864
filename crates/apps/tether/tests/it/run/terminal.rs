use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;

use rustix::fs::OFlags;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::process::{signal_child, watch};

/// What a question ends with.
const QUESTION: &str = "Allow this once? [y/N] ";

/// A process that a person sits in front of: it reads a terminal and tells things there, and prints somewhere else.
pub(crate) struct Terminal {
    master: File,
    child: Child,
    shown: Vec<u8>,
    _watchdog: Sender<()>,
}

/// What it left.
pub(crate) struct Sat {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    /// The questions that the person was asked.
    pub(crate) questions: Vec<String>,
}

/// Runs a command at a terminal, where a person says yes to everything.
pub(crate) fn say_yes(command: Command) -> Sat {
    let mut terminal = Terminal::start(command, "");
    while terminal.asked() {
        terminal.type_in("y\n");
    }
    terminal.finish()
}

impl Terminal {
    /// Starts a command at a terminal where something was typed before.
    pub(crate) fn start(mut command: Command, typed: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::NOCTTY.bits().cast_signed();
        let slave = OpenOptions::new().read(true).write(true).custom_flags(flags).open(name.to_str().unwrap()).unwrap();
        let mut master = File::from(master);
        master.write_all(typed.as_bytes()).unwrap();
        command.env("TERM", "xterm").stdin(slave.try_clone().unwrap()).stderr(slave).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        // Or the terminal would never end: the command holds it open.
        drop(command);
        let _watchdog = watch(&child);
        Self { master, child, shown: Vec::new(), _watchdog }
    }

    /// Waits for one more question. There is none if the process ends first.
    pub(crate) fn asked(&mut self) -> bool {
        let before = self.questions().len();
        while self.read() {
            if self.questions().len() > before {
                return true;
            }
        }
        false
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_child(&self.child, signal);
    }

    /// The person leaves and takes the terminal along.
    pub(crate) fn hang_up(self) -> i32 {
        let Self { master, mut child, _watchdog, .. } = self;
        drop(master);
        child.wait().unwrap().code().expect("it was not killed")
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Sat {
        while self.read() {}
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let status = self.child.wait().unwrap();
        let shown = String::from_utf8_lossy(&self.shown);
        assert!(!shown.contains("panicked"), "{shown}");
        let questions = self.questions();
        Sat { status: status.code().unwrap_or_else(|| panic!("{status}: {shown}")), stdout, questions }
    }

    /// More of what is shown, unless nobody has the terminal open any more.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        let read = self.master.read(&mut piece).unwrap_or(0);
        self.shown.extend_from_slice(&piece[..read]);
        read > 0
    }

    fn questions(&self) -> Vec<String> {
        let shown = String::from_utf8_lossy(&self.shown);
        let mut asked: Vec<&str> = shown.split(QUESTION).collect();
        asked.pop();
        asked.iter().map(|before| before.lines().last().unwrap_or_default().to_owned()).collect()
    }
}
