use std::sync::{Arc, Mutex};
use std::time::Duration;

use context::{Ctx, Stop};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server does once it has read a request. Then it closes the connection.
pub(crate) type Answer = Vec<Step>;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Says nothing until the client leaves.
    Silence,
    /// Closes so that the client sees an error rather than an end.
    Reset,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) target: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// A server that gives prepared answers, one a request; the last one again if there are no more.
pub(crate) struct Server {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    answers: Vec<Answer>,
    asked: Mutex<Vec<Asked>>,
    arrived: Notify,
    left: Notify,
}

impl Server {
    pub(crate) async fn start(ctx: &Ctx, answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared { answers, ..Shared::default() });
        let server = Self { address, shared: shared.clone() };
        let owner = ctx.clone();
        let serve = async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                owner.spawn("connection", Stop::Abort, connection(socket, shared.clone())).unwrap();
            }
        };
        ctx.spawn("server", Stop::Abort, serve).unwrap();
        server
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Waits until a request has been read.
    pub(crate) async fn arrived(&self) {
        self.shared.arrived.notified().await;
    }

    /// Waits until a client has left a silent server.
    pub(crate) async fn left(&self) {
        self.shared.left.notified().await;
    }
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

async fn connection(mut socket: TcpStream, shared: Arc<Shared>) {
    socket.set_nodelay(true).unwrap();
    let Some(request) = read(&mut socket).await else { return };
    let number = {
        let mut asked = shared.asked.lock().unwrap();
        asked.push(request);
        asked.len() - 1
    };
    shared.arrived.notify_one();
    for step in shared.answers.get(number).or(shared.answers.last()).unwrap() {
        match step {
            Step::Send(bytes) => {
                if socket.write_all(bytes).await.is_err() {
                    return;
                }
            }
            Step::Silence => {
                while !matches!(socket.read(&mut [0; 64]).await, Ok(0) | Err(_)) {}
                shared.left.notify_one();
                return;
            }
            Step::Reset => {
                socket.set_zero_linger().unwrap();
                return;
            }
        }
    }
    drop(socket.shutdown().await);
}

async fn read(socket: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let asked = Asked {
                target: head.split(' ').nth(1)?.to_owned(),
                head: head.to_owned(),
                body: serde_json::from_str(body).unwrap_or_default(),
            };
            let length = asked.header("content-length")?.parse::<usize>().ok()?;
            if body.len() >= length {
                return Some(asked);
            }
        }
        // 22 begins a TLS handshake.
        if socket.read_buf(&mut bytes).await.ok()? == 0 || bytes[0] == 22 {
            return None;
        }
    }
}

/// An answer with a status and a body.
pub(crate) fn status(code: u16, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let head = "content-type: application/json\r\nconnection: close";
    let all = format!("HTTP/1.1 {code} Any\r\n{head}\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    vec![Step::Send(all.into())]
}

/// A stream, whole.
pub(crate) fn stream(events: &[impl AsRef<str>]) -> Answer {
    let mut answer = open(events);
    answer.push(Step::Send("0\r\n\r\n".into()));
    answer
}

/// A stream that goes on, or breaks off, after these events: push what happens, or nothing for a cut.
pub(crate) fn open(events: &[impl AsRef<str>]) -> Answer {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |event: &str| Step::Send(format!("{:x}\r\n{event}\r\n", event.len()).into());
    let events = events.iter().map(|event| chunk(event.as_ref()));
    std::iter::once(Step::Send(head.into())).chain(events).collect()
}

/// Long enough for anything on this machine, short enough for a person.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("this should not take so long")
}
