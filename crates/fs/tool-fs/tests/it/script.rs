//! What the offline model calls the tools with is what they take.

use llm::{Assembly, LlmAdapter, Request};
use llm_script::Script;
use tools::{Call, Runner, Tool};

use crate::search::stage;

#[test]
fn the_words_of_the_offline_model_reach_the_tools() {
    let stage = stage(&[("ws/src/a.rs", "fn main() {}\n"), ("ws/b.rs", "fn main() {}\n")]);
    let table = [
        ("read file.txt", "one\ntwo\nthree\n"),
        ("list src", "a.rs\n"),
        ("glob src/**/*.rs", "src/a.rs\n"),
        ("grep 'fn main'", "b.rs\n1: fn main() {}\n\nsrc/a.rs\n1: fn main() {}\n"),
        ("grep main src", "src/a.rs\n1: fn main() {}\n"),
        (r#"call grep {"pattern": "main", "output": "count"}"#, "b.rs: 1\nsrc/a.rs: 1\n"),
    ];
    for (script, want) in table {
        let said = stage.run(async {
            let mut request = Request::to("script");
            request.tools =
                stage.app.realm().all_named::<dyn Tool>().iter().map(|(_, tool)| tool.schema().clone()).collect();
            request.messages.push(llm::Message::user(script).into());
            let reply = Assembly::collect(Script.reply(request)).await.unwrap().message;
            let asked = reply.tool_calls().next().expect(script);
            let call = Call::new(&stage.app, stage.session.clone(), asked.name.clone(), asked.arguments.clone());
            Runner::new(stage.app.realm()).run(call).await
        });
        assert_eq!((said.error.as_deref(), &*said.to_text()), (None, want), "{script}");
    }
}
