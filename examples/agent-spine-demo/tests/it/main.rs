//! The library as demos use it, and the program.

use agent::CreateError;
use agent_spine_demo::{AgentError, Demo, SCRIPT, spine};
use assert_cmd::Command;
use bundle::Policies;
use context::{BoxError, Ctx, Plugin, Plugins};

#[test]
fn the_program_shows_a_child_that_is_held_to_its_parents_scope() {
    let output = Command::cargo_bin("agent-spine-demo").unwrap().assert().success().get_output().clone();
    let told = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    let want = ["hello from the parent", "hello from the child", "parent: danger-full-access", "child:  read-only"];
    assert_eq!(lines[..4], want);
    assert!(lines[4].contains(r#""sandbox/mode""#) && lines[4].contains("delegation"), "{told}");
    assert!(lines[5].contains(r#""approval/policy""#) && lines[6].contains(r#""subagent/descriptor""#), "{told}");
    assert_eq!(lines.len(), 7);
}

#[tokio::test]
async fn an_agent_needs_a_directory_a_model_and_a_composition() {
    let demo = Demo::start("demo", spine(Policies::default())).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let script = SCRIPT.parse().unwrap();
    for nowhere in [dir.path().join("nowhere"), file] {
        let refused = demo.agent(&nowhere, &script).await.err().expect("there is no directory");
        let told = refused.to_string();
        assert!(told.starts_with(&format!("cannot work in {}: ", nowhere.display())), "{told}");
    }
    let refused = demo.agent(dir.path(), &"nobody/any".parse().unwrap()).await.err().expect("nobody serves it");
    assert!(refused.to_string().starts_with("no model provider named `nobody`; there are: offline"), "{refused}");
    demo.close().await.unwrap();

    let bare = Demo::start("bare", Plugins::new()).await.unwrap();
    let refused = bare.agent(dir.path(), &script).await.err().expect("there is nothing to make an agent of");
    assert_eq!(refused.to_string(), "the app has no `Agents`: compose it from `bundle`");
    bare.close().await.unwrap();

    let loopless = spine(Policies::default()).without("agent-loop").unwrap();
    let demo = Demo::start("loopless", loopless).await.unwrap();
    let refused = demo.agent(dir.path(), &script).await.err().expect("nobody drives it");
    assert!(matches!(refused, AgentError::Create(CreateError::NoDriver)), "{refused}");
    demo.close().await.unwrap();
}

/// Cannot start.
struct Broken;

#[async_trait::async_trait]
impl Plugin for Broken {
    type Config = std::sync::mpsc::Sender<()>;

    fn name(&self) -> &'static str {
        "broken"
    }

    async fn apply(&self, ctx: &Ctx, closed: Self::Config) -> Result<(), BoxError> {
        ctx.on_close("tell", async move || Ok(closed.send(())?))?;
        Err("not today".into())
    }
}

#[tokio::test]
async fn a_demo_that_cannot_start_leaves_nothing() {
    let (closes, closed) = std::sync::mpsc::channel();
    let refused =
        Demo::start("demo", spine(Policies::default()).with(Broken, closes)).await.err().expect("it is broken");
    assert_eq!(refused.to_string(), "the plugin `broken` could not start");
    assert!(closed.try_recv().is_ok(), "what had begun was closed before it was told");
}
