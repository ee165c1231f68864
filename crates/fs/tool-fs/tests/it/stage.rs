//! An app with the tools, and an agent's files on a real directory.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use context::{Plugins, Scope};
use fs::FileSystem;
use fs_sandbox::Fence;
use sandbox::{Mode, Workspace};
use sandbox_policy::{ModeSet, SandboxPolicy};
use serde_json::Value;
use session::{Session, Sessions, SessionsPlugin, TurnStart};
use tokio::runtime::Runtime;
use tool_fs::{Config, FsTools};
use tools::{Call, Runner, ToolOutput};
use user_approval::{Answer, Answerer, Approval, Escalation, Policy, Question, UserApprovalPlugin};

/// `ws` is the root; in it, `.own` and `own.key` are Tether's.
pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) session: Session,
    top: PathBuf,
    runtime: Runtime,
    _dir: tempfile::TempDir,
}

/// Answers every question alike and counts them.
pub(crate) struct Answers(pub(crate) Answer, pub(crate) AtomicUsize);

#[async_trait]
impl Answerer for Answers {
    fn owns(&self, _: session::SessionId) -> bool {
        true
    }

    async fn answer(&self, _: &Question) -> Option<Answer> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Some(self.0)
    }
}

impl Stage {
    pub(crate) fn new(mode: Mode, escalation: Escalation) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("ws/sub")).unwrap();
        std::fs::write(top.join("ws/file.txt"), "one\ntwo\nthree\n").unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (app, session) = runtime.block_on(async {
            let app = Scope::root("app");
            let plugins = Plugins::new()
                .with(SessionsPlugin, ())
                .with(sandbox_policy::SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::ReadOnly })
                .with(UserApprovalPlugin, user_approval::Config { default: Policy::Ask })
                .with(FsTools, Config { escalation });
            plugins.start(&app).await.unwrap();
            let session = app.get::<Sessions>().unwrap().create(top.join("ws").to_str().unwrap());
            session.append(ModeSet::by_user(mode)).unwrap();
            session.append(TurnStart { turn: 1 }).unwrap();
            (app, session)
        });
        let stage = Self { app, session, top, runtime, _dir: dir };
        stage.provide_files(&stage.session);
        stage
    }

    fn provide_files(&self, session: &Session) {
        let mode = self.app.get::<SandboxPolicy>().unwrap().source_for(session);
        let workspace = Workspace::new(self.at("ws")).home(self.at("ws/.own")).home(self.at("ws/own.key"));
        let fence = Fence::open(workspace, mode, self.app.clone()).unwrap();
        self.app.provide::<dyn FileSystem>(Arc::new(fence)).unwrap();
    }

    pub(crate) fn answered(&self, answer: Answer) -> Arc<Answers> {
        let answers = Arc::new(Answers(answer, AtomicUsize::new(0)));
        let approval = self.app.get::<Approval>().unwrap();
        self.app.own(approval.answer_with(answers.clone())).unwrap();
        answers
    }

    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), work).await.expect("in time") })
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        self.call_in(&self.session, tool, arguments)
    }

    pub(crate) fn call_in(&self, session: &Session, tool: &str, arguments: Value) -> ToolOutput {
        let call = Call::new(&self.app, session.clone(), tool, arguments.to_string());
        self.run(async { Runner::new(self.app.realm()).run(call).await })
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    /// Files, each with the directories that it needs.
    pub(crate) fn with(self, files: &[(&str, &str)]) -> Self {
        for (path, text) in files {
            let path = self.at(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap()
    }

    /// What a model sees, with the directory's name taken out.
    pub(crate) fn said(&self, output: &ToolOutput) -> String {
        output.to_text().replace(self.top.to_str().unwrap(), "")
    }
}
