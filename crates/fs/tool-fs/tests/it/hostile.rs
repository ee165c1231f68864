//! What a repository may hold to lead a search astray, and what a search does not outlive.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use async_trait::async_trait;
use context::Scope;
use fs::{Change, Directory, FileContent, FileSystem, FsError, Kind, Listing, Names, Stat, WriteOutcome};
use sandbox::{Grant, Mode};
use serde_json::json;
use tools::{Call, Runner, code};
use user_approval::Escalation;

use crate::search::stage;
use crate::stage::Stage;

fn said(stage: &Stage, tool: &str, arguments: serde_json::Value) -> String {
    stage.said(&stage.call(tool, arguments))
}

#[test]
fn links_are_named_and_not_followed() {
    let stage = stage(&[("out/secret.txt", "secret\n"), ("ws/sub/in.txt", "secret\n")]);
    symlink("../out", stage.at("ws/out")).unwrap();
    symlink("../out/secret.txt", stage.at("ws/one.txt")).unwrap();
    symlink(".", stage.at("ws/sub/again")).unwrap();
    symlink("turning", stage.at("ws/turning")).unwrap();
    assert_eq!(
        said(&stage, "glob", json!({"pattern": "*"})),
        "file.txt\none.txt@\nout@\nsub/again@\nsub/in.txt\nturning@\n"
    );
    assert_eq!(said(&stage, "grep", json!({"pattern": "secret"})), "sub/in.txt\n1: secret\n");
    // Named, a link leads where `read` and `list` go too.
    assert_eq!(said(&stage, "grep", json!({"pattern": "secret", "path": "out"})), "out/secret.txt\n1: secret\n");
    assert_eq!(said(&stage, "grep", json!({"pattern": "secret", "path": "one.txt"})), "one.txt\n1: secret\n");
    let turning = stage.call("grep", json!({"pattern": "secret", "path": "turning"}));
    assert!(turning.is_error(), "{}", stage.said(&turning));
}

#[test]
fn pipes_are_not_opened() {
    let stage = stage(&[]);
    assert!(Command::new("mkfifo").arg(stage.at("ws/pipe")).arg(stage.at("ws/.gitignore")).status().unwrap().success());
    assert_eq!(said(&stage, "glob", json!({"pattern": "*"})), "file.txt\n");
    assert_eq!(said(&stage, "grep", json!({"pattern": "three"})), "file.txt\n3: three\n");
    let named = stage.call("grep", json!({"pattern": "x", "path": "pipe"}));
    assert_eq!(stage.said(&named), "not a regular file but a named pipe: /ws/pipe");
}

#[test]
fn names_and_texts_may_be_any_bytes() {
    let stage = stage(&[("ws/a\nb.txt", "fine\n"), ("ws/zero", "fine\0"), ("ws/latin", "")]);
    std::fs::write(stage.at("ws").join(OsStr::from_bytes(b"\xff.txt")), "fine\n").unwrap();
    std::fs::write(stage.at("ws/latin"), b"caf\xe9 is fine\n").unwrap();
    assert_eq!(said(&stage, "glob", json!({"pattern": "*.txt"})), "a\\nb.txt\nfile.txt\n\u{fffd}.txt\n");
    let want =
        "a\\nb.txt\n1: fine\n\nlatin\n1: caf\u{fffd} is fine\n\n\u{fffd}.txt\n1: fine\n[not searched: 1 binary]\n";
    assert_eq!(said(&stage, "grep", json!({"pattern": "fine"})), want);
}

#[test]
fn what_is_too_large_is_left_out_and_that_is_said() {
    let deep = format!("ws/{}x.txt", "d/".repeat(65));
    let fits = format!("ws/{}y.txt", "d/".repeat(64));
    let stage = stage(&[(&deep, "end"), (&fits, "end"), ("ws/big", ""), ("ws/line", &"end".repeat(1_000_000))]);
    std::fs::File::options().write(true).open(stage.at("ws/big")).unwrap().set_len(11 * 1024 * 1024).unwrap();
    let want = format!(
        "{}y.txt\n[not searched: 1 larger than 10 MiB, 1 from an overlong line on, 1 deeper than 64 directories]\n",
        "d/".repeat(64)
    );
    assert_eq!(said(&stage, "grep", json!({"pattern": "end", "output": "files"})), format!("{want}"));
    let long = said(&stage, "grep", json!({"pattern": "end", "output": "content", "path": "line"}));
    assert_eq!(long, "[no line matches in 1 files]\n[not searched: 1 from an overlong line on]\n");
}

#[test]
fn hostile_rules_are_not_heeded_and_that_is_said() {
    let many = (0..1001).map(|n| format!("*{n}*a*.txt\n")).collect::<String>();
    let stage = stage(&[("ws/many/.gitignore", &many), ("ws/many/1a.txt", "x"), ("ws/huge/a.txt", "x")]);
    std::fs::write(stage.at("ws/huge/.gitignore"), "*.txt\n".repeat(20_000)).unwrap();
    symlink("../../rules", stage.at("ws/sub/.gitignore")).unwrap();
    let stage = stage.with(&[("rules", "*"), ("ws/sub/a.txt", "x")]);
    let want = "file.txt\nhuge/a.txt\nmany/1a.txt\nsub/a.txt\n[2 .gitignore not heeded: too large or unreadable]\n";
    assert_eq!(said(&stage, "glob", json!({"pattern": "*.txt"})), want);
}

#[test]
fn what_is_tethers_own_is_neither_listed_nor_searched() {
    let files = [("ws/.own/log.txt", "end"), ("ws/own.key", "end"), ("ws/a.txt", "end")];
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let stage = Stage::new(mode, Escalation::Offered).with(&files);
        std::fs::hard_link(stage.at("ws/own.key"), stage.at("ws/twin")).unwrap();
        symlink(".own", stage.at("ws/way")).unwrap();
        let all = json!({"pattern": "*", "include_ignored": true});
        assert_eq!(said(&stage, "glob", all), "a.txt\nfile.txt\nway@\n");
        let end = json!({"pattern": "end", "include_ignored": true});
        assert_eq!(said(&stage, "grep", end), "a.txt\n1: end\n");
        for (tool, path, operation) in [
            ("glob", ".own", "search"),
            ("grep", "way", "search"),
            ("grep", "own.key", "search"),
            ("grep", "twin", "search"),
        ] {
            let denied = stage.call(tool, json!({"pattern": "end", "path": path}));
            assert_eq!(denied.error.as_deref(), Some(code::SANDBOX_DENIED));
            let want =
                format!("sandbox denied: {operation} /ws/{path} (mode {mode})\nTether's own files are not for tools");
            assert_eq!(stage.said(&denied), want);
            let meta: sandbox::Denial = serde_json::from_str(denied.meta.as_ref().unwrap().get()).unwrap();
            assert_eq!(meta.operation, sandbox::Operation::Search);
        }
    }
    let stage = Stage::new(Mode::DangerFullAccess, Escalation::Offered).with(&files);
    assert_eq!(said(&stage, "grep", json!({"pattern": "end", "output": "files"})), ".own/log.txt\na.txt\nown.key\n");
}

/// A directory takes turns with a link that leads out, while it is searched.
#[test]
fn a_link_swapped_in_while_searching_lets_nothing_out() {
    let stage = stage(&[("out/a.txt", "secret\n"), ("ws/way/a.txt", "inside\n"), ("ws/end", "inside\n")]);
    symlink("../out", stage.at("ws/way-out")).unwrap();
    symlink("../out/a.txt", stage.at("ws/end-out")).unwrap();
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut inside = 0;
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let swap = |one: &str, other: &str| {
                let spare = stage.at("ws/spare");
                std::fs::rename(stage.at(one), &spare).unwrap();
                std::fs::rename(stage.at(other), stage.at(one)).unwrap();
                std::fs::rename(&spare, stage.at(other)).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            };
            while !stop.load(Ordering::Relaxed) {
                swap("ws/way", "ws/way-out");
                swap("ws/end", "ws/end-out");
            }
        });
        for _ in 0..500 {
            let output = stage.call("grep", json!({"pattern": "secret|inside"}));
            let said = stage.said(&output);
            if said.contains("secret") || output.is_error() {
                stop.store(true, Ordering::Relaxed);
                panic!("{said}");
            }
            inside += usize::from(said.contains("way/a.txt") || said.contains("way-out/a.txt"));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(inside > 0 && swaps.into_inner() > 0, "{inside}");
}

/// Directories without end, the first of which waits to be let go.
struct Endless {
    asked: Arc<AtomicUsize>,
    began: mpsc::Sender<()>,
    go: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Directory for Endless {
    fn path(&self) -> &Path {
        Path::new("/w")
    }

    fn entries(&self, _: usize) -> Result<Names, FsError> {
        if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
            self.began.send(()).unwrap();
            self.go.lock().unwrap().recv().unwrap();
        }
        Ok(Names { names: vec![("a".into(), Kind::Directory), ("b".into(), Kind::Directory)], truncated: false })
    }

    fn directory(&self, _: &OsStr) -> Result<Box<dyn Directory>, FsError> {
        Ok(Box::new(Self { asked: self.asked.clone(), began: self.began.clone(), go: self.go.clone() }))
    }

    fn read(&self, name: &OsStr, _: u64) -> Result<Vec<u8>, FsError> {
        Err(FsError::NotFound(name.into()))
    }
}

struct Files(Mutex<Option<Endless>>);

#[async_trait]
impl FileSystem for Files {
    fn root(&self) -> &Path {
        Path::new("/elsewhere")
    }

    fn mode(&self) -> Mode {
        Mode::ReadOnly
    }

    async fn read(&self, _: &str, _: u64) -> Result<FileContent, FsError> {
        Err(FsError::Closing)
    }

    async fn write(&self, _: &str, _: Vec<u8>, _: Option<&Grant>) -> Result<WriteOutcome, FsError> {
        Err(FsError::Closing)
    }

    async fn update(&self, _: &str, _: Change, _: Option<&Grant>) -> Result<WriteOutcome, FsError> {
        Err(FsError::Closing)
    }

    async fn list(&self, _: &str, _: usize) -> Result<Listing, FsError> {
        Err(FsError::Closing)
    }

    async fn directory(&self, _: &str) -> Result<Box<dyn Directory>, FsError> {
        Ok(Box::new(self.0.lock().unwrap().take().unwrap()))
    }

    async fn stat(&self, _: &str) -> Result<Stat, FsError> {
        Err(FsError::Closing)
    }
}

#[test]
fn a_search_that_nobody_waits_for_ends() {
    let stage = stage(&[]);
    for tool in ["glob", "grep"] {
        let (began, begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel();
        let asked = Arc::new(AtomicUsize::new(0));
        let endless = Endless { asked: asked.clone(), began, go: Arc::new(Mutex::new(may_go)) };
        stage.run(async {
            let app = Scope::root("other");
            context::Plugins::new().with(tool_fs::FsTools, Default::default()).start(&app).await.unwrap();
            app.provide::<dyn FileSystem>(Arc::new(Files(Mutex::new(Some(endless))))).unwrap();
            let call = Call::new(&app, stage.session.clone(), tool, r#"{"pattern":"a*"}"#);
            let (cancel, runner) = (call.cancelled.clone(), Runner::new(app.realm()));
            let mut runner = runner;
            let wait = app.spawn_blocking("wait until it began", move || begun.recv().unwrap()).unwrap();
            let (output, ()) = tokio::join!(runner.run(call), async {
                wait.await.unwrap();
                cancel.cancel();
            });
            assert_eq!(output.error.as_deref(), Some(code::CANCELLED), "{tool}: {}", output.to_text());
            go.send(()).unwrap();
            app.close().await.unwrap();
        });
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{tool} went on");
        assert_eq!(Arc::strong_count(&asked), 1, "{tool} is still held: it was not joined");
    }
}
