//! A command from its start to its end, within limits.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::ended::How;
use crate::keep::{Captured, Keep};
use crate::{Process, SpillTo};

/// What a command may take, and what is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run.
    pub timeout: Duration,
    /// How many bytes are kept of the beginning of its output.
    pub head: usize,
    /// How many bytes are kept of the end of its output.
    pub tail: usize,
    /// Where all of it goes if that is not enough.
    pub spill: Option<SpillTo>,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How its tree came to its end.
    pub how: How,
    /// It was ended because its time was up.
    pub timed_out: bool,
    /// It was ended because whoever wanted it does so no more.
    pub cancelled: bool,
    /// What the helper found.
    pub notes: Vec<String>,
    /// What it wrote.
    pub output: Captured,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    TimedOut,
    Cancelled,
}

/// Runs a process to its end and returns when its tree is gone. `each` gets the output as it comes.
pub async fn run(
    mut process: Process,
    limits: &Limits,
    cancelled: &CancellationToken,
    mut each: impl FnMut(&str) + Send,
) -> Finished {
    let kill = process.killer();
    let stop = async {
        tokio::select! {
            biased;
            () = cancelled.cancelled() => Stopped::Cancelled,
            () = sleep(limits.timeout) => Stopped::TimedOut,
        }
    };
    let pump = async {
        let mut keep = Keep::new(limits, &process.ctx);
        while let Some(bytes) = process.output().await {
            let text = keep.push(&bytes).await;
            if !text.is_empty() {
                each(&text);
            }
        }
        keep.rest().iter().for_each(|text| each(text));
        let ended = process.wait().await;
        (ended, keep.finish().await)
    };
    tokio::pin!(stop, pump);
    let mut stopped = None;
    // Apart from each other, so that neither a slow disk nor a flood of output holds up the end.
    let (ended, output) = loop {
        tokio::select! {
            biased;
            why = &mut stop, if stopped.is_none() => {
                stopped = Some(why);
                kill.cancel();
            }
            finished = &mut pump => break finished,
        }
    };
    // One that ended by itself just then was not stopped.
    let stopped = stopped.filter(|_| !matches!(ended.how, How::Exited(_) | How::Signaled(_)));
    Finished {
        how: ended.how,
        timed_out: stopped == Some(Stopped::TimedOut),
        cancelled: stopped == Some(Stopped::Cancelled),
        notes: ended.notes,
        output,
    }
}
