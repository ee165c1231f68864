//! What a model sees of its jobs, byte for byte.

use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, AgentDriver, Agents, AgentsPlugin, Driven, Profile, Spec};
use context::{Boxed, Plugins, Scope};
use jobs::{Config, Jobs, JobsPlugin, NewJob, Outcome};
use session::{Sessions, SessionsPlugin};
use tokio::sync::oneshot;
use tool_jobs::JobTools;
use tools::{Call, Concurrency, Runner, Tool, ToolOutput};

/// Only a test that hangs meets it, in real time or in paused time.
const DEADLINE: Duration = Duration::from_secs(3_600);

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("it should not hang")
}

/// Leaves what its agent is sent.
struct Deaf;

impl AgentDriver for Deaf {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        Box::pin(async move { driven.agent().ctx().cancelled().cancelled().await })
    }
}

struct Stage {
    app: Scope,
    jobs: Arc<Jobs>,
    agent: Agent,
}

impl Stage {
    async fn new() -> Self {
        let app = Scope::root("app");
        app.provide::<dyn AgentDriver>(Arc::new(Deaf)).unwrap();
        let plugins = Plugins::new()
            .with(JobTools, ())
            .with(JobsPlugin, Config::default())
            .with(AgentsPlugin, ())
            .with(SessionsPlugin, ());
        plugins.start(&app).await.unwrap();
        let agent = Self::agent(&app).await;
        Self { jobs: app.get().unwrap(), app, agent }
    }

    async fn agent(app: &Scope) -> Agent {
        let spec = Spec::new(Sessions::new().create("/home/me"), Profile::of("offline/script".parse().unwrap()));
        app.get::<Agents>().unwrap().create(app, spec).await.unwrap()
    }

    fn call(&self, agent: &Agent, tool: &str, arguments: &str) -> Call {
        Call::new(agent.ctx(), agent.session().clone(), tool, arguments)
    }

    async fn output(&self, call: Call) -> ToolOutput {
        in_time(Runner::new(self.agent.ctx().realm()).run(call)).await
    }

    /// The kind of failure, and the text.
    async fn answer(&self, tool: &str, arguments: &str) -> String {
        shown(&self.output(self.call(&self.agent, tool, arguments)).await)
    }
}

fn shown(output: &ToolOutput) -> String {
    format!("[{}] {}", output.error.as_deref().unwrap_or("ok"), output.to_text())
}

fn wait() -> NewJob {
    NewJob::new("bash", "sleep 100")
}

async fn until_cancelled(job: jobs::Working) -> Outcome {
    job.push("asleep\n");
    job.cancelled().cancelled().await;
    Outcome::failed("woken")
}

#[tokio::test]
async fn the_tools_are_seen_like_this() {
    let stage = Stage::new().await;
    let tools = stage.app.realm().all_named::<dyn Tool>();
    assert!(tools.iter().all(|(_, tool)| tool.concurrency() == Concurrency::Shared));
    let seen = |tool: &dyn Tool| {
        let schema = tool.schema();
        format!("{}: {}\n{}\n", schema.name, schema.description, schema.input_schema)
    };
    let all: String = tools.iter().map(|(_, tool)| seen(&**tool)).collect();
    insta::assert_snapshot!(all, @r#"
    job_list: Lists your background jobs.
    {"additionalProperties":false,"properties":{},"type":"object"}
    job_output: Reads what one of your background jobs has put out so far, or its result. A job's end is told to you: wait here only if you have nothing else to do.
    {"additionalProperties":false,"properties":{"job":{"description":"Its id, such as job-1.","type":"string"},"wait_ms":{"default":0,"description":"Wait so long for it to end, 600000 at most.","format":"uint64","minimum":0,"type":"integer"}},"required":["job"],"type":"object"}
    job_kill: Stops one of your background jobs.
    {"additionalProperties":false,"properties":{"job":{"description":"Its id, such as job-1.","type":"string"}},"required":["job"],"type":"object"}
    "#);
    stage.app.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_is_listed_read_and_killed() {
    let stage = Stage::new().await;
    assert_eq!(stage.answer("job_list", "{}").await, "[ok] no jobs");
    stage.jobs.start(&stage.agent, wait(), until_cancelled).unwrap();
    stage.jobs.start(&stage.agent, wait(), |_| async { Outcome::failed("exit status 1") }).unwrap();
    stage.jobs.start(&stage.agent, wait(), |_| async { Outcome::completed("") }).unwrap();
    let mut all = String::new();
    for (tool, arguments) in [
        ("job_output", r#"{"job": "job-3", "wait_ms": 600000}"#),
        ("job_output", r#"{"job": "job-2", "wait_ms": 1}"#),
        ("job_output", r#"{"job": "job-1", "wait_ms": 12000}"#),
        ("job_list", "{}"),
        ("job_kill", r#"{"job": "job-1"}"#),
        ("job_kill", r#"{"job": "job-1"}"#),
        ("job_kill", r#"{"job": "job-2"}"#),
        ("job_output", r#"{"job": "job-1"}"#),
        ("job_list", "{}"),
    ] {
        let answer = stage.answer(tool, arguments).await;
        all += &format!("{tool} {arguments}\n  {}\n", answer.replace('\n', "\n  "));
    }
    insta::assert_snapshot!(all, @r#"
    job_output {"job": "job-3", "wait_ms": 600000}
      [ok] job-3 (bash: sleep 100) completed after 0 s, no output
    job_output {"job": "job-2", "wait_ms": 1}
      [ok] job-2 (bash: sleep 100) failed after 0 s:
      exit status 1
    job_output {"job": "job-1", "wait_ms": 12000}
      [ok] job-1 (bash: sleep 100) is running, 12 s so far:
      asleep
    job_list {}
      [ok] job-1 (bash: sleep 100) is running, 12 s so far
      job-2 (bash: sleep 100) failed after 0 s
      job-3 (bash: sleep 100) completed after 0 s
    job_kill {"job": "job-1"}
      [ok] job-1 (bash: sleep 100) was killed after 12 s
    job_kill {"job": "job-1"}
      [ok] job-1 (bash: sleep 100) was killed after 12 s
    job_kill {"job": "job-2"}
      [ok] job-2 (bash: sleep 100) failed after 0 s
    job_output {"job": "job-1"}
      [ok] job-1 (bash: sleep 100) was killed after 12 s:
      asleep
      woken
    job_list {}
      [ok] job-1 (bash: sleep 100) was killed after 12 s
      job-2 (bash: sleep 100) failed after 0 s
      job-3 (bash: sleep 100) completed after 0 s
    "#);
    assert_eq!(stage.jobs.running(&stage.agent), 0);
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn what_is_wrong_is_told() {
    let stage = Stage::new().await;
    let other = Stage::agent(&stage.app).await;
    stage.jobs.start(&other, wait(), until_cancelled).unwrap();
    let mut all = String::new();
    for (tool, arguments) in [
        ("job_output", r#"{"job": "job-1"}"#),
        ("job_kill", r#"{"job": "job-1"}"#),
        ("job_output", r#"{"job": "the first", "wait_ms": 5}"#),
        ("job_output", r#"{"job": "job-1", "wait_ms": 600001}"#),
        ("job_output", r#"{"job": "job-1", "wait_ms": -1}"#),
        ("job_kill", "{}"),
        ("job_list", r#"{"all": true}"#),
    ] {
        all += &format!("{}\n", stage.answer(tool, arguments).await);
    }
    insta::assert_snapshot!(all, @r#"
    [failed] you have no job `job-1`; you have none
    [failed] you have no job `job-1`; you have none
    [failed] you have no job `the first`; you have none
    [invalid-arguments] `wait_ms` is 600001; at most 600000 are waited
    [invalid-arguments] invalid arguments for `job_output`: invalid value: integer `-1`, expected u64 at line 1 column 30. Expected: {"job": string, "wait_ms"?: integer}. Call it again with arguments that fit.
    [invalid-arguments] invalid arguments for `job_kill`: missing field `job` at line 1 column 2. Expected: {"job": string}. Call it again with arguments that fit.
    [invalid-arguments] invalid arguments for `job_list`: unknown field `all`, there are no fields at line 1 column 6. Expected: {}. Call it again with arguments that fit.
    "#);
    assert_eq!(stage.jobs.running(&other), 1, "a stranger has no hand in it");

    let nobody = Call::new(&stage.app, Sessions::new().create("/"), "job_list", "{}");
    let answer = shown(&stage.output(nobody).await);
    assert_eq!(answer, "[failed] this session has no live agent that could have jobs");
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn waiting_ends_with_the_turn_and_not_the_job() {
    let stage = Stage::new().await;
    stage.jobs.start(&stage.agent, wait(), until_cancelled).unwrap();
    let call = stage.call(&stage.agent, "job_output", r#"{"job": "job-1", "wait_ms": 600000}"#);
    let cancelled = call.cancelled.clone();
    let (answered, waiting) = oneshot::channel();
    let realm = stage.agent.ctx().realm().clone();
    let run = async move { drop(answered.send(Runner::new(&realm).run(call).await)) };
    stage.app.spawn("call", context::Stop::Join, run).unwrap();
    tokio::task::yield_now().await;
    cancelled.cancel();
    assert_eq!(shown(&in_time(waiting).await.unwrap()), "[cancelled] no longer waiting for job-1");
    assert_eq!(stage.jobs.running(&stage.agent), 1);
    stage.app.close().await.unwrap();
}
