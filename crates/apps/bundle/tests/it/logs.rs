//! What is written can be read again, and nothing that was accepted is lost on the way.

use std::sync::Arc;

use agent::{BeforeStep, OnTurnStop, StopVerdict, StoppingTurn};
use async_trait::async_trait;
use context::{Around, Next};
use llm::Message;
use serde_json::value::RawValue;
use session::{Sessions, ToolReturned, TurnReason, UserMessage};
use session_store::SessionStore as _;

use crate::support::{App, Disk, Held, conversation, inbox, within};

#[tokio::test]
async fn raw_json_in_a_result_does_not_break_its_line() {
    within(async {
        let (disk, sessions) = (Disk::new(), Sessions::new());
        let session = sessions.create("/home/me/project");
        disk.store.create(&session).await.unwrap();
        let meta = RawValue::from_string("{\n  \"a\": \"b\\n\",\r\n  \"c\": [\n1\n]\n}".into()).unwrap();
        let returned = ToolReturned {
            turn: 1,
            step: 1,
            call_id: "call".into(),
            content: Vec::new(),
            is_error: false,
            error: None,
            meta: Some(meta.into()),
        };
        session.append(returned).unwrap();
        session.release().await.unwrap();

        let text = std::fs::read_to_string(disk.store.path(session.id())).unwrap();
        assert_eq!(text.lines().count(), 2, "the header and the event: {text}");
        let opened = disk.store.open(&sessions, session.id()).await.expect("a log that we wrote can be opened");
        assert_eq!(opened.repairs, []);
        let returned = opened.session.latest::<ToolReturned>().unwrap();
        let meta: serde_json::Value = serde_json::from_str(returned.meta.as_ref().unwrap().get()).unwrap();
        assert_eq!(meta, serde_json::json!({"a": "b\n", "c": [1]}));
    })
    .await;
}

// D-49
#[tokio::test]
async fn what_was_claimed_and_not_yet_said_is_brought_in_on_open() {
    within(async {
        let (app, disk) = App::on_disk().await;
        let held = Held::default();
        let _layer = app.scope.realm().around::<BeforeStep>(held.clone());
        let agent = app.agent().await;
        agent.followup("the first").unwrap();
        held.arrived.notified().await;
        agent.followup("the second").unwrap();
        agent.session().flush().await.unwrap();

        // What a process that is killed now leaves behind.
        let (id, after) = (agent.id(), Disk::new());
        let copy = after.store.path(id);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(disk.store.path(id), copy).unwrap();
        let opened = after.store.open(&Sessions::new(), id).await.unwrap().session;
        assert_eq!(conversation(&opened), ["the first"]);
        assert_eq!(inbox(&opened), ["the second"]);
        app.close().await;
    })
    .await;
}

/// Has the first turn go on, with a notice, after somebody wrote to the agent.
struct Nagging;

#[async_trait]
impl Around<OnTurnStop> for Nagging {
    async fn around(&self, stopping: StoppingTurn, _: Next<'_, OnTurnStop>) -> StopVerdict {
        if conversation(stopping.agent.session()).iter().any(|said| said == "check your work") {
            return StopVerdict::Stop;
        }
        stopping.agent.followup("the second").unwrap();
        StopVerdict::Continue(vec![Arc::new(Message::user("check your work"))])
    }
}

#[tokio::test]
async fn a_message_s_id_is_its_own() {
    within(async {
        let app = App::new().await;
        let _layer = app.scope.realm().around::<OnTurnStop>(Nagging);
        let agent = app.agent().await;
        agent.followup("the first").unwrap().outcome().await;
        agent.when_idle().await;

        let log = agent.session().snapshot();
        let messages = log.events().iter().filter_map(|event| event.get::<UserMessage>());
        let (mut ids, texts): (Vec<u64>, Vec<String>) =
            messages.map(|entered| (entered.id.0, entered.message.text())).unzip();
        for text in ["the first", "check your work", "the second"] {
            assert_eq!(texts.iter().filter(|one| *one == text).count(), 1, "{text}: {texts:?}");
        }
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "each is in the log once: {:?}", log.events());
        app.close().await;
    })
    .await;
}

#[tokio::test]
async fn the_last_turn_number_is_used_again() {
    within(async {
        let app = App::new().await;
        let (id, last) = (app.session().id(), u32::MAX);
        let log = format!(
            r#"{{"format":1,"id":"{id}","createdAt":1,"cwd":"/home/me/project"}}
{{"seq":0,"time":1,"type":"turn/start","data":{{"turn":{last}}}}}
{{"seq":1,"time":1,"type":"turn/end","data":{{"turn":{last},"reason":{{"kind":"completed"}}}}}}
"#
        );
        let session = app.sessions.resume(app.sessions.vocabulary().decode(log).unwrap()).unwrap();
        let agent = app.agent_of(session, "polite/model").await;
        let outcome = agent.followup("go on").unwrap().outcome().await;
        assert_eq!((outcome.reason, outcome.turn), (TurnReason::Completed, last));
        app.close().await;
    })
    .await;
}
