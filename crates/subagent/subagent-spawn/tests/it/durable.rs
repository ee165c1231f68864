//! What is on the disk, and when.

use std::sync::{Arc, Mutex};

use agent::AgentPublished;
use sandbox::Mode;
use sandbox_policy::{Decision, ModeCause, ModeSet, decision};
use session::{Seed, Session, SessionId};
use session_store::{OpenError, SessionStore};
use subagent::{ChildStarted, Request, Start, StartError, Started, SubagentProvider};
use user_approval::{Policy, PolicySet};

use crate::doubles::{Note, Tape};
use crate::world::*;

// D-05
#[tokio::test]
async fn a_childs_log_begins_with_its_stamps_and_its_descriptor() {
    within(async {
        let world = World::new().await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seeing = seen.clone();
        // Whoever begins at the first live event, as telemetry does, is told of the stamps.
        let listener = world.app.realm().on(move |AgentPublished(agent)| {
            let (session, seen) = (agent.session().clone(), seeing.clone());
            if session.header().lineage().is_some() {
                let from = session.first_live_seq();
                drop(session.observe(from, move |event| seen.lock().unwrap().push(event.to_json())));
            }
        });
        let parent = world.parent().await;
        tell(&parent, "say hello").await;
        switch(&parent, Mode::WorkspaceWrite);
        let run = world.spawn(&parent, "say done").await;
        run.result().await;
        drop(listener);
        let text = std::fs::read_to_string(world.file(run.child().unwrap())).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(!lines[0].contains("seedLength"), "{}", lines[0]);
        let want = [
            r#"{"seq":0,"time":1790000000123,"type":"sandbox/mode","data":{"mode":"workspace-write","source":"delegation"}}"#,
            r#"{"seq":1,"time":1790000000123,"type":"approval/policy","data":{"policy":"never","source":"delegation"}}"#,
            r#"{"seq":2,"time":1790000000123,"type":"subagent/descriptor","data":{"version":1,"mode":"one-shot","provider":"spawn"}}"#,
        ];
        assert_eq!(lines[1..4], want);
        assert_eq!(seen.lock().unwrap()[..3], want);
        assert_eq!(world.child(&run).session().first_live_seq(), 0);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-06
#[tokio::test]
async fn nobody_hears_of_a_child_before_the_disk_has_its_scope() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let files = [parent.id()].map(|id| (id, world.file(id)));
        let folder = world.at("home/sessions");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seeing = seen.clone();
        let published = world.app.realm().on(move |AgentPublished(agent)| {
            let log = read(&std::fs::read_to_string(folder.join(format!("{}.jsonl", agent.id()))).unwrap());
            seeing.lock().unwrap().push(("published", tags(&log)));
        });
        let seeing = seen.clone();
        let started = world.app.realm().on(move |_: &ChildStarted| {
            let log = read(&std::fs::read_to_string(&files[0].1).unwrap());
            seeing.lock().unwrap().push(("started", tags(&log)));
        });
        switch(&parent, Mode::WorkspaceWrite);
        switch(&parent, Mode::ReadOnly);
        assert!(!world.file(parent.id()).exists() || world.log(parent.id()).len() < 2, "not flushed by the test");
        let run = world.spawn(&parent, "hang").await;
        drop((published, started));
        let seen = seen.lock().unwrap().clone();
        let batch = ["sandbox/mode", "approval/policy", "subagent/descriptor", "inbox/accepted"];
        assert_eq!(
            seen,
            [("published", batch.map(str::to_owned).to_vec()), ("started", vec!["sandbox/mode".into(); 2])]
        );
        let child = world.log(run.child().unwrap());
        assert_eq!(child.header().lineage().unwrap().parent_seq(), 2);
        // Whoever has the child's file and nothing else knows what it may do, and why.
        let Decision::Override(set, event) = decision(&child) else { panic!("no override") };
        assert_eq!((set, event.seq()), (ModeSet { mode: Mode::ReadOnly, source: Some(ModeCause::Delegation) }, 0));
        assert_eq!(child.latest::<PolicySet>().unwrap().policy, Policy::Never);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-06
#[tokio::test]
async fn the_parents_log_is_durable_first_then_the_childs_then_it_is_told() {
    within(async {
        let tape = Tape::new(3, |_| false);
        let store: Arc<dyn SessionStore> = Arc::new(tape.clone());
        let without = |plugins: context::Plugins| plugins.without("session-jsonl").unwrap();
        let world = World::with(Default::default(), without, |app| app.provide(store).unwrap()).await;
        let parent = world.parent().await;
        switch(&parent, Mode::ReadOnly);
        let begun = tape.notes().len();
        let (published, started) = (tape.clone(), tape.clone());
        let _published = world.app.realm().on(move |_: &AgentPublished| published.note(Note::Else("published")));
        let _started = world.app.realm().on(move |_: &ChildStarted| started.note(Note::Else("started")));
        let run = world.spawn(&parent, "hang").await;
        let child = run.child().unwrap();
        let notes: Vec<Note> = tape.notes()[begun..].to_vec();
        let want = [
            Note::Flush { id: parent.id(), len: 1, child: false },
            Note::Create(child),
            Note::Flush { id: child, len: 4, child: true },
            Note::Else("published"),
        ];
        assert_eq!(notes[..4], want);
        let told = notes.iter().position(|note| *note == Note::Else("started")).expect("it was announced");
        assert!(told >= 4);
        world.app.close().await.unwrap();
        assert_eq!(tape.held(), []);
    })
    .await;
}

/// A kind of child from a crate of a stranger's, who makes the session without any help, and late.
struct Stranger(Arc<Mutex<Vec<Session>>>, Arc<tokio::sync::Notify>);

#[async_trait::async_trait]
impl SubagentProvider for Stranger {
    fn inherits_parent_context(&self) -> bool {
        false
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        self.1.notified().await;
        self.0.lock().unwrap().push(Session::delegated(start.delegation, Seed::Fresh));
        Ok(Started::elsewhere(std::future::pending()))
    }
}

// D-12, D-03
#[tokio::test]
async fn a_strangers_child_is_stamped_and_with_what_was_captured() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        switch(&parent, Mode::ReadOnly);
        let (made, go) = (Arc::default(), Arc::new(tokio::sync::Notify::new()));
        let stranger = Stranger(Arc::clone(&made), go.clone());
        world.app.own(world.subagents.register("stranger", Arc::new(stranger)).unwrap()).unwrap();
        let starting = world.subagents.start(&parent, "stranger", Request::new("go"));
        switch(&parent, Mode::DangerFullAccess);
        go.notify_one();
        let run = starting.await.unwrap();
        let session = made.lock().unwrap().pop().unwrap();
        assert_eq!(tags(&session.snapshot()), ["sandbox/mode", "approval/policy"]);
        assert_eq!(world.policy().effective(&session), Mode::ReadOnly);
        assert_eq!(world.approval().effective(&session), Policy::Never);
        run.dispose().await.unwrap();
        world.app.close().await.unwrap();
    })
    .await;
}

// D-12
#[tokio::test]
async fn a_childs_log_without_events_of_its_own_is_not_opened() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        switch(&parent, Mode::ReadOnly);
        let run = world.spawn(&parent, "say done").await;
        run.result().await;
        run.dispose().await.unwrap();
        let id: SessionId = run.child().unwrap();
        let text = std::fs::read_to_string(world.file(id)).unwrap();
        let header = text.split_inclusive('\n').next().unwrap();
        std::fs::write(world.file(id), header).unwrap();
        let store = world.app.get::<dyn SessionStore>().unwrap();
        let refused = store.open(&world.sessions, id).await.unwrap_err();
        assert!(matches!(refused, OpenError::Unborn { .. }), "{refused}");
        assert_eq!(std::fs::read_to_string(world.file(id)).unwrap(), header, "and it is left as it was");
        std::fs::write(world.file(id), &text).unwrap();
        let opened = store.open(&world.sessions, id).await.unwrap();
        assert_eq!(world.policy().effective(&opened.session), Mode::ReadOnly);
        drop(opened);
        world.close(&[parent.id(), id]).await;
    })
    .await;
}
