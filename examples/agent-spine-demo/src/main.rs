//! The smallest agent over `bundle::spine()`, and a child that is held to the scope its parent had when it was asked.
//!
//! *Owns:* nothing; it shows how little an app has to say.
//! *Never:* files, tools, a store: see `bundle::full()` for those.

#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use agent::{Agents, Profile, Spec};
use bundle::Policies;
use context::Scope;
use sandbox::Mode;
use sandbox_policy::{ModeSet, SandboxPolicy};
use session::Sessions;
use subagent::{Request, Subagents};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // An app is a scope and a list of plugins. This one's deployment default is wide.
    let app = Scope::root("agent-spine-demo");
    let policies = Policies { sandbox: Mode::DangerFullAccess, ..Policies::default() };
    let models = (llm_script::LlmScript, llm_script::Config::default());
    bundle::spine(policies).with(models.0, models.1).start(&app).await?;
    let policy = app.get::<SandboxPolicy>().expect("the spine has a sandbox policy");
    let subagents = app.get::<Subagents>().expect("the spine has subagents");
    let agents = app.get::<Agents>().expect("the spine has agents");

    // An agent is a session and a model.
    let session = app.get::<Sessions>().expect("the spine has sessions").create("/tmp");
    let agent = agents.create(&app, Spec::new(session, Profile::of("offline/script".parse()?))).await?;
    let outcome = agent.followup("say hello from the parent")?.outcome().await;
    println!("{}", outcome.output.map_or_else(String::new, |message| message.text()));

    // The parent is narrowed, asks for a child, and is widened again before the child has even started.
    agent.session().append(ModeSet::by_user(Mode::ReadOnly))?;
    let starting = subagents.start(&agent, "spawn", Request::new("say hello from the child"));
    agent.session().append(ModeSet::by_user(Mode::DangerFullAccess))?;
    let run = starting.await?;
    let child = run.child().and_then(|id| agents.get(id)).expect("a child in this process");
    println!("{}", run.result().await.text());

    println!("parent: {}", policy.effective(agent.session()));
    println!("child:  {}", policy.effective(child.session()));
    for event in child.session().snapshot().events().iter().take(3) {
        println!("  {}", event.to_json());
    }

    run.dispose().await?;
    agent.dispose().await?;
    Ok(app.close().await?)
}
