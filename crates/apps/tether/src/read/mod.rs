//! The commands that read logs. None of them writes, locks or repairs one, or gets in a writer's way.

mod audit;
mod explain;
mod list;
mod show;
mod style;
mod text;
mod tree;

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use async_trait::async_trait;
use policy_audit::{Scope, Unplaced};
use rustix::fs::OFlags;
use sandbox::one_line;
use session::{Header, SessionId, Vocabulary};
use session_jsonl::JsonlStore;
use session_store::{Fault, ListError, ReadError, Reading, Row, SessionStore as _};
use tokio::runtime::Runtime;

use crate::cli::{PolicyCommand, Sessions};
use crate::config::{Env, Places};
use crate::exit::{Exit, Failure};

/// `tether sessions`.
pub(crate) fn sessions(command: Sessions, home: Option<PathBuf>) -> Result<Exit, Failure> {
    let logs = Logs::find(home)?;
    match command {
        Sessions::List { json: true } => print(Form::Json, |out| list::json(&logs, out)),
        Sessions::List { json: false } => print(Form::Text, |out| list::text(&logs, out)),
        Sessions::Show { id, json: true } => print(Form::Json, |out| show::json(&logs, id, out)),
        Sessions::Show { id, json: false } => print(Form::Text, |out| show::text(&logs, id, out)),
        Sessions::Tree { id, json: true } => print(Form::Json, |out| tree::json(&logs, id, out)),
        Sessions::Tree { id, json: false } => print(Form::Text, |out| tree::text(&logs, id, out)),
    }
}

/// `tether policy`.
pub(crate) fn policy(command: PolicyCommand, home: Option<PathBuf>) -> Result<Exit, Failure> {
    let logs = Logs::find(home)?;
    match command {
        PolicyCommand::Explain { id, tree: false, json: true } => {
            print(Form::Json, |out| explain::json(&logs, id, out))
        }
        PolicyCommand::Explain { id, tree: false, json: false } => {
            print(Form::Text, |out| explain::text(&logs, id, out))
        }
        PolicyCommand::Explain { id, tree: true, json: true } => {
            print(Form::Json, |out| explain::tree_json(&logs, id, out))
        }
        PolicyCommand::Explain { id, tree: true, json: false } => {
            print(Form::Text, |out| explain::tree_text(&logs, id, out))
        }
        PolicyCommand::Audit { id, json } => {
            let scope = id.map_or(Scope::All, Scope::Below);
            let report = logs.wait(policy_audit::audit(&logs, scope)).map_err(Stop::from)?;
            match json {
                true => print(Form::Json, |out| audit::json(&report, out))?,
                false => print(Form::Text, |out| audit::text(&report, out))?,
            };
            Ok(if report.violations() == 0 { Exit::Done } else { Exit::Failed })
        }
    }
}

/// A longer header is not one of ours.
const MOST_HEADER: u64 = 1 << 20;

/// The logs, and the words to read them with.
struct Logs {
    store: JsonlStore,
    vocabulary: Arc<Vocabulary>,
    runtime: Runtime,
}

/// What goes to standard error once standard output is written, a line each.
type Notes = Vec<String>;

/// Why a command stopped.
enum Stop {
    /// What it was asked for cannot be read.
    Failed(Failure),
    /// Standard output cannot be written.
    Output(io::Error),
}

/// What standard output is for.
enum Form {
    /// People: styled on a terminal.
    Text,
    /// Programs: not a byte is touched.
    Json,
}

impl Logs {
    fn find(home: Option<PathBuf>) -> Result<Self, Failure> {
        let places = Places::find(&Env::of_process(), home).map_err(Failure::usage)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
        Ok(Self {
            store: JsonlStore::new(places.home.join("sessions")),
            vocabulary: bundle::sessions().vocabulary(),
            runtime,
        })
    }

    fn read(&self, id: SessionId) -> Result<Reading, ReadError> {
        self.runtime.block_on(self.store.read(&self.vocabulary, id))
    }

    fn wait<T>(&self, reading: impl Future<Output = T>) -> T {
        self.runtime.block_on(reading)
    }

    /// The first line of a log that could be read, as it stands there.
    fn header_line(&self, id: SessionId) -> Result<Vec<u8>, ReadError> {
        let path = self.store.path(id);
        let fault = |source| Fault { doing: "read", place: path.display().to_string(), source };
        // Neither a link nor a pipe that nobody writes: what the store refuses is not looked at here either.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path).map_err(fault)?;
        if !file.metadata().map_err(fault)?.is_file() {
            return Err(fault(io::Error::other("not a regular file")).into());
        }
        let mut line = Vec::new();
        BufReader::new(file).take(MOST_HEADER).read_until(b'\n', &mut line).map_err(fault)?;
        Ok(line)
    }

    /// What the first line says, whatever is behind it.
    fn header(&self, id: SessionId) -> Option<Header> {
        let line = self.header_line(id).ok()?;
        Vocabulary::decode_header(std::str::from_utf8(&line).ok()?).ok().filter(|header| header.id() == id)
    }

    /// Every session, oldest first.
    fn list(&self) -> Result<Vec<Row>, ListError> {
        self.runtime.block_on(self.store.list(&self.vocabulary))
    }
}

#[async_trait]
impl policy_audit::Logs for Logs {
    async fn list(&self) -> Result<Vec<Row>, ListError> {
        self.store.list(&self.vocabulary).await
    }

    async fn read(&self, id: SessionId) -> Result<Reading, ReadError> {
        self.store.read(&self.vocabulary, id).await
    }

    async fn header(&self, id: SessionId) -> Option<Arc<Header>> {
        Self::header(self, id).map(Arc::new)
    }
}

fn print(form: Form, tell: impl FnOnce(&mut dyn Write) -> Result<Notes, Stop>) -> Result<Exit, Failure> {
    let stdout: Box<dyn Write> = match form {
        Form::Text => Box::new(anstream::stdout().lock()),
        Form::Json => Box::new(io::stdout().lock()),
    };
    let mut out = io::BufWriter::new(stdout);
    let told = tell(&mut out).and_then(|notes| {
        out.flush()?;
        Ok(notes)
    });
    match told {
        Ok(notes) => {
            for note in notes {
                anstream::eprintln!("tether: {}", one_line(&note));
            }
            Ok(Exit::Done)
        }
        // Nobody reads any more.
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(stop) => Err(stop.into()),
    }
}

/// What could not be placed.
fn told(unplaced: &[Unplaced]) -> Notes {
    unplaced.iter().map(|log| format!("where {} belongs is not known: {}", log.session, log.why)).collect()
}

/// As one line: a damaged log may say anything.
fn diagnosis(error: &ReadError) -> String {
    one_line(&error.to_string()).to_string()
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(failure) => failure,
            Stop::Output(error) => Self::failed(anyhow!("could not write to standard output: {error}")),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        let told = anyhow!(diagnosis(&error));
        Self::Failed(match error {
            ReadError::NotFound(_) => Failure::usage(told),
            ReadError::Damaged(_) | ReadError::Io(_) => Failure::failed(told),
        })
    }
}

impl From<ListError> for Stop {
    fn from(error: ListError) -> Self {
        Self::Failed(Failure::failed(error))
    }
}
