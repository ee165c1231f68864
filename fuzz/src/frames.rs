//! What a client of the Agent Client Protocol may send.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use acp::{Host, House};
use app_boot::{Boot, Env, Flags};
use async_trait::async_trait;
use bundle::Settings;
use context::{BoxError, Scope};
use serde_json::{Value, json};
use session::{Session, Vocabulary};
use session_jsonl::JsonlStore;
use session_store::SessionStore;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

use crate::world::run;

/// What stands for the session in an input.
const SESSION: &str = "$S";

/// How many bytes are under way each way.
const ROOM: usize = 4096;

/// Sends `data` to a server, once it has a session: `$S` is its id. A model answers there, and calls no tools.
///
/// # Panics
///
/// If a request gets no answer, or more than one; if an answer is nobody's, or what is sent is no frame; if work panicked;
/// if the server ends before its client leaves, or does not end then.
pub fn frames(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let root = dir.path().join("ws");
    std::fs::create_dir(&root).expect("the directory is writable");
    let host = Arc::new(Offline::new(&dir));
    run(async {
        let app = Scope::root("acp");
        let (reader, to_server) = tokio::io::duplex(ROOM);
        let (from_server, writer) = tokio::io::duplex(ROOM);
        let served = acp::serve(&app, host, reader, writer);
        let client = Client { to_server, lines: BufReader::new(from_server).lines(), answers: HashMap::new() };
        let (served, ()) = tokio::join!(served, client.talk(&root, data));
        served.expect("its client left");
        app.close().await.expect("nothing that it holds fails to close");
    });
}

/// Sessions in a directory, whose model needs no network.
struct Offline {
    boot: Boot,
    store: Arc<JsonlStore>,
    vocabulary: Arc<Vocabulary>,
}

impl Offline {
    fn new(dir: &TempDir) -> Self {
        let at = |below: &str| dir.path().join(below).to_string_lossy().into_owned();
        std::fs::write(at("replies.jsonl"), "{\"text\": \"hi\"}\n").expect("the directory is writable");
        let variables = [
            ("HOME", at("user")),
            ("XDG_CONFIG_HOME", at("config")),
            ("TETHER_HOME", at("home")),
            ("TETHER_OFFLINE_SCRIPT", at("replies.jsonl")),
        ];
        let boot = Boot::new(Env::of(&variables), None, None).expect("there is a home, and no file of keys");
        let store = Arc::new(JsonlStore::new(boot.places.home.join("sessions")));
        Self { boot, store, vocabulary: bundle::sessions().vocabulary() }
    }
}

#[async_trait]
impl Host for Offline {
    async fn house(&self, root: &Path) -> Result<House, BoxError> {
        let config = self.boot.configure(root, Flags::default())?;
        let settings = Settings::configured(&self.boot, &config);
        let app = app_boot::start("fuzz", bundle::full(settings), &config).await?;
        let model: llm::Route = "offline/file".parse()?;
        Ok(House { app, models: vec![model.clone()], model })
    }

    fn begin(&self, _: &House, _: &Session) -> Result<(), BoxError> {
        Ok(())
    }

    fn store(&self) -> (Arc<dyn SessionStore>, Arc<Vocabulary>) {
        (self.store.clone(), self.vocabulary.clone())
    }
}

struct Client {
    to_server: DuplexStream,
    lines: Lines<BufReader<DuplexStream>>,
    /// How many answers there were, by what they answer.
    answers: HashMap<String, usize>,
}

impl Client {
    async fn talk(mut self, root: &Path, data: &[u8]) {
        self.ask("initialize", json!({"protocolVersion": 1})).await;
        let opened = self.ask("session/new", json!({"cwd": root, "mcpServers": []})).await;
        let session = opened["result"]["sessionId"].as_str().expect("the root is a directory").to_owned();
        let sent = filled(data, session.as_bytes());
        let asked = requests(&sent);
        let Self { mut to_server, mut lines, mut answers } = self;
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
        let sending = async {
            to_server.write_all(&sent).await.expect("the server reads");
            to_server.write_all(format!("\n{cancel}\n").as_bytes()).await.expect("the server reads");
            to_server
        };
        let reading = async {
            let all = |answers: &HashMap<String, usize>| asked.iter().all(|(id, times)| answers.get(id) >= Some(times));
            while !all(&answers) {
                let line = lines.next_line().await.expect("it is text").expect("the server waits for its client");
                if let Some(id) = checked(&line) {
                    *answers.entry(id).or_default() += 1;
                }
            }
        };
        let (to_server, ()) = tokio::join!(sending, reading);
        drop(to_server);
        while let Some(line) = lines.next_line().await.expect("it is text") {
            if let Some(id) = checked(&line) {
                *answers.entry(id).or_default() += 1;
            }
        }
        for (id, times) in answers {
            let expected = asked.get(&id).copied().unwrap_or_default();
            // Of what is told to nobody it is not known whom it concerns.
            assert!(times == expected || id == "null" || is_odd(&sent, &id), "{times} answers to {id}, not {expected}");
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.to_server.write_all(format!("{request}\n").as_bytes()).await.expect("the server reads");
        loop {
            let line = self.lines.next_line().await.expect("it is text").expect("the server waits for its client");
            let frame: Value = serde_json::from_str(&line).expect("a frame is JSON");
            if frame["id"] == method {
                return frame;
            }
        }
    }
}

/// The input with the session's id in its places.
fn filled(data: &[u8], session: &[u8]) -> Vec<u8> {
    let (mut filled, mut rest) = (Vec::new(), data);
    while let Some(at) = rest.windows(SESSION.len()).position(|part| part == SESSION.as_bytes()) {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(session);
        rest = &rest[at + SESSION.len()..];
    }
    filled.extend_from_slice(rest);
    filled
}

/// How many answers there must be, by the ids of what are requests without doubt.
fn requests(sent: &[u8]) -> HashMap<String, usize> {
    let mut asked = HashMap::new();
    for frame in sent.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok()) {
        let params = frame.get("params");
        let is_request = frame["jsonrpc"] == "2.0"
            && frame["method"].is_string()
            && (frame["id"].is_string() || frame["id"].is_i64())
            && params.is_none_or(|params| params.is_object() || params.is_array())
            && frame.get("result").is_none()
            && frame.get("error").is_none();
        if is_request {
            *asked.entry(frame["id"].to_string()).or_default() += 1;
        }
    }
    asked
}

/// Whether this id is that of something that may be a request or not.
fn is_odd(sent: &[u8], id: &str) -> bool {
    let lines = sent.split(|byte| *byte == b'\n');
    let frames = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let those = frames.filter(|frame| frame.get("id").map(Value::to_string).as_deref() == Some(id));
    those.count() > requests(sent).get(id).copied().unwrap_or_default()
}

/// Panics if this is no frame of a server's: what it answers, if it is an answer.
fn checked(line: &str) -> Option<String> {
    let frame: Value = serde_json::from_str(line).expect("a frame is JSON");
    assert_eq!(frame["jsonrpc"], "2.0", "{line}");
    if let Some(method) = frame.get("method") {
        let known = ["session/update", "$/cancel_request"].iter().any(|known| method == known);
        assert!(known && frame.get("id").is_none() && frame["params"].is_object(), "{line}");
        return None;
    }
    match (frame.get("result"), frame.get("error")) {
        (Some(_), None) => {}
        (None, Some(error)) => {
            let message = error["message"].as_str().expect("an error says what is wrong");
            assert!(error["code"].is_i64() && !message.contains("panicked"), "{line}");
        }
        _ => panic!("neither a result nor an error: {line}"),
    }
    Some(frame["id"].to_string())
}
