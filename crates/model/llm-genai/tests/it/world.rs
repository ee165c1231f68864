use std::sync::Arc;
use std::time::Duration;

use context::{Plugins, Scope};
use futures_util::StreamExt as _;
use llm::{Assembled, Assembly, Chunk, LlmAdapter, LlmError, Message, Reply, Request, Route};
use llm_genai::{Config, LlmGenai};

use crate::server::{Answer, Asked, Server, within};

/// The key that every provider is given here.
pub(crate) const KEY: &str = "sk-very-secret";

/// An app with the adapters, and a server that they all talk to.
pub(crate) struct World {
    pub(crate) server: Server,
    adapter: Arc<dyn LlmAdapter>,
    _app: Scope,
}

/// What came of a request.
pub(crate) struct Outcome {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) error: Option<LlmError>,
    pub(crate) asked: Vec<Asked>,
}

impl World {
    pub(crate) async fn new(provider: &str, answers: Vec<Answer>) -> Self {
        Self::with(provider, answers, |config| config).await
    }

    pub(crate) async fn with(provider: &str, answers: Vec<Answer>, adjust: impl FnOnce(Config) -> Config) -> Self {
        let app = Scope::root("app");
        let server = Server::start(&app, answers).await;
        let config = adjust(config(&server.address));
        let adapter = adapter(&app, provider, config).await;
        Self { server, adapter, _app: app }
    }

    pub(crate) fn reply(&self, request: Request) -> Reply {
        self.adapter.reply(request)
    }

    pub(crate) async fn ask(&self, request: Request) -> Outcome {
        let (chunks, error) = within(drain(self.reply(request))).await;
        Outcome { chunks, error, asked: self.server.asked() }
    }
}

/// All providers at one address, with a key, and quick to try again.
pub(crate) fn config(address: &str) -> Config {
    let url = format!("http://{address}");
    let config = Config::from_lookup(|name| match name {
        "OLLAMA_HOST" => Some(address.to_owned()),
        _ if name.ends_with("_BASE_URL") => Some(url.clone()),
        _ if name.ends_with("_API_KEY") => Some(KEY.to_owned()),
        _ => None,
    });
    Config { retry_delay: Duration::from_millis(1), ..config }
}

pub(crate) async fn adapter(app: &Scope, provider: &str, config: Config) -> Arc<dyn LlmAdapter> {
    Plugins::new().with(LlmGenai, config).start(app).await.unwrap();
    Route::new(provider, "m").adapter(app.realm()).unwrap()
}

/// Reads a reply to its end, and sees that there is one.
pub(crate) async fn drain(mut reply: Reply) -> (Vec<Chunk>, Option<LlmError>) {
    let mut chunks = Vec::new();
    let error = loop {
        match reply.next().await {
            Some(Ok(chunk)) => {
                let last = matches!(chunk, Chunk::End(_));
                chunks.push(chunk);
                if last {
                    break None;
                }
            }
            Some(Err(error)) => break Some(error),
            None => panic!("the stream ended without an end or an error"),
        }
    };
    assert!(reply.next().await.is_none(), "an end or an error is the last item");
    (chunks, error)
}

/// What a provider made of `hello`.
pub(crate) async fn ask(provider: &str, answers: Vec<Answer>) -> Outcome {
    World::new(provider, answers).await.ask(hello("m")).await
}

pub(crate) fn hello(model: &str) -> Request {
    let mut request = Request::to(model);
    request.messages.push(Arc::new(Message::user("hello")));
    request
}

impl Outcome {
    pub(crate) fn texts<'a>(&'a self) -> Vec<&'a str> {
        let text = |chunk: &'a Chunk| match chunk {
            Chunk::Text(text) => Some(text.as_ref()),
            _ => None,
        };
        self.chunks.iter().filter_map(text).collect()
    }

    #[track_caller]
    pub(crate) fn assembled(self) -> Assembled {
        assert_eq!(self.error, None);
        let mut assembly = Assembly::new();
        self.chunks.into_iter().for_each(|chunk| assembly.push(chunk));
        assembly.done()
    }

    #[track_caller]
    pub(crate) fn failed(&self) -> &LlmError {
        let error = self.error.as_ref().expect("an error");
        assert!(!error.message.contains('\n') && !error.message.contains(KEY), "{}", error.message);
        error
    }
}
