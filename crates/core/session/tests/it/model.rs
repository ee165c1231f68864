//! Any sequence of appends, forks, spawns and reopenings, beside plain vectors that do the same.

use std::sync::Arc;

use llm::Message;
use proptest::prelude::*;
use session::*;

use crate::support::*;

#[derive(Clone, Debug)]
enum Op {
    Note(u32),
    /// So many at once: past the width of a leaf.
    Notes(u32),
    Mode(u8),
    Said(u8),
    Start,
    End,
    Accept,
    /// One that waits, by its place in the queue; or nothing.
    Claim(usize),
    Discard(usize),
    /// The messages are asked for, which a log that was read projects now.
    Ask,
    Fork,
    Spawn,
    Reopen,
}

/// What a session should be.
#[derive(Clone, Debug, Default)]
struct Plain {
    events: Vec<Fact>,
    seed: usize,
    first_live: usize,
    depth: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Fact {
    Note(u32),
    Mode(String),
    Said(String),
    Start,
    End,
    Interrupted,
    Accepted(u64),
    Claimed(Vec<u64>),
    Discarded(Vec<u64>),
    EndSeed,
}

impl Plain {
    fn closed(&self) -> usize {
        let ends = |fact: &Fact| matches!(fact, Fact::End | Fact::Interrupted);
        self.events.iter().rposition(ends).map_or(0, |at| at + 1)
    }

    fn pending(&self) -> Vec<u64> {
        let mut waiting = Vec::new();
        for fact in &self.events[self.seed..] {
            match fact {
                Fact::Accepted(id) => waiting.push(*id),
                Fact::Claimed(ids) | Fact::Discarded(ids) => waiting.retain(|id| !ids.contains(id)),
                _ => {}
            }
        }
        waiting
    }

    fn mode(&self) -> Option<String> {
        self.events.iter().rev().find_map(|fact| match fact {
            Fact::Mode(mode) => Some(mode.clone()),
            _ => None,
        })
    }

    /// `None` while nothing has happened in a child: it was not born.
    fn reopened(&self) -> Option<Self> {
        if self.depth > 0 && self.events.len() <= self.seed {
            return None;
        }
        let mut again = Self { first_live: self.events.len(), ..self.clone() };
        let open = &self.events[self.closed()..];
        let claimed = open.iter().map(|fact| if let Fact::Claimed(ids) = fact { ids.len() } else { 0 }).sum();
        let begun = open.contains(&Fact::Start);
        if begun || claimed > 0 {
            again.events.extend((!begun).then_some(Fact::Start));
            again.events.extend(std::iter::repeat_n(Fact::Said("wait".to_owned()), claimed));
            again.events.push(Fact::Interrupted);
        }
        Some(again)
    }

    fn child(&self, seed: Seed) -> Self {
        let seeded = if seed == Seed::Fresh { 0 } else { self.closed() };
        let mut events = self.events[..seeded].to_vec();
        events.extend((seeded > 0).then_some(Fact::EndSeed));
        events.extend(self.mode().map(Fact::Mode));
        Self { events, seed: seeded, first_live: seeded, depth: self.depth + 1 }
    }
}

struct Down;

impl Contributor for Down {
    fn contribute(&self, parent: &Snapshot, stamps: &mut Stamps) {
        if let Some(latest) = parent.latest::<Mode>() {
            stamps.add(latest.clone());
        }
    }
}

fn apply(op: &Op, session: &Session, plain: &mut Plain) {
    let waiting = plain.pending();
    let chosen = |place: &usize| waiting.get(place % waiting.len().max(1)).copied();
    let next = plain.events.len() as u64;
    match op {
        Op::Note(n) => {
            session.append(Note { n: *n }).unwrap();
            plain.events.push(Fact::Note(*n));
        }
        Op::Notes(many) => {
            for n in 0..*many {
                session.append(Note { n }).unwrap();
                plain.events.push(Fact::Note(n));
            }
        }
        Op::Mode(n) => {
            session.append(mode(&n.to_string())).unwrap();
            plain.events.push(Fact::Mode(n.to_string()));
        }
        Op::Said(n) => {
            user(session, &n.to_string());
            plain.events.push(Fact::Said(n.to_string()));
        }
        Op::Start => {
            session.append(TurnStart { turn: 1 }).unwrap();
            plain.events.push(Fact::Start);
        }
        Op::End => {
            session.append(TurnEnd { turn: 1, reason: TurnReason::Completed }).unwrap();
            plain.events.push(Fact::End);
        }
        Op::Accept => {
            assert_eq!(accepted(session, "wait"), MessageId(next));
            plain.events.push(Fact::Accepted(next));
        }
        Op::Claim(place) => {
            let ids: Vec<u64> = chosen(place).into_iter().collect();
            session.append(InboxClaimed { ids: ids.iter().map(|id| MessageId(*id)).collect() }).unwrap();
            plain.events.push(Fact::Claimed(ids));
        }
        Op::Discard(place) => {
            let ids: Vec<u64> = chosen(place).into_iter().collect();
            let named = ids.iter().map(|id| MessageId(*id)).collect();
            session.append(InboxDiscarded { ids: named, cause: "test".into() }).unwrap();
            plain.events.push(Fact::Discarded(ids));
        }
        Op::Ask => drop(session.messages().unwrap()),
        Op::Fork | Op::Spawn | Op::Reopen => unreachable!("these make sessions"),
    }
}

fn fact(event: &Event) -> Fact {
    let ids = |ids: &[MessageId]| ids.iter().map(|id| id.0).collect();
    if let Some(Note { n }) = event.get() {
        Fact::Note(*n)
    } else if let Some(Mode { mode, .. }) = event.get() {
        Fact::Mode(mode.clone())
    } else if let Some(UserMessage { message, .. }) = event.get() {
        Fact::Said(message.text())
    } else if event.get::<TurnStart>().is_some() {
        Fact::Start
    } else if let Some(TurnEnd { reason, .. }) = event.get() {
        if *reason == TurnReason::Interrupted { Fact::Interrupted } else { Fact::End }
    } else if let Some(InboxAccepted { id, .. }) = event.get() {
        Fact::Accepted(id.0)
    } else if let Some(InboxClaimed { ids: claimed }) = event.get() {
        Fact::Claimed(ids(claimed))
    } else if let Some(InboxDiscarded { ids: discarded, .. }) = event.get() {
        Fact::Discarded(ids(discarded))
    } else {
        assert!(event.get::<EndSeed>().is_some(), "{event:?}");
        Fact::EndSeed
    }
}

fn check(session: &Session, plain: &Plain) {
    let log = session.snapshot();
    let facts: Vec<Fact> = log.events().iter().map(fact).collect();
    assert_eq!(facts, plain.events);
    assert!(log.events().iter().map(Event::seq).eq(0..plain.events.len() as u64));
    let header = session.header();
    assert_eq!((header.seed_length(), header.depth()), (plain.seed as u64, plain.depth));
    assert_eq!((session.first_live_seq(), log.closed_len()), (plain.first_live as u64, plain.closed() as u64));
    let last = |wanted: fn(&Fact) -> bool| plain.events.iter().rposition(wanted).map(|at| at as u64);
    assert_eq!(log.latest_event::<Note>().map(Event::seq), last(|fact| matches!(fact, Fact::Note(_))));
    assert_eq!(log.latest_event::<Mode>().map(Event::seq), last(|fact| matches!(fact, Fact::Mode(_))));
    assert_eq!(log.latest_event::<UserMessage>().map(Event::seq), last(|fact| matches!(fact, Fact::Said(_))));
    assert_eq!(log.latest_event::<TurnStart>().map(Event::seq), last(|fact| matches!(fact, Fact::Start)));
    assert_eq!(log.latest_event::<EndSeed>().map(Event::seq), last(|fact| matches!(fact, Fact::EndSeed)));
    assert_eq!(session.pending().iter().map(|waiting| waiting.id.0).collect::<Vec<_>>(), plain.pending());
}

/// Asked of a copy, so that a log that was read stays unprojected until an operation asks.
fn check_messages(messages: impl Iterator<Item = Arc<Message>>, plain: &Plain) {
    let said = plain.events.iter().filter_map(|fact| match fact {
        Fact::Said(text) => Some(text.clone()),
        _ => None,
    });
    assert!(messages.map(|message| message.text()).eq(said));
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0u32..100).prop_map(Op::Note),
        1 => (1u32..80).prop_map(Op::Notes),
        3 => any::<u8>().prop_map(Op::Mode),
        3 => any::<u8>().prop_map(Op::Said),
        3 => Just(Op::Start),
        3 => Just(Op::End),
        3 => Just(Op::Accept),
        2 => any::<usize>().prop_map(Op::Claim),
        1 => any::<usize>().prop_map(Op::Discard),
        1 => Just(Op::Ask),
        3 => Just(Op::Fork),
        1 => Just(Op::Spawn),
        3 => Just(Op::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// D-01, D-05, D-08, D-28: and no session ever shows what another did after they parted.
    #[test]
    fn a_log_behaves_like_a_vector(ops in proptest::collection::vec((op(), any::<prop::sample::Index>()), 1..60)) {
        let house = house();
        let _down = house.register_contributor("down", Arc::new(Down)).unwrap();
        let mut all = vec![(house.create("/abs"), Plain::default())];
        for (op, which) in &ops {
            let which = which.index(all.len());
            let (session, plain) = &mut all[which];
            match op {
                Op::Fork => {
                    let child = (fork(session), plain.child(Seed::ClosedTurns));
                    all.push(child);
                }
                Op::Spawn => {
                    let child = (spawn(session), plain.child(Seed::Fresh));
                    all.push(child);
                }
                Op::Reopen => {
                    let decoded = house.vocabulary().decode(text(&session.snapshot())).unwrap();
                    match (house.resume(decoded), plain.reopened()) {
                        (Ok(session), Some(plain)) => all.push((session, plain)),
                        (Err(ResumeError::Unborn), None) => {}
                        other => panic!("{other:?}"),
                    }
                }
                op => apply(op, session, plain),
            }
            let (session, plain) = all.last().unwrap();
            check(session, plain);
        }
        for (session, plain) in &all {
            check(session, plain);
            check_messages(session.snapshot().messages().unwrap().iter().cloned(), plain);
            check_messages(session.messages().unwrap().iter().cloned(), plain);
            let written = text(&session.snapshot());
            prop_assert_eq!(text(house.vocabulary().decode(written.as_str()).unwrap().log()), written);
        }
    }
}
