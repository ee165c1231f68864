//! An app with file tools, commands and jobs, and an agent in a real directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, AgentDriver, Agents, AgentsPlugin, Driven, Profile, Spec};
use context::{Boxed, Plugins, Scope};
use fs_sandbox::{FsSandboxPlugin, Tmp};
use jobs::JobsPlugin;
use sandbox::{Enforcement, Mode, SandboxProvider};
use sandbox_policy::ModeSet;
use serde_json::Value;
use session::{Sessions, SessionsPlugin, TurnStart};
use tool_bash::{BashTool, Config};
use tool_fs::FsTools;
use tool_jobs::JobTools;
use tools::{Call, Runner, ToolOutput};
use user_approval::{Approval, Policy, UserApprovalPlugin};

use crate::fake::{Fake, Looks};

const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("in time")
}

/// Leaves what its agent is sent.
struct Deaf;

impl AgentDriver for Deaf {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        Box::pin(async move { driven.agent().ctx().cancelled().cancelled().await })
    }
}

/// `ws` is the root, `out` is beside it.
pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) agent: Agent,
    pub(crate) top: PathBuf,
    dir: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn new(mode: Mode) -> Self {
        Self::with(mode, Some(Fake::Holds(Enforcement::Full)), Config::default()).await
    }

    pub(crate) async fn with(mode: Mode, provider: Option<Fake>, config: Config) -> Self {
        let jobs = |plugins: Plugins| plugins.with(JobsPlugin, jobs::Config::default()).with(JobTools, ());
        Self::composed(mode, provider, config, jobs).await
    }

    pub(crate) async fn without_jobs(mode: Mode) -> Self {
        Self::composed(mode, Some(Fake::Holds(Enforcement::Full)), Config::default(), |plugins| plugins).await
    }

    async fn composed(
        mode: Mode,
        provider: Option<Fake>,
        config: Config,
        jobs: impl FnOnce(Plugins) -> Plugins,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("ws/sub")).unwrap();
        std::fs::create_dir(top.join("home")).unwrap();
        let app = Scope::root("app");
        app.provide::<dyn AgentDriver>(Arc::new(Deaf)).unwrap();
        if let Some(provider) = provider {
            app.provide::<dyn SandboxProvider>(Arc::new(provider)).unwrap();
        }
        let fences = fs_sandbox::Config { private: vec![top.join("home")], protected: Vec::new(), tmp: Tmp::Private };
        let plugins = jobs(Plugins::new())
            .with(SessionsPlugin, ())
            .with(AgentsPlugin, ())
            .with(sandbox_policy::SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::ReadOnly })
            .with(UserApprovalPlugin, user_approval::Config { default: Policy::Ask })
            .with(FsSandboxPlugin, fences)
            .with(FsTools, tool_fs::Config { escalation: config.escalation })
            .with(BashTool, config);
        plugins.start(&app).await.unwrap();
        let session = app.get::<Sessions>().unwrap().create(top.join("ws").to_str().unwrap());
        session.append(ModeSet::by_user(mode)).unwrap();
        session.append(TurnStart { turn: 1 }).unwrap();
        let spec = Spec::new(session, Profile::of("offline/script".parse().unwrap()));
        let agent = app.get::<Agents>().unwrap().create(&app, spec).await.unwrap();
        Self { app, agent, top, dir }
    }

    pub(crate) fn answered(&self, looks: Arc<Looks>) {
        let approval = self.app.get::<Approval>().unwrap();
        self.app.own(approval.answer_with(looks)).unwrap();
    }

    pub(crate) fn prepared(&self, tool: &str, arguments: &Value) -> Call {
        Call::new(self.agent.ctx(), self.agent.session().clone(), tool, arguments.to_string())
    }

    pub(crate) async fn run(&self, call: Call) -> ToolOutput {
        in_time(Runner::new(self.agent.ctx().realm()).run(call)).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        self.run(self.prepared(tool, &arguments)).await
    }

    pub(crate) async fn bash(&self, command: &str) -> ToolOutput {
        self.call("bash", serde_json::json!({"command": command})).await
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    /// The kind of failure, and what a model sees, with the directory's name taken out.
    pub(crate) fn said(&self, output: &ToolOutput) -> String {
        let text = output.to_text().replace(self.top.to_str().unwrap(), "");
        format!("[{}] {text}", output.error.as_deref().unwrap_or("ok"))
    }

    pub(crate) async fn close(self) {
        in_time(async {
            self.agent.dispose().await.unwrap();
            self.app.close().await.unwrap();
        })
        .await;
        drop(self.dir);
    }
}

pub(crate) fn meta(output: &ToolOutput) -> Value {
    serde_json::from_str(output.meta.as_ref().expect("it has some").get()).unwrap()
}
