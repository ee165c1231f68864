//! What is compared with the model, in memory and in what would survive.

use policy_audit::{Code, Finding, Scope, Stored, audit, check_child};
use sandbox_policy::{ModeCause, ModeSet};
use session::{EndSeed, Payload, SessionId, Snapshot, Source, StepStart, UserMessage};
use session_store::SessionStore;
use subagent::Descriptor;
use user_approval::{ApprovalAsked, ApprovalDecided, PolicyCause, PolicySet};

use super::model::Expected;
use super::world::World;

/// What a child is told of its scope begins so.
const TOLD: &str = "Delegated task:";

impl World {
    pub(crate) async fn check(&self) {
        for live in &self.live {
            let id = live.agent.id();
            let (log, expected) = (live.agent.session().snapshot(), &self.model.known[&id]);
            assert_eq!(self.app.policy.effective(live.agent.session()), expected.mode(self.default), "{id}");
            self.check_log(&log, expected).await;
        }
        let vocabulary = self.app.sessions.vocabulary();
        let kept = self.store.list(&vocabulary).await.unwrap();
        let kept: Vec<SessionId> = kept.iter().map(|row| row.id).collect();
        let known: Vec<SessionId> = self.model.known.keys().copied().collect();
        assert_eq!(kept, known, "whoever was announced is kept, and nobody else");
        assert_eq!(*self.app.yes.0.lock().unwrap(), self.must_ask, "nobody else was asked about");
    }

    async fn check_log(&self, log: &Snapshot, expected: &Expected) {
        let header = log.header();
        assert_eq!(of::<ModeSet, _>(log, |set| set.mode), expected.modes);
        assert_eq!(of::<PolicySet, _>(log, |set| set.policy), expected.policies);
        let asked = of::<ApprovalAsked, _>(log, |asked| asked.request_id.0);
        let decided = of::<ApprovalDecided, _>(log, |decided| decided.request_id.0);
        assert_eq!(ids(asked), ids(decided), "every ask has its pair");
        let Some(lineage) = &expected.lineage else {
            assert!(header.lineage().is_none() && header.depth() == 0);
            assert_eq!(told(log), 0);
            return assert_eq!(check_child(None, log), []);
        };
        let written = header.lineage().expect("it has a parent");
        assert_eq!((written.parent(), written.parent_seq()), (lineage.parent, lineage.parent_seq));
        assert_eq!((header.depth(), header.seed_length()), (lineage.depth, lineage.seed_length));
        check_birth(log, lineage.seed_length);
        let has_stepped = log.events_from(lineage.seed_length).any(|event| event.get::<StepStart>().is_some());
        assert!(!has_stepped || told(log) == 1, "a child knows its scope from its first step on");
        let parent = self.read(lineage.parent).await;
        assert!(parent.len() >= lineage.parent_seq, "the parent is kept through the capture");
        assert_eq!(kinds(&check_child(Some(&parent), log)), expected.widened);
    }

    /// What somebody has who has only the file.
    pub(crate) async fn read(&self, id: SessionId) -> Snapshot {
        let reading = self.store.read(&self.app.sessions.vocabulary(), id).await.unwrap();
        reading.decoded.log().clone()
    }

    /// After a crash: what was flushed is there, and with it everything that delegation rests on.
    pub(crate) async fn forget_what_was_lost(&mut self) {
        let ids: Vec<SessionId> = self.model.known.keys().copied().collect();
        for id in ids {
            let len = self.read(id).await.len();
            let expected = self.model.known.get_mut(&id).unwrap();
            if let Some(lineage) = expected.lineage {
                let born = expected.policies.iter().find(|(seq, _)| *seq >= lineage.seed_length).unwrap().0;
                assert!(len > born + 1, "a child that was announced has its stamps and its descriptor");
            }
            expected.cut(len);
        }
        self.audit().await;
    }

    async fn audit(&self) {
        let vocabulary = self.app.sessions.vocabulary();
        let report = audit(&Stored::new(&self.store, vocabulary), Scope::All).await.unwrap();
        assert!(report.unplaced.is_empty() && report.sessions.len() == self.model.known.len());
        for audited in report.sessions {
            assert_eq!(kinds(&audited.findings), self.model.known[&audited.session].widened, "{}", audited.session);
        }
    }

    /// Everybody leaves, and the logs still tell the same.
    pub(crate) async fn finish(mut self) {
        self.live.clear();
        self.app.scope.close().await.unwrap();
        assert!(self.app.agents.list().is_empty(), "nobody is left");
        let told = {
            let news = self.app.news.lock().unwrap();
            (news.started.len(), news.ended.len())
        };
        assert_eq!(told.0, told.1, "each start has its end");
        self.audit().await;
    }
}

/// What a child's own log begins with, and nothing but its stamps says that a delegation wrote it.
fn check_birth(log: &Snapshot, seed: u64) {
    let mut own = log.events_from(seed).peekable();
    let is_end = |event: &&session::Event| event.get::<EndSeed>().is_some();
    assert_eq!(own.next_if(is_end).is_some(), seed > 0);
    own.next_if(|event| event.get::<ModeSet>().is_some_and(|set| set.source == Some(ModeCause::Delegation)));
    let pin = own.next().and_then(|event| event.get::<PolicySet>()).expect("it is pinned");
    assert_eq!(pin.source, Some(PolicyCause::Delegation));
    assert!(own.next().is_some_and(|event| event.get::<Descriptor>().is_some()));
    let handed_down = |event: &session::Event| {
        event.get::<ModeSet>().is_some_and(|set| set.source == Some(ModeCause::Delegation))
            || event.get::<PolicySet>().is_some_and(|set| set.source == Some(PolicyCause::Delegation))
    };
    assert!(!own.any(handed_down));
}

fn of<E: Payload, T>(log: &Snapshot, what: impl Fn(&E) -> T) -> Vec<(u64, T)> {
    log.events().iter().filter_map(|event| Some((event.seq(), what(event.get::<E>()?)))).collect()
}

fn ids<T: Ord>(all: Vec<(u64, T)>) -> Vec<T> {
    let mut ids: Vec<T> = all.into_iter().map(|(_, id)| id).collect();
    ids.sort();
    ids
}

/// How often what the model was last told says that its scope is fixed.
fn told(log: &Snapshot) -> usize {
    let said = log.events().iter().rev().filter_map(|event| event.get::<UserMessage>());
    let mut facts = said.filter(|message| message.source == Source::RuntimeContext);
    facts.next().map_or(0, |message| message.message.text().matches(TOLD).count())
}

fn kinds(findings: &[Finding]) -> Vec<(u64, Code)> {
    let mut kinds: Vec<_> = findings.iter().map(|found| (found.seq.unwrap_or(u64::MAX), found.code)).collect();
    kinds.sort();
    kinds
}
