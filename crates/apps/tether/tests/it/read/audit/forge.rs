use std::fs;
use std::path::PathBuf;
use std::process::Command;

use sandbox::Mode;
use sandbox_policy::ModeSet;
use serde_json::{Value, json};
use session::{Seed, TurnReason};
use tempfile::TempDir;

use crate::read::world::{in_world, turn};
use crate::run::process::Ran;
use crate::run::world::World;

/// A home with logs, which somebody then changes.
pub(super) struct Forge {
    dir: TempDir,
    /// The sessions, parents before children: `TOP`, `A`, `B`.
    ids: Vec<String>,
}

/// A finding: whose, what, where.
pub(super) type Found<'a> = (&'a str, &'a str, Option<u64>);

const NAMES: [&str; 4] = ["TOP", "A", "B", "C"];

impl Forge {
    /// Three sessions below each other, under an override, as `tether run` leaves them.
    pub(super) fn family() -> Self {
        Self::ran("", &["--sandbox", "workspace-write", "spawn A { spawn B { say hello } }"])
    }

    /// The same without any override.
    pub(super) fn unswitched() -> Self {
        Self::ran("[sandbox]\ninitial_override = false\n", &["spawn A { spawn B { say hello } }"])
    }

    /// A parent whose child worked in the background and was read before the end.
    pub(super) fn background() -> Self {
        let read = r#"call job_output {"job":"job-1","wait_ms":60000}"#;
        Self::ran("", &["--sandbox", "read-only", &format!("spawn A in background {{ say one }}; {read}; say done")])
    }

    pub(super) fn ran(config: &str, args: &[&str]) -> Self {
        let world = World::new();
        world.config(config);
        world.tether(&[&["run"], args].concat()).ended(0);
        Self::of(world.path("home/sessions"))
    }

    /// A parent with a closed turn, and a fork of it with a child of its own, as `tether run` leaves them.
    pub(super) fn forked() -> Self {
        let world = World::new();
        let id = world.tether(&["run", "--json", "say one"]).ended(0).id();
        world.tether(&["run", "--resume", &id, "fork A { spawn B { say hello } }"]).ended(0);
        Self::of(world.path("home/sessions"))
    }

    /// A parent with a child, and then a fork of it, whose copy names that child.
    pub(super) fn forked_behind_a_child() -> Self {
        let world = World::new();
        let id = world.tether(&["run", "--json", "spawn A { say one }"]).ended(0).id();
        world.tether(&["run", "--resume", &id, "fork B { say two }"]).ended(0);
        Self::of(world.path("home/sessions"))
    }

    /// A parent with two closed turns and an open one, and a fork of it with a fork of its own.
    pub(super) async fn forks() -> Self {
        let mut forge = None;
        in_world(async |world| {
            let top = world.top().await;
            top.append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
            turn(&top, 1, TurnReason::Completed);
            turn(&top, 2, TurnReason::Completed);
            top.append(session::TurnStart { turn: 3 }).unwrap();
            let fork = world.child(&top, "A", Seed::ClosedTurns).await;
            turn(&fork, 3, TurnReason::Completed);
            let deeper = world.child(&fork, "B", Seed::ClosedTurns).await;
            turn(&deeper, 4, TurnReason::Completed);
            for session in [deeper, fork, top] {
                session.release().await.unwrap();
            }
            forge = Some(Self::of(world.dir.path().join("home/sessions")));
        })
        .await;
        forge.unwrap()
    }

    /// A copy of the logs there.
    fn of(sessions: PathBuf) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut forge = Self { dir, ids: Vec::new() };
        fs::create_dir_all(forge.dir.path().join("home/sessions")).unwrap();
        let mut names: Vec<_> = fs::read_dir(sessions).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        names.sort();
        for path in names {
            fs::copy(&path, forge.dir.path().join("home/sessions").join(path.file_name().unwrap())).unwrap();
            forge.ids.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
        forge
    }

    pub(super) fn id(&self, name: &str) -> &str {
        &self.ids[NAMES.iter().position(|known| *known == name).unwrap()]
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("home/sessions/{}.jsonl", self.id(name)))
    }

    pub(super) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Puts a log there that nobody wrote.
    pub(super) fn add(&mut self, id: &str, text: &str) {
        self.ids.push(id.to_owned());
        fs::write(self.dir.path().join(format!("home/sessions/{id}.jsonl")), text).unwrap();
    }

    /// Changes the first line.
    pub(super) fn header(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        let log = self.log(name);
        let (header, events) = log.split_once('\n').unwrap();
        let mut header = serde_json::from_str(header).unwrap();
        edit(&mut header);
        self.write(name, format!("{header}\n{events}"));
    }

    /// Changes the events, lines without their `seq`, which are counted anew.
    pub(super) fn events(&self, name: &str, edit: impl FnOnce(&mut Vec<String>)) {
        let log = self.log(name);
        let (header, events) = log.split_once('\n').unwrap();
        let without_seq = |line: &str| line.split_once(',').unwrap().1.to_owned();
        let mut events = events.lines().map(without_seq).collect();
        edit(&mut events);
        let numbered = events.iter().enumerate().map(|(seq, line)| format!("{{\"seq\":{seq},{line}\n"));
        self.write(name, format!("{header}\n{}", numbered.collect::<String>()));
    }

    /// The `seq` of the first event of this type.
    pub(super) fn first(&self, name: &str, tag: &str) -> usize {
        let tag = format!("\"type\":\"{tag}\"");
        self.log(name).lines().skip(1).position(|line| line.contains(&tag)).unwrap()
    }

    /// The last event's `seq` plus one.
    pub(super) fn len(&self, name: &str) -> u64 {
        self.log(name).lines().count() as u64 - 1
    }

    pub(super) fn audit(&self, args: &[&str]) -> Ran {
        self.tether(&[&["policy", "audit"], args].concat())
    }

    pub(super) fn tether(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
        let dir = self.dir.path();
        command.args(args).current_dir(dir).env_clear().env("TZ", "UTC");
        command.env("TETHER_HOME", dir.join("home")).env("HOME", dir).env("XDG_CONFIG_HOME", dir.join("config"));
        Ran::of(command)
    }

    /// A text with names in the place of ids.
    pub(super) fn named(&self, text: &str) -> String {
        let named = |text: String, (id, name): (&String, &&str)| text.replace(&**id, name);
        self.ids.iter().zip(&NAMES).fold(text.replace(self.dir.path().to_str().unwrap(), ""), named)
    }

    /// An audit of everything finds this and nothing else, in both forms, and says so by its status.
    #[track_caller]
    pub(super) fn check(&self, expected: &[Found<'_>]) {
        self.check_below(&[], expected);
    }

    #[track_caller]
    pub(super) fn check_below(&self, args: &[&str], expected: &[Found<'_>]) {
        let status = if expected.is_empty() { 0 } else { 1 };
        let ran = self.audit(&[args, &["--json"]].concat()).ended(status);
        let mut lines = ran.json();
        let result = lines.pop().unwrap();
        let mut found = Vec::new();
        for line in &lines {
            let session = self.named(line["session"].as_str().unwrap());
            for finding in line["findings"].as_array().unwrap() {
                let message = finding["message"].as_str().unwrap();
                assert!(!message.is_empty() && !message.contains('\n'), "{finding}");
                found.push((session.clone(), finding["code"].as_str().unwrap().to_owned(), finding["seq"].as_u64()));
            }
        }
        let expected: Vec<_> = expected.iter().map(|(who, code, seq)| ((*who).into(), (*code).into(), *seq)).collect();
        assert_eq!(found, expected, "{}", ran.stdout);
        assert_eq!(result, json!({ "type": "result", "sessions": lines.len(), "violations": found.len() }));

        let told = self.audit(args).ended(status);
        let crosses: Vec<&str> = told.stdout.lines().filter(|line| line.contains('✗')).collect();
        assert_eq!(crosses.len(), found.len(), "{}", told.stdout);
        for (line, (_, code, seq)) in crosses.iter().zip(&found) {
            let at = seq.map_or_else(String::new, |seq| format!("seq {seq} "));
            assert!(line.contains(&format!("✗ {at}{code}: ")), "{line}");
        }
    }
}

/// A policy event as a line without its `seq`.
pub(super) fn mode(mode: &str, source: &str) -> String {
    event("sandbox/mode", set(json!({ "mode": mode }), source))
}

pub(super) fn policy(policy: &str, source: &str) -> String {
    event("approval/policy", set(json!({ "policy": policy }), source))
}

pub(super) fn event(tag: &str, data: Value) -> String {
    format!("\"time\":1790000000000,\"type\":\"{tag}\",\"data\":{data}}}")
}

fn set(mut data: Value, source: &str) -> Value {
    if source != "user" {
        data["source"] = source.into();
    }
    data
}
