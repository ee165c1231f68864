//! What a tool's configuration holds its children to: their tools, who they are, how deep, which model.

use std::sync::Arc;

use context::Scope;
use llm::LlmAdapter;
use serde_json::json;
use session::ToolReturned;
use subagent::{Descriptor, OutputSchema, Persona};
use system_prompt::{Section, Text};
use tool_subagent::Config;
use tools::{ToolFilter, code};

use crate::doubles::{Stranger, Stubborn};
use crate::stage::{Stage, named, within};

/// A model that writes whatever it is offered.
fn writes(app: &Scope) {
    let model = Arc::new(Stubborn("write", r#"{"path": "a.txt", "content": "x"}"#));
    named::<dyn LlmAdapter>(app, "stubborn", model);
}

fn stubborn(config: Config) -> Config {
    Config { model: Some("stubborn/one".parse().unwrap()), ..config }
}

fn held(tool: &str, tools: ToolFilter) -> Config {
    Config { tools: Some(tools), ..Config::new(tool, "spawn") }
}

// D-29
#[tokio::test]
async fn a_filter_hides_tools_and_refuses_to_run_them() {
    within(async {
        let reader = stubborn(held("reader", ToolFilter::denying(["write", "edit"])));
        let free = stubborn(Config::new("free", "spawn"));
        let stage = Stage::with_tools([reader, free], writes).await;
        let told = stage.answer("spawn via reader { go }").await;
        assert!(told.starts_with("[ok] there is no tool named `write`; there are: read, "), "{told}");
        assert_eq!(stage.file("a.txt"), None);
        let child = stage.children()[0];
        let (shown, of_parent) = (stage.shown_to(child), stage.shown_to(stage.agent.id()));
        let rest: Vec<String> = of_parent.into_iter().filter(|name| name != "write" && name != "edit").collect();
        assert_eq!(shown, rest, "nothing else is taken away");
        let log = stage.log(child);
        assert_eq!(&*log.latest::<ToolReturned>().unwrap().error.as_ref().unwrap().code, code::UNKNOWN_TOOL);
        assert_eq!(log.latest::<Descriptor>().unwrap().tool_filter, Some(ToolFilter::denying(["write", "edit"])));

        stage.tell("spawn via free { go }").await;
        assert_eq!(stage.file("a.txt").as_deref(), Some("x"), "the model would have");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-08, D-29
#[tokio::test]
async fn filters_intersect_through_three_levels() {
    within(async {
        let one = held("one", ToolFilter::denying(["write"]));
        let two = held("two", ToolFilter::allowing(["read", "write", "list", "three"]));
        let three = stubborn(held("three", ToolFilter::allowing(["write", "list"])));
        let stage = Stage::with_tools([one, two, three], writes).await;
        let told = stage.answer("spawn via one { spawn via two { spawn via three { go } } }").await;
        insta::assert_snapshot!(told, @"[ok] spawn spawn via three { go: ok: spawn go: ok: there is no tool named `write`; there are: list");
        assert_eq!(stage.file("a.txt"), None);
        let [one, two, three] = stage.children()[..] else { panic!("three children") };
        assert!(!stage.shown_to(one).contains(&"write".into()) && stage.shown_to(one).contains(&"edit".into()));
        assert_eq!(stage.shown_to(two), ["read", "list", "three"]);
        assert_eq!(stage.shown_to(three), ["list"]);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-11, D-29
#[tokio::test]
async fn a_filter_that_names_no_tool_starts_nothing() {
    within(async {
        let typo = held("typo", ToolFilter::denying(["wirte"]));
        let stage = Stage::with_tools([typo], |_| {}).await;
        let told = stage.answer("spawn via typo { say never }").await;
        insta::assert_snapshot!(told, @"[failed] the child was not started: a tool filter names what is no tool: wirte; there are: edit, glob, grep, job_kill, job_list, job_output, list, read, subagent, subagent_fork, typo, write");
        assert!(stage.had_no_child());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-10, D-29
#[tokio::test]
async fn a_persona_is_the_childs_alone() {
    within(async {
        let persona = Some(Persona::new("You review {{label}}. Be strict.").unwrap());
        let reviewer = Config { persona, ..Config::new("reviewer", "spawn") };
        let rest = |app: &Scope| {
            named::<dyn Section>(app, "before", Text::new(-5, "House rules come first."));
            named::<dyn Section>(app, "after", Text::new(5, "Say please."));
        };
        let stage = Stage::with_tools([reviewer], rest).await;
        stage.tell("spawn \"the code\" via reviewer { spawn inner { say x } } & spawn sibling { say y }").await;
        let [mut reviewer, mut sibling, inner] = stage.children()[..] else { panic!("three children") };
        if stage.log(reviewer).latest::<Descriptor>().unwrap().persona.is_none() {
            std::mem::swap(&mut reviewer, &mut sibling);
        }
        let inner =
            if stage.log(sibling).header().depth() == 2 { std::mem::replace(&mut sibling, inner) } else { inner };
        let system = |id| stage.header(id).system.clone();
        let parents = system(stage.agent.id());
        assert!(parents.contains(bundle::PERSONA));
        let own = parents.replace(bundle::PERSONA, "You review the code. Be strict.");
        assert_eq!(*system(reviewer), *own, "all but the persona, byte for byte");
        assert_eq!((system(sibling), system(inner)), (parents.clone(), parents));
        assert_eq!(stage.header(reviewer).tools, stage.header(stage.agent.id()).tools);
        let descriptor = stage.log(reviewer).latest::<Descriptor>().unwrap().clone();
        assert_eq!(descriptor.persona.as_deref(), Some("You review the code. Be strict."));
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-21
#[tokio::test]
async fn what_a_provider_cannot_honour_is_refused_before_anything_exists() {
    within(async {
        let ask = |tool: &str| Config::new(tool, "stranger");
        let schema = OutputSchema::new(json!({ "type": "object" })).unwrap();
        let configs = [
            Config { output_schema: Some(schema), ..ask("ask_schema") },
            Config { max_depth: Some(2), ..ask("ask_depth") },
            Config { tools: Some(ToolFilter::denying(["write"])), ..ask("ask_filter") },
            Config { persona: Some(Persona::new("x").unwrap()), ..ask("ask_persona") },
            ask("ask"),
        ];
        let stage = Stage::with_tools(configs, |_| {}).await;
        let subagents = stage.app.get::<subagent::Subagents>().unwrap();
        let registered = subagents.register("stranger", Arc::new(Stranger { inherits: false })).unwrap();
        let mut all = String::new();
        for tool in ["ask_schema", "ask_depth", "ask_filter", "ask_persona"] {
            all += &format!("{}\n", stage.answer(&format!("spawn via {tool} {{ say x }}")).await);
            all += &format!("{}\n", stage.answer(&format!("spawn in background via {tool} {{ say x }}")).await);
        }
        insta::assert_snapshot!(all, @r"
        [failed] the child was not started: `stranger` does not support an output schema
        [failed] the child was not started: `stranger` does not support an output schema
        [failed] the child was not started: `stranger` does not support a limit of depth
        [failed] the child was not started: `stranger` does not support a limit of depth
        [failed] the child was not started: `stranger` does not support a tool filter
        [failed] the child was not started: `stranger` does not support a tool filter
        [failed] the child was not started: `stranger` does not support a persona
        [failed] the child was not started: `stranger` does not support a persona
        ");
        assert!(stage.had_no_child() && stage.jobs().list(&stage.agent).is_empty());
        assert_eq!(stage.answer("spawn via ask { x }").await, "[ok] You said: x");
        drop(registered);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-26
#[tokio::test]
async fn a_tool_goes_as_deep_as_it_says() {
    within(async {
        let to = |tool: &str, depth| Config { max_depth: Some(depth), ..Config::new(tool, "spawn") };
        let stage = Stage::with_tools([to("none", 0), to("one", 1), to("many", 9)], |_| {}).await;
        let mut all = String::new();
        for script in [
            "spawn via none { say x }",
            "spawn via one { spawn x via one { say x } }",
            "spawn via many { spawn via many { spawn via many { spawn x via many { say x } } } }",
        ] {
            all += &format!("{}\n", stage.answer(script).await);
        }
        insta::assert_snapshot!(all, @r"
        [failed] the child was not started: a child at depth 1 would pass the limit of 0: delegation is forbidden
        [ok] spawn x: error: the child was not started: a child at depth 2 would pass the limit of 1
        [ok] spawn spawn via many { spawn: ok: spawn spawn x via many {: ok: spawn x: error: the child was not started: a child at depth 4 would pass the limit of 3
        ");
        assert_eq!(stage.children().len(), 4);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-27
#[tokio::test]
async fn a_tool_gives_its_children_its_own_model() {
    within(async {
        let stage = Stage::with_tools([stubborn(Config::new("other", "spawn"))], writes).await;
        stage.tell("spawn via other { go } & spawn { say x }").await;
        let mut routes: Vec<String> =
            stage.children().into_iter().map(|id| stage.header(id).route().to_string()).collect();
        routes.sort();
        assert_eq!(routes, ["offline/script", "stubborn/one"]);
        stage.app.close().await.unwrap();
    })
    .await;
}
