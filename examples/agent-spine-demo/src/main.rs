//! The smallest agent over `bundle::spine()`, and a child that is held to the scope its parent had when it was asked.

#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use agent_spine_demo::{Demo, SCRIPT, said, spine};
use anyhow::Context as _;
use bundle::Policies;
use sandbox::Mode;
use sandbox_policy::{ModeSet, SandboxPolicy};
use subagent::{Request, Subagents};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // An app is a scope and a list of plugins. This one's deployment default is wide.
    let policies = Policies { sandbox: Mode::DangerFullAccess, ..Policies::default() };
    let demo = Demo::start("agent-spine-demo", spine(policies)).await?;
    let policy = demo.get::<SandboxPolicy>().context("the spine has a sandbox policy")?;
    let subagents = demo.get::<Subagents>().context("the spine has subagents")?;

    // An agent is a session and a model.
    let agent = demo.agent(std::env::temp_dir(), &SCRIPT.parse()?).await?;
    println!("{}", said(&agent.followup("say hello from the parent")?.outcome().await));

    // The parent is narrowed, asks for a child, and is widened again before the child has even started.
    agent.session().append(ModeSet::by_user(Mode::ReadOnly))?;
    let starting = subagents.start(&agent, "spawn", Request::new("say hello from the child"));
    agent.session().append(ModeSet::by_user(Mode::DangerFullAccess))?;
    let run = starting.await?;
    println!("{}", run.result().await.text());

    let agents = demo.get::<agent::Agents>().context("the spine has agents")?;
    let child = run.child().and_then(|id| agents.get(id)).context("a child in this process")?;
    println!("parent: {}", policy.effective(agent.session()));
    println!("child:  {}", policy.effective(child.session()));
    for event in child.session().snapshot().events().iter().take(3) {
        println!("  {}", event.to_json());
    }

    run.dispose().await?;
    Ok(demo.close().await?)
}
