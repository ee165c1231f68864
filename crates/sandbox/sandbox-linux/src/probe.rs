//! Trying the whole set-up once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sandbox::{CommandLine, Confinement, Mode, Network, Temp, Workspace};
use scratch::Passing;
use subprocess::Report;

use crate::helper::{CONFINE, PLACEHOLDER};
use crate::plan::{Plan, Tier};

/// Longer than any set-up takes.
const PATIENCE: Duration = Duration::from_secs(10);
const LIFELINE: i32 = 3;
const REPORTS: i32 = 4;

/// Why a tier was not tried to its end, or did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fails {
    /// The machine cannot hold it.
    Never(String),
    /// Nothing is known of what the machine can hold: something else is in the way, such as a disk that is full.
    Now(String),
}

/// Runs `true` under this tier, and says what the tier leaves open here.
///
/// # Errors
///
/// Why it cannot be held.
pub(crate) fn probe(helper: &Path, tier: Tier) -> Result<Vec<String>, Fails> {
    let now = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| Fails::Now(format!("{what}: {error}"))
    };
    let dir = Passing::make().map_err(now("no directory to try it in can be made"))?;
    let plan = plan(dir.path(), tier).map_err(now("no directory to try it in can be made"))?;
    let reports = run(helper, &plan, dir.path()).map_err(now("the helper cannot be started"))?;
    let (mut open, mut held) = (Vec::new(), false);
    for report in reports {
        match report {
            // A machine without `true` has come as far as one with it.
            Report::Ended(_) | Report::NotFound { .. } => held = true,
            Report::Failed { stage, why } if stage == PLACEHOLDER => return Err(Fails::Now(format!("{stage}: {why}"))),
            Report::Failed { stage, why } => return Err(Fails::Never(format!("{stage}: {why}"))),
            Report::Note { text } => open.push(text),
            Report::Started | Report::Left { .. } => {}
        }
    }
    let why = "the helper did not answer as one; its `main` may not begin with it";
    if held { Ok(open) } else { Err(Fails::Now(why.to_owned())) }
}

/// Everything that a real command needs: a workspace with a repository, a temporary directory, something hidden.
fn plan(dir: &Path, tier: Tier) -> io::Result<Vec<u8>> {
    let dir = dir.canonicalize()?;
    let [root, temp, home] = ["workspace", "temp", "home"].map(|name| dir.join(name));
    for made in [&root.join(".git"), &temp, &home] {
        std::fs::create_dir_all(made)?;
    }
    std::fs::write(root.join(".git/HEAD"), "")?;
    let workspace = Workspace::new(&root).temp(&temp).home(home);
    let confinement = Confinement {
        boundary: workspace.boundary(Mode::WorkspaceWrite),
        network: Network::Denied,
        temp: Temp::Private(temp),
    };
    let command = CommandLine { argv: &["true".into()], cwd: &root };
    let (plan, _) = Plan::new(tier, &command, &confinement).map_err(io::Error::other)?;
    Ok(Plan { tell: true, ..plan }.to_bytes())
}

fn run(helper: &Path, plan: &[u8], cwd: &Path) -> io::Result<Vec<Report>> {
    let (lifeline, mut hold) = io::pipe()?;
    let (reports, report) = io::pipe()?;
    let mut command = Command::new(helper);
    command.arg(CONFINE).current_dir(cwd).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mapped = |fd, child_fd| FdMapping { parent_fd: fd, child_fd };
    let mapped = vec![mapped(OwnedFd::from(lifeline), LIFELINE), mapped(OwnedFd::from(report), REPORTS)];
    command.fd_mappings(mapped).map_err(io::Error::other)?;
    let mut child = Ended(command.spawn()?);
    // Its ends of the pipes are held by it alone from here on.
    drop(command);
    let len = u32::try_from(plan.len()).map_err(io::Error::other)?;
    hold.write_all(&[&len.to_le_bytes(), plan].concat())?;
    let said = read(File::from(OwnedFd::from(reports)))?;
    child.0.wait()?;
    Ok(BufReader::new(&*said)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str(&line).ok())
        .collect())
}

/// A helper that does not answer is not waited for.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn read(mut reports: File) -> io::Result<Vec<u8>> {
    const MOST: usize = 1024 * 1024;
    let (mut said, mut piece) = (Vec::new(), [0; 4096]);
    let give_up = Instant::now() + PATIENCE;
    while said.len() < MOST {
        let left = give_up.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(&reports.as_fd(), PollFlags::IN)], Some(&left))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match reports.read(&mut piece)? {
            0 => return Ok(said),
            read => said.extend_from_slice(&piece[..read]),
        }
    }
    Err(io::Error::other("it says too much"))
}
