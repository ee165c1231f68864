//! Reading files that others may be writing. Nothing here writes.

use std::io;
use std::sync::Arc;

use session::{Decoded, Event, Header, SessionId, Vocabulary};
use session_store::{Damage, Fault, NotFound, ReadError, Summary};

use crate::disk::{Blob, Disk, How};
use crate::names::Names;
use crate::writer::MOST_BYTES;

/// How much of a log a listing reads at once. The first events of a child, stamps and descriptor, fit in it.
const HEAD: usize = 16 << 10;
/// How much is read at once to find the end of a seed.
const STRIDE: usize = 1 << 20;
/// A longer header is not one of ours.
const MOST_HEADER: usize = 1 << 20;

/// A log as it is on disk.
pub(crate) struct Whole {
    pub decoded: Decoded,
    /// How many bytes the header has, with its newline.
    pub head: u64,
    /// How many bytes are whole lines.
    pub bytes: u64,
    /// What is behind them.
    pub torn: Vec<u8>,
}

pub(crate) fn open(disk: &dyn Disk, names: &Names, how: How) -> Result<Box<dyn Blob>, ReadError> {
    disk.open(&names.log(), how).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => NotFound { id: names.id(), place: names.place() }.into(),
        _ => Fault { doing: "open", place: names.place(), source }.into(),
    })
}

pub(crate) fn whole(blob: &dyn Blob, names: &Names, vocabulary: &Vocabulary) -> Result<Whole, ReadError> {
    let reading = |source| Fault { doing: "read", place: names.place(), source };
    let len = blob.as_opened().len;
    if len > MOST_BYTES {
        return Err(damage(names, None, format!("it has {len} bytes, and a log has at most {MOST_BYTES}")));
    }
    let len = usize::try_from(len).map_err(|_| reading(io::ErrorKind::OutOfMemory.into()))?;
    let mut lines = blob.read_from(0, len).map_err(reading)?;
    let torn = lines.split_off(end_of_lines(&lines));
    if lines.is_empty() {
        let why = if torn.is_empty() { "it is empty: the header is missing" } else { "the header is torn" };
        return Err(damage(names, Some(1), why.to_owned()));
    }
    let bytes = lines.len() as u64;
    let head = lines.iter().position(|byte| *byte == b'\n').map_or(bytes, |end| end as u64 + 1);
    let text = String::from_utf8(lines).map_err(|error| {
        let line = 1 + count_lines(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        damage(names, Some(line), "it is not UTF-8".to_owned())
    })?;
    let decoded = vocabulary.decode(text).map_err(|error| Damage::decoding(names.place(), error))?;
    check_id(decoded.log().header(), names)?;
    Ok(Whole { decoded, head, bytes, torn })
}

/// What a listing says of a log.
pub(crate) fn summary(
    disk: &dyn Disk,
    names: &Names,
    vocabulary: &Vocabulary,
    locked: bool,
) -> Result<Summary, ReadError> {
    let blob = open(disk, names, How::Read)?;
    let reading = |source| Fault { doing: "read", place: names.place(), source };
    let stat = blob.as_opened();
    let mut head = blob.read_from(0, HEAD).map_err(reading)?;
    if !head.contains(&b'\n') && head.len() == HEAD {
        head = blob.read_from(0, MOST_HEADER).map_err(reading)?;
    }
    let Some(end) = head.iter().position(|byte| *byte == b'\n') else {
        return Err(damage(names, Some(1), "there is no whole header".to_owned()));
    };
    let line = std::str::from_utf8(&head[..end]).map_err(|_| damage(names, Some(1), "it is not UTF-8".to_owned()))?;
    let header = Vocabulary::decode_header(line).map_err(|error| Damage::decoding(names.place(), error))?;
    check_id(&header, names)?;
    let own = if header.seed_length() == 0 {
        head.split_off(end + 1)
    } else {
        match skip_lines(&*blob, header.seed_length().saturating_add(1)).map_err(reading)? {
            Some(offset) => blob.read_from(offset, HEAD).map_err(reading)?,
            None => return Err(damage(names, None, "it ends within its seed".to_owned())),
        }
    };
    let first = first_events(&own, header.seed_length(), names, vocabulary)?;
    let holder = if locked { disk.holder(&names.lock()) } else { None };
    Ok(Summary { header: Arc::new(header), first, bytes: stat.len, modified: stat.modified, holder })
}

/// The events at the beginning of `bytes`, as far as they are whole lines.
fn first_events(bytes: &[u8], seq: u64, names: &Names, vocabulary: &Vocabulary) -> Result<Vec<Event>, ReadError> {
    let lines = bytes[..end_of_lines(bytes)].split_inclusive(|byte| *byte == b'\n').take(Summary::FIRST);
    let events = lines.zip(seq..).map(|(line, seq)| {
        let at = usize::try_from(seq).ok().and_then(|seq| seq.checked_add(2));
        let damaged = |why: String| damage(names, at, why);
        let line = std::str::from_utf8(&line[..line.len() - 1]).map_err(|_| damaged("it is not UTF-8".to_owned()))?;
        let event = vocabulary.decode_event(line).map_err(|error| damaged(error.to_string()))?;
        match event.seq() == seq {
            true => Ok(event),
            false => Err(damaged(format!("has seq {} where {seq} belongs", event.seq()))),
        }
    });
    events.collect()
}

/// Where the line behind the first `lines` begins; `None` if there are not that many.
fn skip_lines(blob: &dyn Blob, mut lines: u64) -> io::Result<Option<u64>> {
    let mut offset = 0;
    loop {
        let bytes = blob.read_from(offset, STRIDE)?;
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            lines -= 1;
            if lines == 0 {
                return Ok(Some(offset + at as u64 + 1));
            }
        }
        if bytes.len() < STRIDE {
            return Ok(None);
        }
        offset += bytes.len() as u64;
    }
}

fn check_id(header: &Header, names: &Names) -> Result<(), ReadError> {
    let found: SessionId = header.id();
    match found == names.id() {
        true => Ok(()),
        false => Err(damage(names, Some(1), format!("the header is that of session {found}"))),
    }
}

/// Behind the last newline.
fn end_of_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

fn damage(names: &Names, line: Option<usize>, why: String) -> ReadError {
    Damage { place: names.place(), line, why }.into()
}
