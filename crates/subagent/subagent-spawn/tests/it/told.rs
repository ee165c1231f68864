//! What a child is told of its scope.

use sandbox::Mode;
use session::{RequestHeaderEvent, Snapshot, Source, UserMessage};

use crate::doubles::Gate;
use crate::world::*;

/// What the harness told of facts, in order. Which day it is depends on where one is.
fn facts(log: &Snapshot) -> Vec<String> {
    let facts = all::<UserMessage>(log).into_iter().filter(|message| message.source == Source::RuntimeContext);
    let undated = |text: String| text.lines().filter(|line| !line.starts_with("Date: ")).collect::<Vec<_>>().join("\n");
    facts.map(|message| undated(message.message.text())).collect()
}

// D-10
#[tokio::test]
async fn a_child_is_told_once_that_its_scope_is_fixed_and_shares_the_system_prompt() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        tell(&parent, "list; list").await;
        let run = world.spawn(&parent, r#"list; list; call gate {"name":"1"}; list; list"#).await;
        gate.arrived("1").await;
        let child = world.child(&run);
        let cwd = world.at("ws");
        let told = |mode: &str| {
            format!(
                "<runtime-context>\nWorking directory: {}\nSandbox mode: {mode}.\nDelegated task: your \
                 scope was fixed when the task was handed to you. Requests for wider permissions are rejected. If \
                 something you need is denied, do not retry it: report what was denied and why you needed it.\n\
                 </runtime-context>",
                cwd.display()
            )
        };
        let (narrow, wide) = (
            told("read-only (you can read files and write none)"),
            told(
                "workspace-write (you can write below the working directory and in the temporary \
             directory ($TMPDIR in commands), and nowhere else)",
            ),
        );
        assert_eq!(facts(&child.session().snapshot()), [narrow.as_str()], "once in three steps");
        switch(&child, Mode::WorkspaceWrite);
        gate.open("1");
        run.result().await;
        let (theirs, mine) = (world.log(child.id()), world.log(parent.id()));
        assert_eq!(facts(&theirs), [narrow, wide], "again when it changed, and not again after that");
        let first = all::<UserMessage>(&theirs)[0];
        assert_eq!(first.source, Source::RuntimeContext, "before the prompt");
        assert!(facts(&mine).iter().all(|fact| !fact.contains("Delegated task")) && facts(&mine).len() == 1);

        let ([theirs], [mine]) = (&all::<RequestHeaderEvent>(&theirs)[..], &all::<RequestHeaderEvent>(&mine)[..])
        else {
            panic!("one header a log: nothing in it changed")
        };
        assert!(!mine.header.system.is_empty() && theirs.header.system == mine.header.system, "byte for byte");
        assert_eq!(theirs.header.tools, mine.header.tools);
        world.app.close().await.unwrap();
    })
    .await;
}
