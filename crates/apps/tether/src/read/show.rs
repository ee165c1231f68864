//! `tether sessions show`: a transcript.

use std::io::Write;

use session::SessionId;
use session_store::Reading;

use super::{Logs, Notes, Stop};

mod transcript;

/// Every line as it stands in the log.
pub(super) fn json(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    let reading = logs.read(id)?;
    out.write_all(&logs.header_line(id)?)?;
    let mut line = Vec::new();
    for event in reading.decoded.log().events().iter() {
        line.clear();
        event.write(&mut line);
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(torn(&reading))
}

pub(super) fn text(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    let reading = logs.read(id)?;
    transcript::tell(&reading, out)?;
    Ok(torn(&reading))
}

fn torn(reading: &Reading) -> Notes {
    match (reading.torn, reading.holder) {
        (0, _) => Notes::new(),
        (torn, Some(pid)) => {
            vec![format!("the last {torn} bytes are not a whole line: process {pid} may be writing them")]
        }
        (torn, None) => vec![format!("the last {torn} bytes are not a whole line, torn by a crash: they are left out")],
    }
}
