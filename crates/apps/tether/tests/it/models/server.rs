use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::run::process::DEADLINE;

/// What is sent for one request.
#[derive(Clone)]
pub(crate) enum Reply {
    Status(u16, Vec<(String, String)>, String),
    /// A stream of events, and what comes behind them.
    Stream(Vec<Value>, After),
    Garbage(&'static str),
    /// Nothing, until the client leaves.
    Silence,
}

/// What comes behind a stream's events.
#[derive(Clone, Copy)]
pub(crate) enum After {
    Done,
    Cut,
    Silence,
}

/// A request as it arrived.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// Speaks chat completions: one prepared reply a request, and the last one again if there are no more.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    replies: Vec<Reply>,
    asked: Mutex<Vec<Asked>>,
    sent: (Mutex<bool>, Condvar),
}

impl Reply {
    pub(crate) fn text(pieces: &[&str]) -> Self {
        Self::Stream([said(pieces), vec![finish("stop"), usage()]].concat(), After::Done)
    }

    pub(crate) fn calls(name: &str, arguments: &Value) -> Self {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        let delta = json!({"role": "assistant", "tool_calls": [call]});
        Self::Stream(vec![chunk(&delta, &Value::Null), finish("tool_calls"), usage()], After::Done)
    }

    pub(crate) fn cut(pieces: &[&str]) -> Self {
        Self::Stream(said(pieces), After::Cut)
    }

    pub(crate) fn silent_after(pieces: &[&str]) -> Self {
        Self::Stream(said(pieces), After::Silence)
    }

    pub(crate) fn status(code: u16, headers: &[(&str, &str)], body: &Value) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self::Status(code, headers.collect(), body.to_string())
    }
}

impl Server {
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { replies, asked: Mutex::default(), sent: Default::default() });
        let serving = shared.clone();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let shared = serving.clone();
                // A client that leaves in the middle is what some tests are about.
                thread::spawn(move || drop(serve(socket, &shared)));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Waits until a reply was sent, or as much of it as there is.
    pub(crate) fn sent(&self) {
        let (sent, changed) = &self.shared.sent;
        let waited = changed.wait_timeout_while(sent.lock().unwrap(), DEADLINE, |sent| !*sent).unwrap();
        assert!(!waited.1.timed_out(), "nobody asked");
    }
}

fn serve(mut socket: TcpStream, shared: &Shared) -> io::Result<()> {
    let request = read(&mut socket)?;
    let reply = {
        let mut asked = shared.asked.lock().unwrap();
        asked.push(request);
        shared.replies.get(asked.len() - 1).or(shared.replies.last()).unwrap().clone()
    };
    let silent = match reply {
        Reply::Silence => true,
        Reply::Status(code, headers, body) => {
            let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            write!(socket, "HTTP/1.1 {code} Whatever\r\ncontent-type: application/json\r\n{headers}")?;
            write!(socket, "content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())?;
            false
        }
        Reply::Garbage(text) => {
            socket.write_all(OK.as_bytes())?;
            socket.write_all(text.as_bytes())?;
            false
        }
        Reply::Stream(events, after) => {
            socket.write_all(OK.as_bytes())?;
            for event in events {
                write!(socket, "data: {event}\n\n")?;
            }
            if let After::Done = after {
                socket.write_all(b"data: [DONE]\n\n")?;
            }
            matches!(after, After::Silence)
        }
    };
    let (sent, changed) = &shared.sent;
    *sent.lock().unwrap() = true;
    changed.notify_all();
    if silent {
        while socket.read(&mut [0; 64])? > 0 {}
    }
    socket.shutdown(Shutdown::Both)
}

/// A stream that ends where the connection does.
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn read(socket: &mut TcpStream) -> io::Result<Asked> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return Ok(Asked { head: head.to_owned(), body });
        }
        match socket.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&piece[..n]),
        }
    }
}

fn said(pieces: &[&str]) -> Vec<Value> {
    pieces.iter().map(|piece| chunk(&json!({"role": "assistant", "content": piece}), &Value::Null)).collect()
}

fn finish(reason: &str) -> Value {
    chunk(&json!({}), &reason.into())
}

fn usage() -> Value {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12});
    json!({"id": "1", "object": "chat.completion.chunk", "model": "mock", "choices": [], "usage": usage})
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"id": "1", "object": "chat.completion.chunk", "model": "mock", "choices": [choice]})
}
