//! A creation that succeeds: in which order, and who sees what.

use std::sync::{Arc, Mutex};

use agent::*;
use context::Plugins;
use futures_util::FutureExt as _;
use llm::Sampling;
use session::InboxAccepted;
use session_store::{MemoryStore, SessionStore};

use crate::store::{Fails, FakeStore, Left, left};
use crate::support::*;

#[tokio::test]
async fn an_agent_is_seen_when_its_set_up_is_through_and_before_its_creator_has_it() {
    let stage = Stage::new();
    let seen = Trace::default();
    let look = |who: &'static str| {
        let (agents, seen) = (stage.agents.clone(), seen.clone());
        step(move |agent: AgentRef| {
            let visible = agents.get(agent.id()).is_some() || !agents.list().is_empty();
            seen.note(format!("{who} {}", if visible { "visible" } else { "unseen" }));
            agent.ctx().own(seen.guard(who)).unwrap();
            async { Ok(()) }
        })
    };
    stage.app.register::<dyn AgentSetup>("z", look("app's first")).unwrap();
    stage.app.register::<dyn AgentSetup>("a", look("app's second")).unwrap();
    let published = seen.clone();
    let agents = stage.agents.clone();
    let on_published = stage.app.realm().on(move |AgentPublished(agent)| {
        published.note(format!("published {}", agents.get(agent.id()).is_some()));
    });
    let mut spec = stage.spec();
    spec.setup = vec![look("own first"), look("own second")];
    spec.prompt = Some("go".into());
    let agent = in_time(stage.agents.create(&stage.app, spec)).await.unwrap();
    let want = ["app's first unseen", "app's second unseen", "own first unseen", "own second unseen", "published true"];
    assert_eq!(seen.take(), want, "in order of registration");
    assert_eq!(stage.heard.take(), [format!("published {}", agent.id())]);
    assert_eq!(stage.turn().await.said, ["go"], "turns come after that");
    in_time(agent.dispose()).await.unwrap();
    assert_eq!(seen.take(), ["own second", "own first", "app's second", "app's first"]);
    assert_eq!(stage.heard.take(), [format!("gone {}", agent.id())]);
    drop(on_published);
    stage.close().await;
}

#[tokio::test]
async fn what_an_agent_registers_is_its_own_and_what_its_owner_did_it_does_not_see() {
    let stage = Stage::new();
    stage.app.provide(Arc::new("the app's")).unwrap();
    let owner = stage.app.child_in("parent", stage.app.realm().nested()).unwrap();
    owner.provide(Arc::new("the parent's")).unwrap();
    owner.provide(Arc::new(1_u8)).unwrap();
    let mut spec = stage.spec();
    spec.setup = vec![step(async |agent: AgentRef| Ok(agent.ctx().provide(Arc::new(2_u16))?))];
    let sampling = Sampling { max_tokens: Some(7), temperature: None };
    spec.profile = Arc::new(Profile { sampling, ..Profile::clone(&spec.profile) });
    let agent = in_time(stage.agents.create(&owner, spec)).await.unwrap();
    assert_eq!(agent.ctx().get::<&str>().as_deref(), Some(&"the app's"));
    assert_eq!(agent.ctx().get::<u8>(), None, "the owner closes it; it does not look the owner up");
    assert_eq!(agent.ctx().get::<u16>().as_deref(), Some(&2));
    assert_eq!(stage.app.get::<u16>(), None);
    assert_eq!(agent.profile().sampling.max_tokens, Some(7));
    assert_eq!(format!("{:?}", agent.handle()), format!("AgentRef({})", agent.session().id()));
    assert!(agent.is_idle());
    stage.close().await;
}

#[tokio::test]
async fn agents_are_listed_in_the_order_in_which_their_sessions_were_made() {
    let stage = Stage::new();
    let sessions = [stage.session(), stage.session(), stage.session()];
    let mut made = Vec::new();
    for at in [2, 0, 1] {
        made.push(in_time(stage.agents.create(&stage.app, spec_of(sessions[at].clone()))).await.unwrap());
    }
    let listed: Vec<_> = stage.agents.list().iter().map(AgentRef::id).collect();
    assert_eq!(listed, sessions.each_ref().map(session::Session::id));
    for agent in &made {
        assert_eq!(stage.agents.get(agent.id()).unwrap().id(), agent.id());
    }
    assert!(stage.agents.get(stage.session().id()).is_none());
    stage.close().await;
}

#[tokio::test]
async fn a_prompt_is_durable_before_anyone_sees_the_agent() {
    let store = MemoryStore::default();
    let stage = Stage::with_store(store.clone());
    let found: Arc<Mutex<Vec<String>>> = Arc::default();
    let (kept, sessions, seen) = (store.clone(), stage.sessions.clone(), found.clone());
    let looked = stage.app.realm().on(move |AgentPublished(agent)| {
        let reading = kept.read(&sessions.vocabulary(), agent.id()).now_or_never().expect("memory is at hand").unwrap();
        let accepted = reading.decoded.log().latest::<InboxAccepted>().unwrap();
        seen.lock().unwrap().push(format!("{} {:?}", accepted.message.text(), accepted.delivery));
    });
    let mut spec = stage.spec();
    spec.prompt = Some(Input::prompt("do it"));
    let mut agent = in_time(stage.agents.create(&stage.app, spec)).await.unwrap();
    assert_eq!(*found.lock().unwrap(), ["do it Followup"]);
    let receipt = agent.prompted().expect("there was a prompt");
    assert!(agent.prompted().is_none(), "once");
    assert_eq!(receipt.id().0, 0);
    stage.turn().await.complete().await;
    assert_eq!(in_time(receipt.outcome()).await.output.unwrap().text(), "end of turn 1");
    drop(looked);
    stage.close().await;
}

#[tokio::test]
async fn a_session_is_kept_where_there_is_a_store_and_only_once() {
    let stage = Stage::new();
    let nowhere = stage.agent().await;
    assert!(!nowhere.session().is_backed());
    stage.close().await;

    let store = FakeStore::new(Fails::Nowhere);
    let stage = Stage::with_store(store.clone());
    let agent = stage.agent().await;
    assert!(agent.session().is_backed());
    assert_eq!(store.asked(), ["create", "flush"]);
    in_time(agent.dispose()).await.unwrap();
    assert_eq!(store.asked(), ["close"]);

    // Opened by whoever resumes it, so it is kept already.
    let session = stage.session();
    session.attach(Arc::new(store.clone())).unwrap();
    let agent = in_time(stage.agents.create(&stage.app, spec_of(session))).await.unwrap();
    assert_eq!(store.asked(), ["flush"]);
    drop(agent);
    stage.close().await;
    assert_eq!(store.asked(), ["close"]);
}

#[tokio::test]
async fn the_lease_lasts_as_long_as_the_agent() {
    let store = MemoryStore::default();
    let stage = Stage::with_store(store.clone());
    let agent = stage.agent().await;
    assert_eq!(left(&store, &stage.sessions, agent.id()).await, Left::Leased);
    let receipt = agent.followup("hello").unwrap();
    stage.turn().await.complete().await;
    in_time(receipt.outcome()).await;
    in_time(agent.dispose()).await.unwrap();
    // A driver that claims and enters nothing: the message is brought in when the log is opened.
    let want = ["inbox/accepted", "inbox/claimed", "turn/start", "user/message", "turn/end"].map(String::from).to_vec();
    assert_eq!(left(&store, &stage.sessions, agent.id()).await, Left::Free(want), "flushed, and free");
    stage.close().await;
}

#[tokio::test]
async fn the_plugin_provides_agents_who_look_the_app_up() {
    let stage = Stage::new();
    Plugins::new().with(AgentsPlugin, ()).start(&stage.app).await.unwrap();
    let agents = stage.app.get::<Agents>().unwrap();
    stage.app.provide(Arc::new(3_u8)).unwrap();
    assert_eq!(agents.realm().get::<u8>().as_deref(), Some(&3));
    let agent = in_time(agents.create(&stage.app, stage.spec())).await.unwrap();
    assert_eq!(agent.ctx().get::<u8>().as_deref(), Some(&3));
    stage.close().await;
}
