//! Frames: a line each, of bounded length, and no more of them under way than a client reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol::Lines;
use futures_util::{Sink, Stream, StreamExt as _, sink};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, watch};
use tokio_util::bytes::{Buf as _, BytesMut};
use tokio_util::codec::{Decoder, FramedRead};

/// The longest frame that is read, in bytes. Pictures come in base64.
const MOST_FRAME: usize = 32 * 1024 * 1024;
/// How many updates may be under way to the client.
const WINDOW: usize = 256;
/// How many frames are read that the client has not taken an answer for while it takes none.
const MOST_UNREAD: u64 = 1_024;
/// The longest of them, in bytes. Refusing a frame may quote it.
const SHORT: usize = 16 * 1024;
/// What the frame of an update begins with.
const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update""#;

/// How far the client has read.
pub(crate) struct Flow {
    room: Semaphore,
    /// How many more frames were read than answers written.
    unread: AtomicU64,
    /// Whether a frame is being written.
    writing: watch::Sender<bool>,
}

impl Flow {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { room: Semaphore::new(WINDOW), unread: AtomicU64::new(0), writing: watch::Sender::new(false) })
    }

    /// Waits until there is room for one more update, which is to be sent then.
    pub(crate) async fn room(&self) {
        // Never closed.
        if let Ok(permit) = self.room.acquire().await {
            permit.forget();
        }
    }

    /// Waits while the client sends and does not read. One that does is never waited for.
    async fn may_read(&self, bytes: usize) {
        let counted = self
            .unread
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |unread| (unread < MOST_UNREAD).then(|| unread + 1));
        if counted.is_ok() && bytes <= SHORT {
            return;
        }
        // Never fails: the sender is ours.
        let _ = self.writing.subscribe().wait_for(|writing| !*writing).await;
    }

    async fn write<W: AsyncWrite + Unpin>(&self, writer: &mut W, mut line: String) -> io::Result<()> {
        let is_update = line.starts_with(UPDATE);
        line.push('\n');
        self.writing.send_replace(true);
        let written = async {
            writer.write_all(line.as_bytes()).await?;
            writer.flush().await
        };
        let written = written.await;
        self.writing.send_replace(false);
        if is_update {
            self.room.add_permits(1);
        } else {
            let _ = self.unread.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |unread| unread.checked_sub(1));
        }
        written
    }
}

/// The two streams as the protocol's crate wants them.
pub(crate) fn lines<R, W>(
    reader: R,
    writer: W,
    flow: &Arc<Flow>,
) -> Lines<impl Sink<String, Error = io::Error> + Send + 'static, impl Stream<Item = io::Result<String>> + Send + 'static>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (outgoing, incoming) = parts(reader, writer, flow);
    Lines::new(outgoing, incoming)
}

fn parts<R, W>(
    reader: R,
    writer: W,
    flow: &Arc<Flow>,
) -> (impl Sink<String, Error = io::Error> + Send + 'static, impl Stream<Item = io::Result<String>> + Send + 'static)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (writes, reads) = (flow.clone(), flow.clone());
    let outgoing = sink::unfold(writer, move |mut writer, line: String| {
        let flow = writes.clone();
        async move {
            flow.write(&mut writer, line).await?;
            Ok(writer)
        }
    });
    let incoming = FramedRead::new(reader, Frames::default()).then(move |line| {
        let flow = reads.clone();
        async move {
            flow.may_read(line.as_ref().map_or(0, String::len)).await;
            line
        }
    });
    (outgoing, incoming)
}

/// Splits at newlines. What is no frame comes as a text that is none, so that the client is told.
#[derive(Default)]
struct Frames {
    /// How far there is no newline.
    seen: usize,
    /// Whether the rest of a line that was too long is to be skipped.
    skipping: bool,
}

impl Frames {
    fn text(line: &[u8]) -> Option<String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        Some(String::from_utf8(line.to_vec()).unwrap_or_else(|_| "a frame that is not UTF-8".to_owned()))
    }
}

impl Decoder for Frames {
    type Item = String;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<String>> {
        loop {
            let newline = bytes[self.seen..].iter().position(|byte| *byte == b'\n').map(|at| self.seen + at);
            match newline {
                Some(end) => {
                    let line = bytes.split_to(end);
                    bytes.advance(1);
                    self.seen = 0;
                    if std::mem::take(&mut self.skipping) {
                        continue;
                    }
                    if let Some(text) = Self::text(&line) {
                        return Ok(Some(text));
                    }
                }
                None if self.skipping => {
                    bytes.clear();
                    return Ok(None);
                }
                None if bytes.len() > MOST_FRAME => {
                    *bytes = BytesMut::new();
                    (self.seen, self.skipping) = (0, true);
                    return Ok(Some(format!("a frame of more than {MOST_FRAME} bytes")));
                }
                None => {
                    self.seen = bytes.len();
                    return Ok(None);
                }
            }
        }
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<String>> {
        if let Some(line) = self.decode(bytes)? {
            return Ok(Some(line));
        }
        let rest = bytes.split();
        self.seen = 0;
        Ok(Self::text(&rest))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::{FutureExt as _, SinkExt as _};
    use tokio::io::{AsyncReadExt as _, DuplexStream};

    use super::*;

    fn split(text: &[u8], at: usize) -> Vec<String> {
        let (mut frames, mut bytes, mut lines) = (Frames::default(), BytesMut::new(), Vec::new());
        for piece in text.chunks(at) {
            bytes.extend_from_slice(piece);
            while let Some(line) = frames.decode(&mut bytes).expect("it never fails") {
                lines.push(line);
            }
        }
        while let Some(line) = frames.decode_eof(&mut bytes).expect("it never fails") {
            lines.push(line);
        }
        lines
    }

    #[test]
    fn a_frame_is_a_line_wherever_the_pieces_end() {
        for at in [1, 2, 3, 100] {
            assert_eq!(split(b"one\r\n\n \ntwo\xff\nthree", at), ["one", "a frame that is not UTF-8", "three"]);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_told_once_and_those_behind_it_are_read() {
        let mut text = vec![b'x'; 2 * MOST_FRAME];
        text.extend_from_slice(b"\nnext\n");
        assert_eq!(split(&text, 1 << 20), [format!("a frame of more than {MOST_FRAME} bytes"), "next".to_owned()]);
    }

    type Outgoing = Pin<Box<dyn Sink<String, Error = io::Error>>>;

    /// The way to a client that has room for this many bytes, and the client's end of it.
    fn connected(room: usize) -> (Arc<Flow>, Outgoing, DuplexStream) {
        let (flow, (ours, theirs)) = (Flow::new(), tokio::io::duplex(room));
        let (outgoing, _) = parts(tokio::io::empty(), ours, &flow);
        (flow, Box::pin(outgoing), theirs)
    }

    #[test]
    fn only_so_many_updates_are_under_way() {
        let (flow, mut outgoing, _client) = connected(1 << 20);
        for _ in 0..WINDOW {
            flow.room().now_or_never().expect("there is room");
        }
        assert!(flow.room().now_or_never().is_none());
        outgoing.send("an answer".to_owned()).now_or_never().unwrap().unwrap();
        assert!(flow.room().now_or_never().is_none(), "that was no update");
        outgoing.send(format!("{UPDATE},\"params\":{{}}}}")).now_or_never().unwrap().unwrap();
        flow.room().now_or_never().expect("one was written");
        assert!(flow.room().now_or_never().is_none());
    }

    #[test]
    fn a_client_that_does_not_read_is_read_from_for_a_while() {
        let (flow, mut outgoing, mut client) = connected(4);
        flow.may_read(usize::MAX).now_or_never().expect("nobody waits for the client");
        let mut writing = outgoing.send("an answer".to_owned());
        assert!((&mut writing).now_or_never().is_none());
        assert!(flow.may_read(SHORT + 1).now_or_never().is_none(), "what is long waits at once");
        let read = (0..2 * MOST_UNREAD).take_while(|_| flow.may_read(1).now_or_never().is_some()).count();
        assert!(read as u64 <= MOST_UNREAD && read > 0, "{read}");
        while (&mut writing).now_or_never().is_none() {
            client.read_u8().now_or_never().expect("something was written").unwrap();
        }
        flow.may_read(usize::MAX).now_or_never().expect("it has read");
    }
}
