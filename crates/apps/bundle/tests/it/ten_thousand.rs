//! What ten thousand children leave: nothing. Measured in a process of their own, since every other test would count.

#![expect(clippy::print_stdout, reason = "one process tells another that it came to its end")]

use std::process::Command;
use std::sync::Arc;

use sandbox::Mode;
use sandbox_policy::ModeSet;
use subagent::{Request, Subagents};

use super::support::{App, until, within};

const ROLE: &str = "BUNDLE_TEST_TEN_THOUSAND";
const CHILDREN: usize = 10_000;
/// Until what is kept for the next child is there: stacks, buffers, the allocator's own.
const WARM_UP: usize = 3_000;
/// Kept on disk, which costs the disk's time: enough to see one file or task that stays.
const DURABLE: usize = 500;
/// What may come and go with a busy machine does so in one of several laps; a leak is in all of them.
const LAPS: usize = 3;

/// What this process has of its own.
#[derive(Clone, Copy, Debug)]
struct Has {
    resident: usize,
    files: usize,
}

impl Has {
    fn now() -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
        Self { resident: pages * 4_096, files }
    }
}

struct Spawning {
    app: App,
    subagents: Arc<Subagents>,
}

impl Spawning {
    fn new(app: App) -> Self {
        let subagents = app.scope.get().unwrap();
        Self { app, subagents }
    }

    /// Comes back when their tasks are gone, and their parent's, which end soon after it is disposed of.
    async fn children(&self, count: usize) {
        let before = alive_tasks();
        let parent = self.app.agent().await;
        parent.session().append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        for _ in 0..count {
            let run = self.subagents.start(&parent, "spawn", Request::new("do it")).await.unwrap();
            run.result().await;
            run.dispose().await.unwrap();
        }
        parent.dispose().await.unwrap();
        until(|| alive_tasks() <= before).await;
    }
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[test]
fn they_leave_no_memory_no_task_and_no_file() {
    let me = std::env::current_exe().unwrap();
    let mut command = Command::new(me);
    command.args(["ten_thousand::in_a_process_of_their_own", "--exact", "--nocapture", "--test-threads=1"]);
    let output = command.env(ROLE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("laps are over"), "it did not run: {said}");
}

/// Not a test, but for the one above.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_process_of_their_own() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let spawning = Spawning::new(App::new().await);
    within(spawning.children(WARM_UP)).await;
    let mut growth = Vec::new();
    for _ in 0..LAPS {
        let before = Has::now();
        within(spawning.children(CHILDREN)).await;
        let after = Has::now();
        assert_eq!(before.files, after.files, "open files");
        growth.push(after.resident as f64 / before.resident as f64);
    }
    assert!(growth.iter().any(|growth| *growth <= 1.05), "resident memory grew by these factors: {growth:?}");
    spawning.app.close().await;

    let (app, disk) = App::on_disk().await;
    let folder = disk.store.path(app.session().id()).parent().unwrap().to_owned();
    let spawning = Spawning::new(app);
    within(spawning.children(10)).await;
    let before = Has::now();
    within(spawning.children(DURABLE)).await;
    let after = Has::now();
    assert_eq!(before.files, after.files, "open files");
    spawning.app.close().await;
    disk.store.close().await;
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let (logs, others): (Vec<_>, Vec<_>) = names.partition(|name| name.ends_with(".jsonl"));
    assert_eq!((logs.len(), others), (DURABLE + 10 + 2, Vec::new()), "a log a session, and nothing else");
    // Between the harness's own words.
    println!("\nlaps are over");
}
