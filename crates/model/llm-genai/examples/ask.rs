//! Asks a model one question and prints what streams back, piece by piece:
//!
//! ```text
//! OPENAI_API_KEY=… cargo run -p llm-genai --example ask -- openai/gpt-5-mini "What is a monad?"
//! ```
//!
//! Without a route, the first provider with a key answers. One tool, `bash`, is offered, and never run.
#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::sync::Arc;

use context::{Plugins, Scope};
use futures_util::StreamExt as _;
use llm::{Message, Request, Route, ToolSchema};
use llm_genai::{Config, LlmGenai};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let config = Config::from_lookup(|name| std::env::var(name).ok());
    let (route, prompt) = match &words[..] {
        [route, prompt] => (route.parse::<Route>()?, prompt),
        [prompt] => (config.providers_with_key().into_iter().next().ok_or("set a key, as in OPENAI_API_KEY")?, prompt),
        _ => return Err("usage: ask [PROVIDER/MODEL] PROMPT".into()),
    };
    let app = Scope::root("app");
    Plugins::new().with(LlmGenai, config).start(&app).await?;

    let mut request = Request::to(&*route.model);
    request.messages.push(Arc::new(Message::user(&**prompt)));
    let schema = r#"{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}"#;
    request.tools = [ToolSchema {
        name: "bash".into(),
        description: "Runs a command.".into(),
        input_schema: Arc::new(serde_json::from_str(schema)?),
    }]
    .into();
    let mut reply = route.adapter(app.realm())?.reply(request);
    while let Some(chunk) = reply.next().await {
        println!("{:?}", chunk?);
    }
    app.close().await?;
    Ok(())
}
