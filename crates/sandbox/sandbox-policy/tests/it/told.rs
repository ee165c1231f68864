//! What the model is told of its mode.

use sandbox::Mode::{self, DangerFullAccess, ReadOnly, WorkspaceWrite};
use system_prompt::{Prompt, RuntimeFact};

use crate::support::*;

const TEXTS: [(Mode, &str); 3] = [
    (ReadOnly, "Sandbox mode: read-only (you can read files and write none)."),
    (
        WorkspaceWrite,
        "Sandbox mode: workspace-write (you can write below the working directory and in the temporary \
         directory ($TMPDIR in commands), and nowhere else).",
    ),
    (DangerFullAccess, "Sandbox mode: danger-full-access (files are not confined)."),
];

#[tokio::test]
async fn each_mode_has_its_text() {
    let stage = Stage::new(ReadOnly).await;
    let session = stage.session();
    let mut prompt = Prompt::new(stage.app.realm());
    let mut told = || prompt.runtime_context(&session).unwrap();
    let wrapped = |text: &str| format!("<runtime-context>\n{text}\n</runtime-context>");
    for (mode, text) in TEXTS {
        stage.policy.set_default(mode);
        assert_eq!(told(), wrapped(text), "by the default");
    }
    for (mode, text) in TEXTS {
        set(&session, mode, None);
        assert_eq!(told(), wrapped(text), "by an override");
    }
    stage.close().await;
}

#[tokio::test]
async fn it_is_a_fact_and_not_a_part_of_the_system_prompt() {
    let stage = Stage::new(ReadOnly).await;
    assert_eq!(&**Prompt::new(stage.app.realm()).assemble(), "");
    let facts = stage.app.realm().all_named::<dyn RuntimeFact>();
    let [(name, fact)] = &facts[..] else { panic!("one fact") };
    assert_eq!((&**name, fact.order()), ("sandbox", 10));
    stage.close().await;
}
