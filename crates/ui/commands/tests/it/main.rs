//! Commands, as front doors run them.

use std::sync::Arc;

use async_trait::async_trait;
use commands::{Command, CommandsPlugin, Invocation, Outcome, dispatch, list, parse};
use context::{Plugins, Scope};
use session::{Session, Sessions};
use tokio_util::sync::CancellationToken;

enum Does {
    Say(&'static str),
    Fail,
    Panic,
    Hang,
}

#[async_trait]
impl Command for Does {
    fn description(&self) -> &str {
        "For tests"
    }

    async fn run(&self, invocation: &Invocation) -> Result<String, String> {
        match self {
            Self::Say(text) => Ok(format!("{text}: {}", invocation.arguments)),
            Self::Fail => Err("name a number".to_owned()),
            Self::Panic => panic!("on purpose"),
            Self::Hang => std::future::pending().await,
        }
    }
}

async fn app() -> (Scope, Session) {
    let app = Scope::root("app");
    Plugins::new().with(CommandsPlugin, ()).start(&app).await.unwrap();
    for (name, does) in [("say", Does::Say("app")), ("fail", Does::Fail), ("panic", Does::Panic), ("hang", Does::Hang)]
    {
        app.register::<dyn Command>(name, Arc::new(does)).unwrap();
    }
    (app, Sessions::new().create("/home/me/project"))
}

async fn typed(scope: &Scope, session: &Session, text: &str) -> Option<Outcome> {
    let never = CancellationToken::new();
    let running = dispatch(scope, session, text, &never);
    tokio::time::timeout(std::time::Duration::from_secs(10), running).await.expect("it ends")
}

#[tokio::test]
async fn a_command_is_run_and_leaves_nothing_in_the_log() {
    let (app, session) = app().await;
    let said = |text: &str| Some(Outcome::Said(text.to_owned()));
    assert_eq!(typed(&app, &session, " /say  one two ").await, said("app: one two"));
    assert_eq!(typed(&app, &session, "/say").await, said("app: "));
    assert_eq!(typed(&app, &session, "/fail").await, Some(Outcome::Failed("name a number".into())));
    assert_eq!(typed(&app, &session, "/panic").await, Some(Outcome::Failed("`/panic` panicked: this is a bug".into())));
    assert!(session.is_empty());
    app.close().await.unwrap();
}

#[tokio::test]
async fn what_is_no_command_is_the_models() {
    let (app, session) = app().await;
    for text in ["say", "/", "/nothing", "/say\nand more", "/usr/bin/say", "/ say", "/säy", ""] {
        assert_eq!(typed(&app, &session, text).await, None, "{text}");
    }
    assert_eq!(parse("/a-b_c  d e "), Some(("a-b_c", "d e")));
    app.close().await.unwrap();
}

#[tokio::test]
async fn an_agents_own_stands_in_the_place_of_the_apps() {
    let (app, session) = app().await;
    let agent = app.child_in("agent", app.realm().nested()).unwrap();
    agent.register::<dyn Command>("say", Arc::new(Does::Say("agent"))).unwrap();
    assert_eq!(typed(&agent, &session, "/say x").await, Some(Outcome::Said("agent: x".into())));
    assert_eq!(typed(&app, &session, "/say x").await, Some(Outcome::Said("app: x".into())));
    let names: Vec<_> = list(agent.realm()).into_iter().map(|listed| listed.name.to_string()).collect();
    assert_eq!(names, ["fail", "hang", "help", "panic", "say"], "once each");
    let Some(Outcome::Said(help)) = typed(&agent, &session, "/help").await else { panic!("it says something") };
    assert!(help.starts_with("/fail: For tests\n") && help.lines().count() == 5, "{help}");
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_cancel_ends_it() {
    let (app, session) = app().await;
    let cancelled = CancellationToken::new();
    let hanging = dispatch(&app, &session, "/hang", &cancelled);
    let cancelling = async { cancelled.cancel() };
    let (ended, ()) = tokio::join!(hanging, cancelling);
    assert_eq!(ended, Some(Outcome::Cancelled));
    app.close().await.unwrap();
}
