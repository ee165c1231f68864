//! A child that starts with its parent's conversation, beside one that does not.

use std::sync::Arc;

use agent::{AgentRef, AgentSetup, Input};
use async_trait::async_trait;
use context::BoxError;
use llm::{Chunk, Finish, Message, Role};
use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet};
use session::{Delivery, InboxAccepted, InboxClaimed, SessionId, Snapshot, TurnEnd, TurnReason, UserMessage};
use session_store::SessionStore;
use subagent::{Descriptor, Request, Run, StartError, StopReason};

use crate::doubles::{Gate, Lines};
use crate::world::*;

async fn fork(world: &World, parent: &AgentRef, script: &str) -> Run {
    world.subagents.start(parent, "fork", Request::new(script)).await.unwrap()
}

/// The lines behind the header, as they are on the disk.
fn lines(world: &World, id: SessionId) -> Vec<String> {
    let text = std::fs::read_to_string(world.file(id)).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// What a person or a parent said in a log, in order.
fn prompts(log: &Snapshot) -> Vec<String> {
    let said = log.messages().unwrap();
    let mine = |message: &&Arc<Message>| message.role == Role::User && !message.text().starts_with('<');
    said.iter().filter(mine).map(|message| message.text()).filter(|text| !text.is_empty()).collect()
}

// D-28, D-05, D-06
#[tokio::test]
async fn a_fork_has_the_closed_turns_and_nothing_of_the_open_one() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        switch(&parent, Mode::WorkspaceWrite);
        tell(&parent, "say alpha").await;
        switch(&parent, Mode::ReadOnly);
        tell(&parent, "write a.txt x").await;
        let closed = parent.session().snapshot().closed_len();
        let open = parent.followup(r#"call gate {"name":"open"}; say open"#).unwrap();
        gate.arrived("open").await;
        switch(&parent, Mode::DangerFullAccess);
        let run = fork(&world, &parent, "write ../outside/b.txt x; say beta").await;
        let result = run.result().await;
        assert_eq!((result.reason, result.text()), (StopReason::Completed, "beta".to_owned()));
        assert!(world.at("outside/b.txt").exists(), "the switch behind the closed turns is handed down");

        let child = run.child().unwrap();
        let (log, header) = (world.log(child), world.log(child).header().clone());
        let lineage = header.lineage().unwrap();
        assert_eq!((header.seed_length(), lineage.parent()), (closed, parent.id()));
        assert!(lineage.parent_seq() > closed, "captured behind the seed");
        let (ours, theirs) = (lines(&world, parent.id()), lines(&world, child));
        let seed = usize::try_from(closed).unwrap();
        assert_eq!(ours[..seed], theirs[..seed], "byte for byte");
        let tags = tags(&log);
        let own = ["session/end-seed", "sandbox/mode", "approval/policy", "subagent/descriptor"];
        assert_eq!(tags[seed..seed + own.len()], own);
        let stamp = log.event(closed + 1).unwrap().get::<ModeSet>().unwrap();
        assert_eq!(*stamp, ModeSet { mode: Mode::DangerFullAccess, source: Some(ModeCause::Delegation) });
        assert_eq!(world.child(&run).session().first_live_seq(), closed, "what it begins with itself is live");
        assert_eq!(prompts(&log), ["say alpha", "write a.txt x", "write ../outside/b.txt x; say beta"]);
        gate.open("open");
        assert_eq!(open.outcome().await.reason, TurnReason::Completed);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-28
#[tokio::test]
async fn a_parent_without_a_closed_turn_forks_an_unseeded_child() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        switch(&parent, Mode::ReadOnly);
        let _open = parent.followup(r#"call gate {"name":"open"}"#).unwrap();
        gate.arrived("open").await;
        let run = fork(&world, &parent, "say hello").await;
        assert_eq!(run.result().await.text(), "hello");
        let log = world.log(run.child().unwrap());
        assert_eq!(tags(&log)[..3], ["sandbox/mode", "approval/policy", "subagent/descriptor"]);
        let text = std::fs::read_to_string(world.file(run.child().unwrap())).unwrap();
        assert!(!text.lines().next().unwrap().contains("seedLength"), "{text}");
        gate.open("open");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-28: whatever its end.
#[tokio::test]
async fn a_turn_that_failed_is_a_closed_turn() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        tell(&parent, "say alpha").await;
        assert!(matches!(tell(&parent, "say beta; fail protocol").await.reason, TurnReason::Error { .. }));
        let run = fork(&world, &parent, "say gamma").await;
        run.result().await;
        let log = world.log(run.child().unwrap());
        assert_eq!(prompts(&log).len(), 3);
        let last = log.event(log.header().seed_length() - 1).unwrap();
        assert!(matches!(last.get::<TurnEnd>().unwrap().reason, TurnReason::Error { .. }));
        world.app.close().await.unwrap();
    })
    .await;
}

// D-05, D-07: a switch inside the seed is older than the stamp, for whoever has only the child's file.
#[tokio::test]
async fn a_fresh_policy_beats_a_stale_switch_in_the_history() {
    within(async {
        let world = World::with(policies(Mode::DangerFullAccess), |plugins| plugins, |_| {}).await;
        let parent = world.parent().await;
        switch(&parent, Mode::DangerFullAccess);
        tell(&parent, "write ../outside/parent.txt x").await;
        switch(&parent, Mode::ReadOnly);
        let run = fork(&world, &parent, "write in.txt x; write ../outside/out.txt x; say tried").await;
        assert_eq!(run.result().await.denials.total, 2);
        assert!(!world.at("ws/in.txt").exists() && !world.at("outside/out.txt").exists());
        let log = world.log(run.child().unwrap());
        let modes: Vec<Mode> = all::<ModeSet>(&log).into_iter().map(|set| set.mode).collect();
        assert_eq!(modes, [Mode::DangerFullAccess, Mode::ReadOnly]);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-02
#[tokio::test]
async fn an_unswitched_parents_fork_follows_the_default() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        tell(&parent, "say alpha").await;
        let run = fork(&world, &parent, "say beta").await;
        run.result().await;
        assert!(all::<ModeSet>(&world.log(run.child().unwrap())).is_empty());
        let child = world.child(&run);
        world.policy().set_default(Mode::WorkspaceWrite);
        assert_eq!(world.policy().effective(child.session()), Mode::WorkspaceWrite, "live");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-28: what waited in the parent's inbox, and was accepted in its closed turns, never runs in the child.
#[tokio::test]
async fn an_inbox_in_the_history_is_history() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        let turn = parent.followup(r#"call gate {"name":"open"}; say done"#).unwrap();
        gate.arrived("open").await;
        let waiting = Input { delivery: Delivery::Inject, ..Input::prompt("write ../outside/again.txt x") };
        let _waits = parent.send(waiting).unwrap();
        parent.cancel("enough", agent::Inbox::Keep);
        turn.outcome().await;
        assert_eq!(parent.session().pending_len(), 1, "it waits for the next wake");
        switch(&parent, Mode::DangerFullAccess);
        let run = fork(&world, &parent, "say mine").await;
        run.result().await;
        let log = world.log(run.child().unwrap());
        let seeded = |event: &session::Event| event.seq() < log.header().seed_length();
        let injected = log
            .events()
            .iter()
            .find(|event| event.get::<InboxAccepted>().is_some_and(|accepted| accepted.delivery == Delivery::Inject));
        assert!(injected.is_some_and(seeded), "the seed holds it");
        let own = || log.events_from(log.header().seed_length());
        let mut entered = own().filter_map(|event| event.get::<UserMessage>());
        assert!(entered.all(|message| !message.message.text().contains("again")));
        assert_eq!(own().filter(|event| event.get::<InboxClaimed>().is_some()).count(), 1);
        assert_eq!(world.child(&run).session().pending_len(), 0);
        assert_eq!(parent.session().pending_len(), 1, "and the parent still has it");
        run.dispose().await.unwrap();
        // Whoever opens the child's log again finds nothing to run either.
        let store = world.app.get::<dyn SessionStore>().unwrap();
        let again = store.open(&world.sessions, log.header().id()).await.unwrap().session;
        assert_eq!(again.pending_len(), 0);
        assert!(!world.at("outside/again.txt").exists());
        world.app.close().await.unwrap();
    })
    .await;
}

// D-24
#[tokio::test]
async fn the_parents_words_are_never_the_childs_output() {
    within(async {
        let world = World::new().await;
        let end = || vec![Chunk::End(Finish::Stop)];
        world.model("mute", Lines(vec![vec![Chunk::Text("the parent's".into()), Chunk::End(Finish::Stop)], end()]));
        let parent = world.parent().await;
        let request = |prompt| Request { model: Some("mute/x".parse().unwrap()), ..Request::new(prompt) };
        let talker = world.subagents.start(&parent, "spawn", request("speak")).await.unwrap();
        assert_eq!(talker.result().await.text(), "the parent's");
        let child = world.child(&talker);
        let forked = world.subagents.start(&child, "fork", request("now you")).await.unwrap();
        let result = forked.result().await;
        assert_eq!((result.reason, &result.output[..]), (StopReason::Completed, &[][..]));
        world.app.close().await.unwrap();
    })
    .await;
}

// D-32: what the parent was denied before is not the child's.
#[tokio::test]
async fn denials_in_the_history_are_not_the_childs() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        tell(&parent, "write ../outside/a x; spawn x { write ../outside/b x }; say tried").await;
        let run = fork(&world, &parent, "write ../outside/c x; say tried").await;
        let denials = run.result().await.denials.clone();
        let [denial] = &denials.list[..] else { panic!("{denials:?}") };
        assert!(denial.target.ends_with("outside/c") && denial.session == run.child().unwrap(), "{denial:?}");
        assert_eq!(denials.total, 1);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-08, D-28: a fork of a fork, and a fresh child of one; the last descriptor and the last stamp count.
#[tokio::test]
async fn forks_and_fresh_children_nest() {
    within(async {
        let world = World::with(policies(Mode::DangerFullAccess), |plugins| plugins, |_| {}).await;
        let parent = world.parent().await;
        switch(&parent, Mode::WorkspaceWrite);
        tell(&parent, "say alpha").await;
        let first = fork(&world, &parent, "say beta").await;
        first.result().await;
        switch(&world.child(&first), Mode::ReadOnly);
        let second = fork(&world, &world.child(&first), "write x.txt x; say gamma").await;
        assert_eq!(second.result().await.denials.total, 1);
        let log = world.log(second.child().unwrap());
        assert_eq!(prompts(&log), ["say alpha", "say beta", "write x.txt x; say gamma"]);
        assert_eq!((log.header().depth(), all::<Descriptor>(&log).len()), (2, 2));
        let fresh = world.spawn(&world.child(&second), "write y.txt x; say delta").await;
        assert_eq!(fresh.result().await.denials.total, 1);
        let log = world.log(fresh.child().unwrap());
        assert_eq!((log.header().depth(), log.header().seed_length()), (3, 0));
        assert_eq!(prompts(&log), ["write y.txt x; say delta"]);
        assert!(!world.at("ws/x.txt").exists() && !world.at("ws/y.txt").exists());
        world.app.close().await.unwrap();
    })
    .await;
}

struct NoChildren;

#[async_trait]
impl AgentSetup for NoChildren {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        match agent.session().header().lineage() {
            None => Ok(()),
            Some(_) => Err("not today".into()),
        }
    }
}

// D-11
#[tokio::test]
async fn a_fork_that_fails_leaves_nothing() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        tell(&parent, "say alpha").await;
        world.app.register::<dyn AgentSetup>("no children", Arc::new(NoChildren)).unwrap();
        let (news, names) = (world.news.all(), world.names());
        let error = world.subagents.start(&parent, "fork", Request::new("go")).await.unwrap_err();
        assert!(matches!(error, StartError::Create(agent::CreateError::Setup(_))), "{error}");
        assert_eq!((world.news.all(), world.names()), (news, names));
        let starting = world.subagents.start(&parent, "fork", Request::new("go"));
        parent.dispose().await.unwrap();
        assert!(starting.await.is_err());
        let id = parent.id();
        world.close(&[id]).await;
    })
    .await;
}

// D-20
#[tokio::test]
async fn spawn_and_fork_stand_side_by_side() {
    within(async {
        let world = World::new().await;
        let names: Vec<_> = world.subagents.providers().list().into_iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, ["spawn", "fork"]);
        let parent = world.parent().await;
        tell(&parent, "say alpha").await;
        let runs = tokio::join!(
            world.subagents.start(&parent, "spawn", Request::new("say fresh")),
            world.subagents.start(&parent, "fork", Request::new("say forked")),
        );
        let (spawned, forked) = (runs.0.unwrap(), runs.1.unwrap());
        assert_eq!((spawned.result().await.text(), forked.result().await.text()), ("fresh".into(), "forked".into()));
        assert_eq!(prompts(&world.log(spawned.child().unwrap())), ["say fresh"]);
        assert_eq!(prompts(&world.log(forked.child().unwrap())), ["say alpha", "say forked"]);
        let descriptors = [&spawned, &forked].map(|run| {
            let log = world.log(run.child().unwrap());
            log.latest::<Descriptor>().unwrap().provider.to_string()
        });
        assert_eq!(descriptors, ["spawn", "fork"]);
        world.app.close().await.unwrap();
    })
    .await;
}
