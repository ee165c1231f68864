//! Lines between a child and the protocol: bounded, whatever the child writes and however little it reads.

use std::io;
use std::sync::Arc;

use agent_client_protocol::{RawJsonRpcMessage, TransportFrame};
use futures_util::{Sink, Stream, sink, stream};
use serde::Deserialize;
use serde::de::IgnoredAny;
use subprocess::{Input, Output};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::Failure;

/// The longest frame that is read, in bytes.
pub const LONGEST_FRAME: usize = 16 * 1024 * 1024;

/// How many lines that are no frames are passed over: some programs write more than the protocol.
const MOST_STRAY: usize = 1_000;

/// How many questions of a child may wait until it reads the answers.
const MOST_QUESTIONS: usize = 64;

/// A frame as it was written.
pub(crate) struct Frame {
    line: String,
    is_question: bool,
}

/// Where frames come out.
pub(crate) type Frames = mpsc::Receiver<Frame>;

/// Reads to the end of the tree, also when nobody wants the frames any more: a child that cannot write would not end.
pub(crate) async fn pump(mut output: Output, to: mpsc::Sender<Frame>, failed: oneshot::Sender<Failure>) {
    let mut reader = Reader::default();
    let mut to = Some((to, failed));
    while let Some(piece) = output.next().await {
        let Some((frames, _)) = &to else { continue };
        let (found, failure) = reader.push(&piece);
        let mut is_wanted = true;
        for frame in found {
            is_wanted = is_wanted && frames.send(frame).await.is_ok();
        }
        if failure.is_some() || !is_wanted {
            reader = Reader::default();
            // The failure is known before the frames end.
            let told = to.take().zip(failure).map(|((_, failed), failure)| failed.send(failure));
            drop(told);
        }
    }
}

/// Makes frames of pieces.
#[derive(Default)]
struct Reader {
    line: Vec<u8>,
    stray: usize,
}

impl Reader {
    /// What is found in one more piece, and what is wrong with what comes behind that.
    fn push(&mut self, piece: &[u8]) -> (Vec<Frame>, Option<Failure>) {
        let mut found = Vec::new();
        let failure = self.frames(piece, &mut found).err();
        (found, failure)
    }

    fn frames(&mut self, mut piece: &[u8], found: &mut Vec<Frame>) -> Result<(), Failure> {
        while let Some(at) = piece.iter().position(|byte| *byte == b'\n') {
            self.extend(&piece[..at])?;
            piece = &piece[at + 1..];
            let line = std::mem::take(&mut self.line);
            found.extend(self.frame(line)?);
        }
        self.extend(piece)
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), Failure> {
        if self.line.len() + part.len() > LONGEST_FRAME {
            return Err(Failure::TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn frame(&mut self, line: Vec<u8>) -> Result<Option<Frame>, Failure> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let parsed = String::from_utf8(line).ok().and_then(|line| match TransportFrame::parse_json(&line) {
            TransportFrame::Single(message) => {
                Some(Frame { line, is_question: matches!(message, RawJsonRpcMessage::Request(_)) })
            }
            _ => None,
        });
        if parsed.is_none() {
            self.stray += 1;
        }
        match self.stray > MOST_STRAY {
            true => Err(Failure::NoFrames { lines: self.stray }),
            false => Ok(parsed),
        }
    }
}

/// What the protocol reads and writes. It takes one frame at a time and lets everything else go on before the next, so that
/// nothing piles up behind it; and no more questions than [`MOST_QUESTIONS`] whose answers the child has not read.
pub(crate) fn lines(
    frames: Frames,
    input: Input,
) -> (impl Sink<String, Error = io::Error> + Send + 'static, impl Stream<Item = io::Result<String>> + Send + 'static) {
    let answered = Arc::new(Semaphore::new(MOST_QUESTIONS));
    let asked = answered.clone();
    let outgoing = sink::unfold((Some(input), answered), |(input, answered), line: String| async move {
        let is_answer = is_answer(&line);
        let input = write(input, line).await;
        if is_answer {
            answered.add_permits(1);
        }
        Ok((input, answered))
    });
    (Box::pin(outgoing), Box::pin(incoming(frames, asked)))
}

fn incoming(frames: Frames, asked: Arc<Semaphore>) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    stream::unfold((frames, asked), |(mut frames, asked)| async move {
        tokio::task::yield_now().await;
        let Frame { line, is_question } = frames.recv().await?;
        if is_question {
            asked.acquire().await.ok()?.forget();
        }
        Some((Ok(line), (frames, asked)))
    })
}

/// Writes a line. A child that does not read any more is not written to again: that it has ended is seen where it writes.
async fn write(input: Option<Input>, mut line: String) -> Option<Input> {
    let mut input = input?;
    line.push('\n');
    input.write_all(line.as_bytes()).await.is_ok().then_some(input)
}

fn is_answer(line: &str) -> bool {
    #[derive(Deserialize)]
    struct Head {
        method: Option<IgnoredAny>,
    }
    serde_json::from_str::<Head>(line).is_ok_and(|head| head.method.is_none())
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    type Lines = Vec<(String, bool)>;

    fn read(pieces: &[&[u8]]) -> Result<Lines, (Failure, Lines)> {
        let mut reader = Reader::default();
        let mut all = Vec::new();
        for piece in pieces {
            let (found, failure) = reader.push(piece);
            all.extend(found.into_iter().map(|frame| (frame.line, frame.is_question)));
            if let Some(failure) = failure {
                return Err((failure, all));
            }
        }
        Ok(all)
    }

    #[test]
    fn pieces_make_no_difference() {
        let frames = [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"é":1}}"#,
            r#"{"jsonrpc":"2.0","id":"x","method":"what"}"#,
        ];
        let text = format!("{}\n\n starting up…\n{}\r\n[1]\n{}\n", frames[0], frames[1], frames[2]);
        for size in [1, 2, 7, 64, text.len()] {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let read = read(&pieces).unwrap();
            let lines: Vec<&str> = read.iter().map(|(line, _)| line.trim_end()).collect();
            assert_eq!(lines, frames, "{size}");
            assert_eq!(read.iter().map(|(_, is_question)| *is_question).collect::<Vec<_>>(), [false, false, true]);
        }
    }

    #[test]
    fn a_flood_is_cut_off() {
        let long = vec![b'x'; 1024 * 1024];
        assert_eq!(read(&[&long[..]; 16]), Ok(vec![]));
        assert_eq!(read(&[&long[..]; 17]), Err((Failure::TooLong, vec![])));
        let stray = b"\xff not json\n".repeat(MOST_STRAY);
        assert_eq!(read(&[&stray]), Ok(vec![]));
        let too_many = Failure::NoFrames { lines: MOST_STRAY + 1 };
        assert_eq!(read(&[&stray, b"{\n"]), Err((too_many.clone(), vec![])));
        // What came before it, in the same piece, is heard.
        let said = br#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#;
        let (failure, heard) = read(&[&[&said[..], b"\n", &stray, b"{\n"].concat()]).unwrap_err();
        assert_eq!((failure, heard.len()), (too_many, 1));
    }

    #[tokio::test]
    async fn everything_else_goes_on_between_two_frames_and_questions_wait_for_answers() {
        let (to, frames) = mpsc::channel(8);
        for (line, is_question) in [("one", false), ("two", true), ("three", true)] {
            to.try_send(Frame { line: line.to_owned(), is_question }).ok().unwrap();
        }
        let asked = Arc::new(Semaphore::new(1));
        let mut incoming = Box::pin(incoming(frames, asked.clone()));
        for line in ["one", "two"] {
            assert!(incoming.next().now_or_never().is_none(), "{line} comes at once");
            assert_eq!(incoming.next().await.unwrap().unwrap(), line);
        }
        assert!(incoming.next().now_or_never().is_none());
        tokio::task::yield_now().await;
        assert!(incoming.next().now_or_never().is_none(), "nobody has read the answer to the second");
        asked.add_permits(1);
        assert_eq!(incoming.next().await.unwrap().unwrap(), "three");
    }

    #[test]
    fn answers_are_told_from_questions() {
        assert!(is_answer(r#"{"jsonrpc":"2.0","id":1,"result":{"method":"x"}}"#));
        assert!(!is_answer(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#));
    }
}
