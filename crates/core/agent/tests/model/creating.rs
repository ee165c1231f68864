use std::sync::{Arc, Mutex};

use agent::{AgentGone, AgentPublished, CreateError};
use shuttle::future::spawn;

use crate::stage::{Stage, check};

/// The owner closes at any moment of a creation: there is an agent that was announced and is gone again, or there never
/// was one.
#[test]
fn an_agent_whose_owner_closes_is_announced_and_gone_or_never_there() {
    check(|| async {
        let stage = Stage::new();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (published, gone) = (heard.clone(), heard.clone());
        let realm = stage.app.realm();
        let _published = realm.on(move |_: &AgentPublished| published.lock().unwrap().push("published"));
        let agents = stage.agents.clone();
        let _gone = realm.on(move |AgentGone(id): &AgentGone| {
            let what = if agents.get(*id).is_none() { "gone" } else { "said to be gone" };
            gone.lock().unwrap().push(what);
        });
        let owner = stage.app.child("owner").unwrap();
        let creating = spawn({
            let created = stage.agents.create(&owner, stage.spec());
            async move {
                match created.await {
                    Ok(agent) => {
                        let receipt = agent.followup("go").ok();
                        let handle = agent.leave();
                        if let Some(receipt) = receipt {
                            receipt.outcome().await;
                        }
                        handle.when_idle().await;
                        true
                    }
                    Err(CreateError::OwnerClosing) => false,
                    Err(other) => panic!("{other}"),
                }
            }
        });
        owner.close().await.unwrap();
        let handed_over = creating.await.unwrap();
        assert!(stage.agents.list().is_empty() && stage.agents.get(stage.session.id()).is_none());
        match &heard.lock().unwrap()[..] {
            [] => assert!(!handed_over),
            ["published", "gone"] => {}
            other => panic!("{other:?}"),
        }
        // Its place is free again.
        let again = stage.agents.create(&stage.app, stage.spec());
        assert!(!matches!(again.await, Err(CreateError::AlreadyLive)));
        stage.app.close().await.unwrap();
    });
}
