//! Random interleavings of everything that moves policy, against a model of what must hold.
//!
//! A case is a list of operations over the real crates: a whole app with real files, whose store keeps what was flushed
//! and nothing else, so that a crash is the worst one. After every operation each log is compared with the model, which
//! knows nothing but the rules. `PROPTEST_CASES` sets how many cases each test runs; a failure prints the shortest list
//! of operations that shows it, and `PROPTEST_RNG_SEED` repeats a run.

mod checks;
mod model;
mod play;
mod world;

use std::time::Duration;

use proptest::prelude::*;
use sandbox::Mode;
use user_approval::Policy;

use world::World;

/// Only a case that hangs meets it. Many do while one is made shorter.
const DEADLINE: Duration = Duration::from_secs(20);

/// One step of a case. Numbers choose among what is there.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// A top-level session, which may record the mode that it starts with.
    Create(Option<Mode>),
    /// Somebody switches a session, a child's own included.
    Switch(u8, Mode),
    Approve(u8, Policy),
    /// The operator changes the deployment's default.
    Default(Mode),
    /// A turn that tries to write inside and outside of the workspace.
    Probe(u8),
    /// A turn that asks for more.
    Ask(u8),
    /// A turn that stays open.
    Open(u8),
    Cancel(u8),
    Delegate {
        parent: u8,
        fork: bool,
        task: Task,
        then: Then,
    },
    /// A child is disposed.
    Dispose(u8),
    /// The process dies, and another one resumes the top-level sessions.
    Crash,
}

/// What a child is asked to do.
#[derive(Clone, Copy, Debug)]
enum Task {
    Probe,
    Ask,
    Hang,
    /// To have a child of its own probe.
    Delegate,
    /// The same with one that sees its conversation.
    DelegateFork,
}

/// What happens between the call and the first poll.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Switch(Mode),
    Approve(Policy),
    /// The start is dropped.
    Drop,
    /// It is dropped after so many polls.
    DropAfter(u8),
    Cancel,
    /// The parent is disposed.
    EndParent,
}

fn mode() -> impl Strategy<Value = Mode> + Clone {
    prop_oneof![Just(Mode::ReadOnly), Just(Mode::WorkspaceWrite), Just(Mode::DangerFullAccess)]
}

fn policy() -> impl Strategy<Value = Policy> + Clone {
    prop_oneof![Just(Policy::Ask), Just(Policy::Never)]
}

fn delegate() -> impl Strategy<Value = Op> {
    let task = prop_oneof![
        3 => Just(Task::Probe),
        1 => Just(Task::Ask),
        2 => Just(Task::Hang),
        1 => Just(Task::Delegate),
        1 => Just(Task::DelegateFork),
    ];
    let then = prop_oneof![
        4 => Just(Then::Nothing),
        3 => mode().prop_map(Then::Switch),
        1 => policy().prop_map(Then::Approve),
        1 => Just(Then::Drop),
        1 => (0..6_u8).prop_map(Then::DropAfter),
        1 => Just(Then::Cancel),
        1 => Just(Then::EndParent),
    ];
    (any::<u8>(), any::<bool>(), task, then).prop_map(|(parent, fork, task, then)| Op::Delegate {
        parent,
        fork,
        task,
        then,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => prop::option::of(mode()).prop_map(Op::Create),
        4 => (any::<u8>(), mode()).prop_map(|(who, mode)| Op::Switch(who, mode)),
        1 => (any::<u8>(), policy()).prop_map(|(who, policy)| Op::Approve(who, policy)),
        1 => mode().prop_map(Op::Default),
        2 => any::<u8>().prop_map(Op::Probe),
        1 => any::<u8>().prop_map(Op::Ask),
        1 => any::<u8>().prop_map(Op::Open),
        1 => any::<u8>().prop_map(Op::Cancel),
        6 => delegate(),
        1 => any::<u8>().prop_map(Op::Dispose),
        1 => Just(Op::Crash),
    ]
}

fn config() -> ProptestConfig {
    // What the environment says is in the default.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { 1_000 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn play(ops: &[Op]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let played = runtime.block_on(async {
        let case = async {
            let mut world = World::new().await;
            for op in ops {
                world.play(*op).await;
                world.check().await;
            }
            world.finish().await;
        };
        tokio::time::timeout(DEADLINE, case).await
    });
    played.expect("nothing hangs");
}

proptest! {
    #![proptest_config(config())]

    // D-72, D-01…D-12, D-70, D-71
    #[test]
    fn no_interleaving_breaks_a_promise(ops in prop::collection::vec(op(), 1..24)) {
        play(&ops);
    }

    // D-72, D-28: the same from a parent that has a history.
    #[test]
    fn nor_after_a_history(before in prop::collection::vec(mode(), 1..4), ops in prop::collection::vec(op(), 1..16)) {
        let history = before.into_iter().flat_map(|mode| [Op::Switch(0, mode), Op::Probe(0)]);
        let ops: Vec<Op> = history.chain(ops).collect();
        play(&ops);
    }
}
