//! Reading a log: one pass, payloads that decide decoded at once, the others when somebody asks.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::thread;

use llm::Message;
use memchr::memchr;
use serde_json::value::RawValue;

use crate::envelope::Envelope;
use crate::event::{Head, Record};
use crate::vocabulary::Kind;
use crate::{Event, Header, Snapshot, Vocabulary};

/// A longer text is read by several threads, a piece each.
const LONG: usize = 2 << 20;
/// At most so many.
const MOST_PIECES: usize = 4;
/// How many unknown types are named. One is enough to refuse; a log made of others must not cost the square of them.
const MOST_FOREIGN: usize = 32;

/// A log as it was read. Only the decoder makes one, and only this can be resumed.
#[derive(Clone)]
pub struct Decoded {
    pub(crate) log: Snapshot,
    /// Tags of events that one would have to know in order to write, and does not.
    pub(crate) foreign: Vec<Box<str>>,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// There is no first line.
    #[error("the log is empty: its header is missing")]
    NoHeader,
    /// The first line is not a header.
    #[error("line 1 is not a header: {0}")]
    Header(#[source] serde_json::Error),
    /// A line is not an event, or a payload that decides is not what its type says.
    #[error("line {line} is damaged: {source}")]
    Damaged {
        /// Counted from 1, the header.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// An event is missing, or is there twice.
    #[error("line {line} has seq {found} where {expected} belongs")]
    Gap {
        /// Counted from 1, the header.
        line: usize,
        /// The seq it has.
        found: u64,
        /// The seq it should have.
        expected: u64,
    },
}

/// A payload is not what its type says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({tag}) is damaged: {message}")]
pub struct DamagedPayload {
    /// Which event.
    pub seq: u64,
    /// Its type on the wire.
    pub tag: Box<str>,
    /// What is wrong with it.
    pub message: Box<str>,
}

impl Decoded {
    /// What was read.
    pub fn log(&self) -> &Snapshot {
        &self.log
    }

    /// Tags of events that forbid writing, since nobody here knows what they mean: each once, the first 32 of them.
    pub fn foreign(&self) -> &[Box<str>] {
        &self.foreign
    }

    /// Takes the next line.
    fn add(&mut self, event: serde_json::Result<Event>) -> Result<(), DecodeError> {
        let expected = self.log.len();
        // The header is the first line, and lines are counted from 1.
        let line = usize::try_from(expected).unwrap_or(usize::MAX).saturating_add(2);
        let event = event.map_err(|source| DecodeError::Damaged { line, source })?;
        let head = event.head();
        if head.seq != expected {
            return Err(DecodeError::Gap { line, found: head.seq, expected });
        }
        if head.kind.is_none() && !head.ignorable {
            self.note_foreign(event.tag());
        }
        self.log.push(event);
        Ok(())
    }

    fn note_foreign(&mut self, tag: &str) {
        if self.foreign.len() < MOST_FOREIGN && !self.foreign.iter().any(|noted| **noted == *tag) {
            self.foreign.push(tag.into());
        }
    }
}

impl Vocabulary {
    /// Reads a header, the first line of a log.
    pub fn decode_header(line: &str) -> Result<Header, DecodeError> {
        serde_json::from_str(line).map_err(DecodeError::Header)
    }

    /// Reads a whole log, a line an event. Unknown events are kept byte for byte. Costs one pass over the text, which
    /// the events then share; a long one is read by as many threads as there are processors, up to four.
    pub fn decode(&self, text: impl Into<String>) -> Result<Decoded, DecodeError> {
        let text = Arc::new(text.into());
        let mut lines = Lines { text: &text, at: 0 };
        let header = Self::decode_header(&text[lines.next().ok_or(DecodeError::NoHeader)?])?;
        let pieces = pieces(&text, lines.at, readers(text.len()));
        let mut decoded = Decoded { log: Snapshot::read(Arc::new(header)), foreign: Vec::new() };
        let (first, later) = pieces.split_first().expect("a text is one piece at least");
        thread::scope(|scope| {
            let read = |piece: &Range<usize>| {
                let events = self.events(&text, piece.clone());
                thread::Builder::new().spawn_scoped(scope, || events.collect::<Vec<_>>())
            };
            let readers: Vec<_> = later.iter().map(read).collect();
            self.events(&text, first.clone()).try_for_each(|event| decoded.add(event))?;
            for (piece, reader) in later.iter().zip(readers) {
                match reader.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(events)) => events.into_iter().try_for_each(|event| decoded.add(event))?,
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // There was no thread for it.
                    Err(_) => self.events(&text, piece.clone()).try_for_each(|event| decoded.add(event))?,
                }
            }
            Ok(decoded)
        })
    }

    /// Reads one line of a log, without its newline: for those who look at a part of one.
    pub fn decode_event(&self, line: &str) -> serde_json::Result<Event> {
        self.event(&Arc::new(line.to_owned()), 0..line.len())
    }

    fn events(&self, text: &Arc<String>, piece: Range<usize>) -> impl Iterator<Item = serde_json::Result<Event>> {
        let lines = Lines { text: &text[..piece.end], at: piece.start };
        lines.map(|line| self.event(text, line))
    }

    fn event(&self, text: &Arc<String>, line: Range<usize>) -> serde_json::Result<Event> {
        let whole = &text[line.clone()];
        if let Some(ours) = Envelope::ours(whole)
            && let Ok(event) = self.event_in(ours, text, line.clone())
        {
            return Ok(event);
        }
        // Other forms, and whatever is wrong with this one.
        self.event_in(Envelope::parse(whole)?, text, line)
    }

    fn event_in(&self, envelope: Envelope<'_>, text: &Arc<String>, line: Range<usize>) -> serde_json::Result<Event> {
        let Envelope { seq, time, tag, ignorable, data } = envelope;
        let kind = self.kind(&tag);
        let payload = match kind {
            Some(kind) if kind.decisive => OnceLock::from(Ok((kind.decode)(data)?)),
            _ => serde_json::from_str::<&RawValue>(data).map(|_| OnceLock::new())?,
        };
        let Some(kind) = kind else {
            let head = Head { seq, time, ignorable, kind: None };
            return Ok(Event::of(Unknown { head, tag: (*tag).into(), text: text.clone(), line }));
        };
        let start = data.as_ptr() as usize - text.as_ptr() as usize;
        let data = start..start + data.len();
        Ok(Event::of(Replayed { seq, time, ignorable, kind, text: text.clone(), line, data, payload }))
    }
}

/// How many threads read `length` bytes.
fn readers(length: usize) -> usize {
    let processors = || thread::available_parallelism().map_or(1, usize::from).min(MOST_PIECES);
    if length < LONG { 1 } else { processors() }
}

/// What is behind `start`, in `count` pieces of whole lines of about the same length, some of which may be empty.
fn pieces(text: &str, start: usize, count: usize) -> Vec<Range<usize>> {
    let length = text.len() - start;
    let mut pieces = Vec::with_capacity(count);
    let mut at = start;
    for piece in 1..count {
        let about = (start + length / count * piece).max(at);
        let newline = memchr(b'\n', &text.as_bytes()[about..]);
        let end = newline.map_or(text.len(), |newline| about + newline + 1);
        pieces.push(std::mem::replace(&mut at, end)..end);
    }
    pieces.push(at..text.len());
    pieces
}

/// Ranges of the lines of a text, without their newlines.
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;
    fn next(&mut self) -> Option<Range<usize>> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let length = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        let line = self.at..self.at + length;
        self.at = (line.end + 1).min(self.text.len());
        Some(line)
    }
}

/// Read from a log. The payload waits in the text until somebody asks.
struct Replayed {
    seq: u64,
    time: u64,
    ignorable: bool,
    kind: &'static Kind,
    text: Arc<String>,
    line: Range<usize>,
    data: Range<usize>,
    /// An error is boxed: it is rare, and there is one of these an event.
    payload: OnceLock<Result<Box<dyn Any + Send + Sync>, Box<DamagedPayload>>>,
}

impl Record for Replayed {
    fn head(&self) -> Head {
        Head { seq: self.seq, time: self.time, ignorable: self.ignorable, kind: Some(self.kind.id) }
    }

    fn tag(&self) -> &str {
        self.kind.tag
    }

    fn payload(&self) -> Result<Option<&dyn Any>, DamagedPayload> {
        let decode = || (self.kind.decode)(&self.text[self.data.clone()]);
        let damaged = |error: serde_json::Error| DamagedPayload {
            seq: self.seq,
            tag: self.kind.tag.into(),
            message: error.to_string().into(),
        };
        let payload = self.payload.get_or_init(|| decode().map_err(|error| Box::new(damaged(error))));
        payload.as_ref().map(|payload| Some(&**payload as &dyn Any)).map_err(|damaged| (**damaged).clone())
    }

    fn message(&self) -> Result<Option<Arc<Message>>, DamagedPayload> {
        if !self.kind.shown {
            return Ok(None);
        }
        Ok(self.payload()?.and_then(self.kind.message))
    }

    fn write(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(self.text[self.line.clone()].as_bytes());
    }
}

struct Unknown {
    head: Head,
    tag: Box<str>,
    text: Arc<String>,
    line: Range<usize>,
}

impl Record for Unknown {
    fn head(&self) -> Head {
        self.head
    }

    fn tag(&self) -> &str {
        &self.tag
    }

    fn payload(&self) -> Result<Option<&dyn Any>, DamagedPayload> {
        Ok(None)
    }

    fn message(&self) -> Result<Option<Arc<Message>>, DamagedPayload> {
        Ok(None)
    }

    fn write(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(self.text[self.line.clone()].as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However long the lines are, and whether or not the last one ends.
        #[test]
        fn pieces_are_whole_lines(text in "([a-ü]{0,9}\n){0,12}[a-ü]{0,3}", start in 0usize..3, count in 1usize..6) {
            let start = text.match_indices('\n').nth(start).map_or(0, |(at, _)| at + 1);
            let pieces = pieces(&text, start, count);
            prop_assert_eq!(pieces.len(), count);
            let lines = |from, to| Lines { text: &text[..to], at: from };
            let whole: Vec<_> = lines(start, text.len()).collect();
            let apart: Vec<_> = pieces.iter().flat_map(|piece| lines(piece.start, piece.end)).collect();
            prop_assert_eq!(apart, whole);
        }
    }

    #[test]
    fn only_a_long_text_is_read_by_several() {
        assert_eq!(readers(LONG - 1), 1);
        assert!((1..=MOST_PIECES).contains(&readers(LONG)));
    }
}
