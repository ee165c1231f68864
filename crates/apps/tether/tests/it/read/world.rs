use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use context::{Plugins, Scope};
use llm::{Content, Message, Role, Usage};
use sandbox::{Denial, Mode, Operation};
use sandbox_policy::SandboxPolicyPlugin;
use serde_json::Value;
use session::{
    AssistantMessage, Clock, Delegation, MessageId, Seed, Session, SessionId, Sessions, Source, ToolCalled,
    ToolErrorCode, ToolReturned, TurnEnd, TurnReason, TurnStart, UserMessage,
};
use session_jsonl::JsonlStore;
use session_store::SessionStore as _;
use subagent::{ChildMode, DESCRIPTOR_VERSION, Descriptor};
use tempfile::TempDir;
use user_approval::{Policy, UserApprovalPlugin};

/// Long enough for a slow machine; only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(120);

/// A home with a store, and a house with the real contributors.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) sessions: Arc<Sessions>,
    store: JsonlStore,
}

/// What a command left.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        1_790_000_000_000
    }
}

/// Runs a test on a world of its own, under a deadline.
pub(crate) async fn in_world(test: impl AsyncFnOnce(&World)) {
    let tested = tokio::time::timeout(DEADLINE, async {
        let app = Scope::root("app");
        let sessions = Sessions::with_clock(Arc::new(Still));
        sessions.learn::<Descriptor>().unwrap();
        app.provide(sessions.clone()).unwrap();
        let plugins = Plugins::new()
            .with(SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::ReadOnly })
            .with(UserApprovalPlugin, user_approval::Config { default: Policy::Ask });
        plugins.start(&app).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let store = JsonlStore::new(dir.path().join("home/sessions"));
        let world = World { dir, sessions, store };
        test(&world).await;
        world.store.close().await;
        app.close().await.unwrap();
    });
    tested.await.expect("the test takes longer than it may");
}

impl World {
    /// A top-level session, leased by this process until it is released.
    pub(crate) async fn top(&self) -> Session {
        let session = self.sessions.create("/home/me/project");
        self.store.create(&session).await.unwrap();
        session
    }

    /// A child as the in-process drivers make one.
    pub(crate) async fn child(&self, parent: &Session, label: &str, seed: Seed) -> Session {
        let child = Session::delegated(Delegation::capture(parent).unwrap(), seed);
        self.store.create(&child).await.unwrap();
        child.append(descriptor(label)).unwrap();
        child
    }

    pub(crate) fn path(&self, id: SessionId) -> PathBuf {
        self.store.path(id)
    }

    pub(crate) fn log(&self, id: SessionId) -> String {
        std::fs::read_to_string(self.path(id)).unwrap()
    }

    /// Writes a log by hand.
    pub(crate) fn write(&self, id: SessionId, text: impl AsRef<[u8]>) {
        let path = self.path(id);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Every file in the home and what it holds.
    pub(crate) fn files(&self) -> BTreeMap<OsString, Vec<u8>> {
        let entries = std::fs::read_dir(self.dir.path().join("home/sessions")).unwrap();
        entries.map(|entry| entry.unwrap()).map(|it| (it.file_name(), std::fs::read(it.path()).unwrap())).collect()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
        let dir = self.dir.path();
        command.args(args).current_dir(dir).env_clear().env("TZ", "UTC");
        command.env("TETHER_HOME", dir.join("home")).env("HOME", dir).env("XDG_CONFIG_HOME", dir.join("config"));
        command
    }

    /// Runs `tether`, which must leave every file as it was.
    pub(crate) fn tether(&self, args: &[&str]) -> Ran {
        let kept = self.dir.path().join("home/sessions").exists();
        let before = kept.then(|| self.files());
        let ran = assert_cmd::Command::from_std(self.command(args)).timeout(DEADLINE).output().unwrap();
        assert_eq!(before, self.dir.path().join("home/sessions").exists().then(|| self.files()), "{args:?} wrote");
        Ran {
            status: ran.status.code().expect("it was not killed"),
            stdout: String::from_utf8(ran.stdout).unwrap(),
            stderr: String::from_utf8(ran.stderr).unwrap().replace(self.dir.path().to_str().unwrap(), ""),
        }
    }
}

impl Ran {
    /// What it printed, if it had nothing to complain of.
    pub(crate) fn printed(self) -> String {
        assert_eq!((self.status, &*self.stderr), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// Each line of what it printed.
    pub(crate) fn json(self) -> Vec<Value> {
        self.printed().lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// How it failed, in one line.
    pub(crate) fn refused(self, status: i32) -> String {
        assert_eq!((self.status, &*self.stdout), (status, ""), "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{:?}", self.stderr);
        self.stderr
    }
}

/// Names in the place of ids, which differ each time.
pub(crate) fn named(text: &str, names: &[(&Session, &str)]) -> String {
    let process = format!("process {}", std::process::id());
    let text = text.replace(&process, "process PID");
    names.iter().fold(text, |text, (session, name)| text.replace(&session.id().to_string(), name))
}

pub(crate) fn descriptor(label: &str) -> Descriptor {
    Descriptor {
        version: DESCRIPTOR_VERSION,
        mode: ChildMode::OneShot,
        provider: "spawn".into(),
        label: Some(label.into()),
        model: None,
        persona: None,
        tool_filter: None,
        max_depth: None,
        approval: None,
    }
}

pub(crate) fn prompt(session: &Session, text: &str) {
    said(session, text, Source::Prompt);
}

pub(crate) fn said(session: &Session, text: &str, source: Source) {
    let message = Arc::new(Message::user(text));
    session.append_with(|seq| UserMessage { id: MessageId(seq), message, source }).unwrap();
}

pub(crate) fn answer(session: &Session, text: &str, tokens: u64) {
    let usage = Some(Usage { input_tokens: tokens, output_tokens: 1, cached_input_tokens: 0 });
    let message = Arc::new(Message { role: Role::Assistant, content: vec![Content::text(text)] });
    session.append(AssistantMessage { turn: 1, step: 1, message, usage, interrupted: false }).unwrap();
}

/// A whole turn.
pub(crate) fn turn(session: &Session, turn: u32, reason: TurnReason) {
    session.append(TurnStart { turn }).unwrap();
    prompt(session, "do it");
    answer(session, "done", 1_000);
    session.append(TurnEnd { turn, reason }).unwrap();
}

pub(crate) fn call(session: &Session, id: &str, name: &str, arguments: &str) {
    let (call_id, name, arguments) = (id.into(), name.into(), arguments.into());
    session.append(ToolCalled { turn: 1, step: 1, call_id, name, arguments }).unwrap();
}

pub(crate) fn result(session: &Session, id: &str, text: &str) {
    let content = vec![Content::text(text)];
    let result =
        ToolReturned { turn: 1, step: 1, call_id: id.into(), content, is_error: false, error: None, meta: None };
    session.append(result).unwrap();
}

/// A write that the sandbox refused.
pub(crate) fn denied(session: &Session, id: &str, target: &str) {
    let denial = Denial::new(Operation::Write, target, Mode::ReadOnly);
    let meta = serde_json::value::to_raw_value(&denial).unwrap();
    let result = ToolReturned {
        turn: 1,
        step: 1,
        call_id: id.into(),
        content: vec![Content::text(denial.to_string())],
        is_error: true,
        error: Some(ToolErrorCode { code: tools::code::SANDBOX_DENIED.into() }),
        meta: Some(meta.into()),
    };
    session.append(result).unwrap();
}
