//! What a model sees of the tool, byte for byte.

use agent::AgentsPlugin;
use context::{Plugins, Scope};
use jobs::JobsPlugin;
use sandbox::Mode;
use session::SessionsPlugin;
use tool_bash::{BashTool, Config};
use tools::{Concurrency, Tool};
use user_approval::Escalation;

async fn seen(jobs: fn(Plugins) -> Plugins, escalation: Escalation, default: Mode) -> String {
    let app = Scope::root("app");
    let plugins = Plugins::new().with(SessionsPlugin, ()).with(AgentsPlugin, ());
    jobs(plugins)
        .with(sandbox_policy::SandboxPolicyPlugin, sandbox_policy::Config { default })
        .with(BashTool, Config { escalation, ..Config::default() })
        .start(&app)
        .await
        .unwrap();
    let tool = app.realm().named::<dyn Tool>("bash").unwrap();
    assert_eq!(tool.concurrency(), Concurrency::Alone);
    let schema = tool.schema();
    let seen = format!("{}: {}\n{}\n", schema.name, schema.description, schema.input_schema);
    app.close().await.unwrap();
    seen
}

fn jobs(plugins: Plugins) -> Plugins {
    plugins.with(JobsPlugin, jobs::Config::default())
}

#[tokio::test]
async fn the_tool_is_seen_like_this() {
    let mut all = String::new();
    for (jobs, escalation) in [
        (jobs as fn(Plugins) -> Plugins, Escalation::Offered),
        (std::convert::identity, Escalation::Offered),
        (jobs, Escalation::NotOffered),
    ] {
        all.push_str(&seen(jobs, escalation, Mode::ReadOnly).await);
    }
    insta::assert_snapshot!(all);
    let wide = seen(jobs, Escalation::Offered, Mode::DangerFullAccess).await;
    assert!(all.starts_with(&wide), "it does not depend on the mode");
}
