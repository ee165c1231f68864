//! `provider/model`: how it is written, and who serves it.

use std::sync::Arc;

use context::Scope;
use llm::*;

struct Named(&'static str);

impl LlmAdapter for Named {
    fn reply(&self, request: Request) -> Reply {
        replied([Chunk::Text(format!("{} {}", self.0, request.model).into()), Chunk::End(Finish::Stop)])
    }
}

async fn served(route: &Route, realm: &context::Realm) -> String {
    let adapter = route.adapter(realm).unwrap();
    assert!(!adapter.takes_images(&route.model), "no adapter takes pictures unless it says so");
    Assembly::collect(adapter.reply(Request::to(route.model.clone()))).await.unwrap().message.text()
}

#[test]
fn a_route_is_a_provider_and_a_model_that_may_hold_slashes() {
    for (text, provider, model) in [
        ("openai/gpt-5", "openai", "gpt-5"),
        ("ollama/library/qwen3:8b", "ollama", "library/qwen3:8b"),
        ("a//b", "a", "/b"),
        ("a/b/", "a", "b/"),
    ] {
        let route: Route = text.parse().unwrap();
        assert_eq!((&*route.provider, &*route.model), (provider, model));
        assert_eq!((route.to_string().as_str(), route), (text, Route::new(provider, model)));
    }
}

#[test]
fn what_is_not_a_route_is_told_how_to_write_one() {
    for text in ["", "/", "gpt-5", "openai/", "/gpt-5", "//"] {
        let error = text.parse::<Route>().unwrap_err();
        let want = format!("`{text}` is not a model: write it as provider/model, as in openai/gpt-5");
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn a_route_is_a_string_on_the_wire() {
    let route = Route::new("ollama", "library/qwen3");
    assert_eq!(serde_json::to_value(&route).unwrap(), "ollama/library/qwen3");
    assert_eq!(serde_json::from_value::<Route>("ollama/library/qwen3".into()).unwrap(), route);
    let error = serde_json::from_value::<Route>("qwen3".into()).unwrap_err();
    assert!(error.to_string().contains("write it as provider/model"), "{error}");
}

#[tokio::test]
async fn the_nearest_adapter_of_the_name_serves() {
    let app = Scope::root("app");
    app.register::<dyn LlmAdapter>("a", Arc::new(Named("app's a"))).unwrap();
    app.register::<dyn LlmAdapter>("b", Arc::new(Named("app's b"))).unwrap();
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    agent.register::<dyn LlmAdapter>("a", Arc::new(Named("agent's a"))).unwrap();
    let (a, b) = (Route::new("a", "x/y"), Route::new("b", "z"));
    assert_eq!(served(&a, agent.realm()).await, "agent's a x/y");
    assert_eq!(served(&b, agent.realm()).await, "app's b z");
    assert_eq!(served(&a, app.realm()).await, "app's a x/y");
    app.close().await.unwrap();
}

#[tokio::test]
async fn an_unknown_provider_is_told_the_known_ones() {
    let app = Scope::root("app");
    let unknown = |name: &str| Route::new(name, "m").adapter(app.realm()).err().expect("nobody serves it");
    for name in ["offline", "openai"] {
        app.register::<dyn LlmAdapter>(name, Arc::new(Named(""))).unwrap();
    }
    let error = unknown("Offline");
    assert_eq!(error.to_string(), "no model provider named `Offline`; there are: offline, openai");
    assert_eq!(error.known, ["offline", "openai"]);
    app.close().await.unwrap();
}
