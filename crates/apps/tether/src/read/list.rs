//! `tether sessions list`.

use std::io::Write;

use serde::Serialize;
use session::{InboxAccepted, SessionId, SessionTitle, Source, UserMessage};
use session_store::Summary;
use subagent::Descriptor;

use super::style::{BAD, DIM, NOTABLE};
use super::text::{brief, local_time, size};
use super::{Logs, Notes, Stop, diagnosis};

/// The longest label, in characters.
const LABEL: usize = 60;
/// The longest path, in characters.
const PATH: usize = 200;

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Line<'a> {
    Readable {
        session: SessionId,
        created_at: u64,
        cwd: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<SessionId>,
        depth: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<&'a str>,
        bytes: u64,
        modified: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        holder: Option<u32>,
    },
    Unreadable {
        session: SessionId,
        error: String,
    },
}

pub(super) fn json(logs: &Logs, out: &mut dyn Write) -> Result<Notes, Stop> {
    for row in logs.list()?.iter().rev() {
        let session = row.id;
        let line = match &row.found {
            Ok(summary) => Line::Readable {
                session,
                created_at: summary.header.created_at(),
                cwd: summary.header.cwd(),
                parent: summary.header.lineage().map(|lineage| lineage.parent()),
                depth: summary.header.depth(),
                label: given_name(summary),
                bytes: summary.bytes,
                modified: summary.modified,
                holder: summary.holder,
            },
            Err(error) => Line::Unreadable { session, error: diagnosis(error) },
        };
        serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from)?;
        writeln!(out)?;
    }
    Ok(Notes::new())
}

pub(super) fn text(logs: &Logs, out: &mut dyn Write) -> Result<Notes, Stop> {
    let rows = logs.list()?;
    for row in rows.iter().rev() {
        match &row.found {
            Ok(summary) => readable(out, row.id, summary)?,
            Err(error) => writeln!(out, "{}  {BAD}unreadable: {}{BAD:#}", row.id, diagnosis(error))?,
        }
    }
    Ok(if rows.is_empty() { vec!["no sessions are kept here yet".to_owned()] } else { Notes::new() })
}

fn readable(out: &mut dyn Write, id: SessionId, summary: &Summary) -> Result<(), Stop> {
    let header = &summary.header;
    write!(out, "{id}  {}  {:>9}", local_time(header.created_at()), size(summary.bytes))?;
    if let Some(name) = given_name(summary).map(str::to_owned).or_else(|| first_prompt(summary)) {
        write!(out, "  {}", brief(&name, LABEL))?;
    }
    write!(out, "  {DIM}{}", brief(header.cwd(), PATH))?;
    if let Some(lineage) = header.lineage() {
        write!(out, "  depth {}, child of {}", lineage.depth(), lineage.parent())?;
    }
    write!(out, "{DIM:#}")?;
    if let Some(pid) = summary.holder {
        write!(out, "  {NOTABLE}open in process {pid}{NOTABLE:#}")?;
    }
    Ok(writeln!(out)?)
}

/// What somebody called it, as far as the first events tell. The last one wins.
fn given_name(summary: &Summary) -> Option<&str> {
    summary.first.iter().rev().find_map(|event| {
        let label = event.get::<Descriptor>().and_then(|descriptor| descriptor.label.as_deref());
        label.or_else(|| event.get::<SessionTitle>().map(|title| &*title.title))
    })
}

fn first_prompt(summary: &Summary) -> Option<String> {
    summary.first.iter().find_map(|event| {
        let said = event.get::<UserMessage>().map(|said| (said.source, &said.message));
        let (source, message) = said.or_else(|| event.get::<InboxAccepted>().map(|it| (it.source, &it.message)))?;
        (source == Source::Prompt).then(|| message.text())
    })
}
