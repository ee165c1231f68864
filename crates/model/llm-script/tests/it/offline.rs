use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use context::{BootError, Plugins, Scope};
use futures_util::StreamExt as _;
use llm::{Assembly, Chunk, Finish, LlmAdapter, LlmError, LlmErrorKind, Message, Request, Route};
use llm_script::{Config, Fixed, LlmScript};
use tokio::time::timeout;

async fn app(config: Config) -> Result<Scope, BootError> {
    let app = Scope::root("app");
    let started = Plugins::new().with(LlmScript, config).start(&app).await;
    match started {
        Ok(()) => Ok(app),
        Err(error) => {
            app.close().await.unwrap();
            Err(error)
        }
    }
}

async fn ask(app: &Scope, model: &str) -> Result<String, LlmError> {
    let route: Route = format!("offline/{model}").parse().unwrap();
    let mut request = Request::to(route.model.clone());
    request.messages.push(Arc::new(Message::user("say hello")));
    let reply = route.adapter(app.realm()).unwrap().reply(request);
    let reply = timeout(Duration::from_secs(3_600), Assembly::collect(reply)).await.expect("the reply ends");
    reply.map(|reply| reply.message.text())
}

fn refused(why: &str) -> Result<String, LlmError> {
    Err(LlmError::new(LlmErrorKind::InvalidRequest, why))
}

#[tokio::test(start_paused = true)]
async fn the_provider_has_two_models() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("replies.jsonl");
    std::fs::write(&path, r#"{"text": "from the file"}"#).unwrap();
    let with_file = app(Config { file: Some(path) }).await.unwrap();
    assert_eq!(ask(&with_file, "script").await, Ok("hello".into()));
    assert_eq!(ask(&with_file, "file").await, Ok("from the file".into()));
    let other = refused("no model `gpt` at `offline`; there are: offline/script, offline/file");
    assert_eq!(ask(&with_file, "gpt").await, other);
    with_file.close().await.unwrap();

    let without = app(Config::default()).await.unwrap();
    let no_file = refused(
        "the model `offline/file` has no file: name one in `[offline] script` of the configuration, or in \
         TETHER_OFFLINE_SCRIPT",
    );
    assert_eq!(ask(&without, "file").await, no_file);
    without.close().await.unwrap();
    assert!(without.realm().named::<dyn LlmAdapter>("offline").is_none(), "gone with its scope");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_read_stops_the_start() {
    let path = PathBuf::from("/nowhere/replies.jsonl");
    let Err(BootError::Failed { name, source }) = app(Config { file: Some(path) }).await else { panic!("it started") };
    assert_eq!((name, &*source.to_string()), ("llm-script", "cannot read the replies in /nowhere/replies.jsonl"));
}

#[test]
fn the_configuration_knows_its_keys() {
    let config: Config = serde_json::from_str(r#"{"file": "a.jsonl"}"#).unwrap();
    assert_eq!(config.file, Some("a.jsonl".into()));
    assert!(serde_json::from_str::<Config>(r#"{"fiel": "a.jsonl"}"#).is_err());
}

#[tokio::test(start_paused = true)]
async fn fixed_replies() {
    let all = |fixed: Fixed| async move { fixed.reply(Request::to("any")).collect::<Vec<_>>().await };
    let letter = |letter: &str| Chunk::Text(letter.into());
    let whole = [letter("o"), letter("k"), Chunk::End(Finish::Stop)].map(Ok);
    let model = Fixed::letters("ok");
    assert_eq!(all(model.clone()).await, whole);
    assert_eq!(all(model).await, whole, "again and again");
    assert_eq!(all(Fixed::new([letter("cut")])).await, [Ok(letter("cut"))]);

    let mut hanging = Fixed::hanging([letter("a")]).reply(Request::to("any"));
    assert_eq!(hanging.next().await, Some(Ok(letter("a"))));
    assert!(timeout(Duration::from_secs(86_400), hanging.next()).await.is_err());
}
