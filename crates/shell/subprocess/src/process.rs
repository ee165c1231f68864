//! The harness's side of a tree.

use std::convert::Infallible;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt as _, FdMapping};
use context::{BoxError, Ctx, Stop};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::ended::{Ended, Exit, How};
use crate::helper::{LIFELINE, REPORTS, tree};
use crate::piped::{Input, Output, Pipes};
use crate::reports::{Reports, Trusted};
use crate::{Spawn, SpawnError, Streams};

/// A running tree. Dropping it asks for its end; closing the scope that owns it also waits for that.
pub struct Process {
    pid: u32,
    pub(crate) ctx: Ctx,
    kill: CancellationToken,
    output: Option<Output>,
    pipes: Option<Pipes>,
    ended: watch::Receiver<Option<Ended>>,
}

/// How often a helper whose end was asked for is told to go on: a command may have stopped it.
const NUDGE: Duration = Duration::from_millis(100);

/// How long a helper has to end its tree. Longer than it tries itself, shorter than the grace of a scope's task.
const PATIENCE: Duration = Duration::from_secs(20);

impl Process {
    /// Starts a tree that `ctx` owns: closing its scope ends the tree and returns when it is gone.
    ///
    /// # Errors
    ///
    /// Why it was not started. Nothing is left of it then.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime, or in one without I/O or time.
    pub fn spawn(ctx: &Ctx, spawn: Spawn) -> Result<Self, SpawnError> {
        spawn.check()?;
        let kill = ctx.cancelled().child_token();
        // The task comes first: once it is there, a closing waits for whatever it is handed.
        let (hand_over, handed) = oneshot::channel();
        let (say, ended) = watch::channel(None);
        ctx.spawn_fallible("process", Stop::Join, own(handed, kill.clone(), say))?;
        let (tree, streams) = start(spawn)?;
        let pid = tree.pid.as_raw_pid().cast_unsigned();
        // A runtime that shuts down drops the task, and here the tree with its lifeline.
        drop(hand_over.send(tree));
        let output = |pipe| Output::new(pipe, ended.clone());
        let (output, pipes) = match streams {
            Ends::Inherited => (None, None),
            Ends::Captured(pipe) => (Some(output(pipe)), None),
            Ends::Piped(input, said, errors) => {
                let input = Input::new(input, ended.clone());
                (None, Some(Pipes { input, output: output(said), errors: output(errors) }))
            }
        };
        Ok(Self { pid, ctx: ctx.clone(), kill, output, pipes, ended })
    }

    /// The helper's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The next piece of the output as it comes; `None` at its end, which is there at the latest when the tree is gone. A
    /// command whose output is not read waits.
    pub async fn output(&mut self) -> Option<Vec<u8>> {
        let piece = self.output.as_mut()?.next().await;
        if piece.is_none() {
            self.output = None;
        }
        piece
    }

    /// The ends of the pipes of [`Streams::Piped`], once. A command whose output or errors are not read waits.
    pub fn pipes(&mut self) -> Option<Pipes> {
        self.pipes.take()
    }

    /// Asks every process of the tree that is there now to end by itself: `SIGTERM`. It is up to them.
    pub fn terminate(&self) {
        if let Some(helper) = Pid::from_raw(self.pid.cast_signed()).filter(|_| self.ended.borrow().is_none()) {
            tree::ask_to_end(helper);
        }
    }

    /// Asks for the end of the whole tree, and does not wait for it.
    pub fn kill(&self) {
        self.kill.cancel();
    }

    pub(crate) fn killer(&self) -> CancellationToken {
        self.kill.clone()
    }

    /// Waits until the tree is gone, and discards output that nobody has read.
    pub async fn wait(&mut self) -> Ended {
        while self.output().await.is_some() {}
        match self.ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().expect("it was waited for"),
            Err(_) => {
                let status = "unknown: the runtime that waited for it was shut down".to_owned();
                Ended { how: How::HelperDied { status }, notes: Vec::new() }
            }
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill.cancel();
    }
}

/// What the owning task has of a tree.
struct Tree {
    child: Child,
    pid: Pid,
    plan: Vec<u8>,
    lifeline: pipe::Sender,
    reports: pipe::Receiver,
}

/// The harness's ends of a command's streams.
enum Ends {
    Inherited,
    Captured(pipe::Receiver),
    Piped(pipe::Sender, pipe::Receiver, pipe::Receiver),
}

fn start(spawn: Spawn) -> Result<(Tree, Ends), SpawnError> {
    let (lifeline_end, lifeline) = io::pipe().map_err(SpawnError::Pipe)?;
    let (reports, reports_end) = io::pipe().map_err(SpawnError::Pipe)?;
    let lifeline = sender(lifeline).map_err(SpawnError::Pipe)?;
    let reports = receiver(reports).map_err(SpawnError::Pipe)?;
    let mut command = Command::new(&spawn.program);
    command.args(&spawn.args).current_dir(&spawn.cwd).env_clear().envs(spawn.env.iter());
    let ends = match spawn.streams {
        Streams::Inherited => Ends::Inherited,
        Streams::Captured => {
            let (output, stdout) = io::pipe().map_err(SpawnError::Pipe)?;
            let stderr = stdout.try_clone().map_err(SpawnError::Pipe)?;
            command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
            Ends::Captured(receiver(output).map_err(SpawnError::Pipe)?)
        }
        Streams::Piped => {
            let (stdin, input) = io::pipe().map_err(SpawnError::Pipe)?;
            let (output, stdout) = io::pipe().map_err(SpawnError::Pipe)?;
            let (errors, stderr) = io::pipe().map_err(SpawnError::Pipe)?;
            command.stdin(stdin).stdout(stdout).stderr(stderr);
            let ends = || Ok(Ends::Piped(sender(input)?, receiver(output)?, receiver(errors)?));
            ends().map_err(SpawnError::Pipe)?
        }
    };
    let mapped = |fd: OwnedFd, child_fd| FdMapping { parent_fd: fd, child_fd };
    let mappings = vec![mapped(lifeline_end.into(), LIFELINE), mapped(reports_end.into(), REPORTS)];
    command.fd_mappings(mappings).expect("the two numbers differ");
    let child = command.spawn().map_err(|source| match spawn.check_cwd() {
        // The system does not say which of the two was not there.
        Err(cwd) => cwd,
        Ok(()) => SpawnError::Helper { program: spawn.program.clone(), source },
    })?;
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("nobody has waited for it");
    Ok((Tree { child, pid, plan: spawn.plan, lifeline, reports }, ends))
}

fn sender(pipe: PipeWriter) -> io::Result<pipe::Sender> {
    pipe::Sender::from_owned_fd(pipe.into())
}

fn receiver(pipe: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(pipe.into())
}

/// Owns a tree to its end.
async fn own(
    handed: oneshot::Receiver<Tree>,
    kill: CancellationToken,
    say: watch::Sender<Option<Ended>>,
) -> Result<(), BoxError> {
    // It did not start.
    let Ok(Tree { mut child, pid, plan, lifeline, reports }) = handed.await else { return Ok(()) };
    let (mut said, mut reports, mut forced) = (Reports::default(), Some(reports), false);
    let status = {
        let (end, read) = (end(lifeline, &plan, pid, &kill), said.read(&mut reports));
        tokio::pin!(end, read);
        let mut reading = true;
        loop {
            tokio::select! {
                status = child.wait() => break status,
                () = &mut end, if !forced => forced = true,
                trusted = &mut read, if reading => {
                    reading = false;
                    if trusted == Trusted::No {
                        kill.cancel();
                    }
                }
            }
        }
    };
    if let Some(reports) = &reports {
        said.read_rest(reports);
    }
    drop((child, reports));
    let unknown = || format!("the helper {pid} did not end within {} s and was killed", PATIENCE.as_secs());
    let failed = said.left().or_else(|| forced.then(unknown));
    say.send_replace(Some(said.into_ended(kill.is_cancelled(), status)));
    failed.map_or(Ok(()), |failed| Err(failed.into()))
}

/// Holds the lifeline until the end is asked for, and sees to it that the helper hears of it. Returns when the helper did
/// not end by itself: what became of the tree is not known then.
async fn end(lifeline: pipe::Sender, plan: &[u8], pid: Pid, kill: &CancellationToken) {
    tokio::select! {
        biased;
        () = kill.cancelled() => {}
        never = feed(&lifeline, plan) => match never {},
    }
    drop(lifeline);
    let patience = Instant::now() + PATIENCE;
    while Instant::now() < patience {
        // Not waited for yet, so that the number is still the helper's.
        let _ = kill_process(pid, Signal::CONT);
        sleep(NUDGE).await;
    }
    let _ = kill_process(pid, Signal::KILL);
}

/// Sends the plan. A helper that does not take it has ended, or will be ended.
async fn feed(lifeline: &pipe::Sender, plan: &[u8]) -> Infallible {
    let len = u32::try_from(plan.len()).expect("a plan that is too long is refused").to_le_bytes();
    for mut bytes in [&len, plan] {
        while !bytes.is_empty() && lifeline.writable().await.is_ok() {
            match lifeline.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return std::future::pending().await,
            }
        }
    }
    std::future::pending().await
}

/// How a helper ended, in words.
pub(crate) fn in_words(status: io::Result<ExitStatus>) -> String {
    status.map_or_else(|error| format!("unknown: {error}"), |status| status.to_string())
}

/// Whether this is the end that we brought about.
pub(crate) fn is_ours(exit: Exit) -> bool {
    exit == Exit::Signal(Signal::KILL.as_raw())
}
