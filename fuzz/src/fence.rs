//! A fence that many hands pull at: what an agent asks of it, and what an unconfined process moves meanwhile.

mod meddle;
mod script;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use context::Scope;
use fs::{Change, FileSystem, FsError};
use fs_sandbox::{Fence, Fences};
use sandbox::{Grant, Mode, ModeSource, Operation, Workspace};

use self::meddle::Meddle;
use self::script::{Line, Verb};
use crate::oracle::{Did, Places, Rules, is_plain};
use crate::world::{Id, Picture, World, run};

/// Protected in every world, relative to the root.
const PROTECTED: &str = "ci/deploy.sh";

/// How many lines are done.
const MOST_LINES: usize = 48;

/// How many entries are looked at, and how much of a file.
const MOST_ENTRIES: usize = 64;
const MOST_BYTES: u64 = 1 << 20;

/// Runs `data` as a script, a line an operation; the README has the words. What is none of them is skipped.
///
/// # Panics
///
/// If anything changed that may not, anything of Tether's own was read, or an error is not one of the kinds that there are.
pub fn fence(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let world = Arc::new(World::new());
    let lines = text.lines().take(MOST_LINES).filter_map(|line| script::parse(line, world.top()));
    let mut lines = lines.collect::<Vec<_>>().into_iter().peekable();
    let mut home = "home";
    while let Some(line) = lines.next_if(Line::is_before) {
        match line {
            Line::HomeInside => home = "ws/.home",
            Line::Git(setting) => setting.write(&world),
            Line::Meddle(meddle) => meddle.happen(world.top()),
            Line::During(_) | Line::Switch(_) | Line::Grant | Line::Ask(..) => {}
        }
    }
    let Some(mut stage) = Stage::open(world, home) else { return };
    for line in lines {
        match line {
            Line::Ask(verb, path) => stage.ask(verb, &path),
            Line::Meddle(meddle) => {
                meddle.happen(stage.world.top());
                stage.now = stage.world.picture();
            }
            Line::During(meddle) => stage.during.push_back(meddle),
            Line::Switch(mode) => stage.mode.0.store(mode as usize, Ordering::SeqCst),
            Line::Grant => stage.grant = Some(Grant::new(Mode::WorkspaceWrite)),
            // Those are for a fence that is not open yet.
            Line::HomeInside | Line::Git(_) => {}
        }
    }
    stage.close();
}

struct Stage {
    world: Arc<World>,
    places: Places,
    fence: Fence,
    mode: Arc<Switch>,
    scope: Scope,
    /// What happens during the next edit.
    during: VecDeque<Meddle>,
    /// For the next write or edit.
    grant: Option<Grant>,
    /// What there is at this moment.
    now: Picture,
    /// How many writes there were, so that each writes something else.
    writes: usize,
}

struct Switch(AtomicUsize);

impl ModeSource for Switch {
    fn mode(&self) -> Mode {
        Mode::ALL[self.0.load(Ordering::SeqCst)]
    }
}

impl Stage {
    /// None, if there is nothing to open a fence around.
    fn open(world: Arc<World>, home: &str) -> Option<Self> {
        let scope = run(async { Scope::root("agent") });
        let mode = Arc::new(Switch(AtomicUsize::new(Mode::WorkspaceWrite as usize)));
        let (root, temp, home) = (world.at("ws"), world.at("temp"), world.at(home));
        let workspace = Workspace::new(&root).temp(&temp).home(&home).protect(PROTECTED);
        let Ok(fence) = Fences::default().open(workspace, mode.clone(), scope.clone()) else {
            run(scope.close()).expect("nothing runs there");
            return None;
        };
        let id = |path: &Path| path.metadata().ok().map(|meta| Id::of(&meta));
        let root = fence.root().to_owned();
        let mut protected = vec![PROTECTED.into()];
        protected.extend(script::led_by_git(&world));
        let places = Places {
            root: (root.clone(), id(&root).expect("a fence was opened around it")),
            temp: id(&temp),
            homes: vec![home],
            protected,
        };
        let (during, now) = (VecDeque::new(), world.picture());
        Some(Self { world, places, fence, mode, scope, during, grant: None, now, writes: 0 })
    }

    fn close(self) {
        let Self { fence, scope, .. } = self;
        run(scope.close()).expect("nothing that it holds fails to close");
        let late = run(fence.write("late.txt", b"late".to_vec(), None));
        assert!(late.is_err(), "written for an agent that is closed");
    }

    fn ask(&mut self, verb: Verb, path: &str) {
        match verb {
            Verb::Write => self.write(path),
            Verb::Edit => self.edit(path),
            Verb::Read | Verb::List | Verb::Stat | Verb::Walk | Verb::LeadsTo => self.look(verb, path),
        }
    }

    fn write(&mut self, path: &str) {
        let (content, grant) = (self.content(), self.grant.take());
        let rules = self.places.rules(self.now.clone());
        let result = run(self.fence.write(path, content.clone(), grant.as_ref()));
        let mode = sandbox::effective(self.mode.mode(), grant.as_ref());
        let did = did(result.map(|outcome| outcome.bytes), content, (Operation::Write, mode));
        self.judge(&rules, &did);
    }

    fn edit(&mut self, path: &str) {
        let (content, grant) = (self.content(), self.grant.take());
        let meddling = std::mem::take(&mut self.during);
        let disturbed = !meddling.is_empty();
        let meanwhile: Arc<Mutex<Option<Picture>>> = Arc::default();
        let change: Change = {
            let (world, meanwhile, content) = (self.world.clone(), meanwhile.clone(), content.clone());
            Box::new(move |_| {
                meddling.into_iter().for_each(|meddle| meddle.happen(world.top()));
                *meanwhile.lock().unwrap_or_else(PoisonError::into_inner) = Some(world.picture());
                Ok(String::from_utf8(content).expect("it is text"))
            })
        };
        let result = run(self.fence.update(path, change, grant.as_ref()));
        let meanwhile = meanwhile.lock().unwrap_or_else(PoisonError::into_inner).take();
        let rules = match meanwhile {
            Some(meanwhile) if disturbed => self.places.rules(meanwhile).disturbed(),
            _ => self.places.rules(self.now.clone()),
        };
        let mode = sandbox::effective(self.mode.mode(), grant.as_ref());
        let did = did(result.map(|outcome| outcome.bytes), content, (Operation::Edit, mode));
        self.judge(&rules, &did);
    }

    fn look(&mut self, verb: Verb, path: &str) {
        let mode = self.mode.mode();
        let rules = self.places.rules(self.now.clone());
        // What a path leads to, where the text alone decides what it begins from.
        let led = self.places.root_is_in_place().then(|| self.places.root.0.join(path).canonicalize().ok()).flatten();
        let (operation, seen) = match verb {
            Verb::List => (Operation::List, run(self.fence.list(path, MOST_ENTRIES)).map(|_| Vec::new())),
            Verb::Stat => (Operation::Read, run(self.fence.stat(path)).map(|_| Vec::new())),
            Verb::Walk => (Operation::Search, self.walk(path)),
            Verb::LeadsTo => {
                if let Err(error) = run(self.fence.leads_to(path)) {
                    check(&error, (Operation::Read, mode));
                }
                self.judge(&rules, &Did::Nothing);
                return;
            }
            Verb::Read | Verb::Write | Verb::Edit => {
                (Operation::Read, run(self.fence.read(path, MOST_BYTES)).map(|read| vec![read.bytes]))
            }
        };
        match seen {
            Ok(seen) => {
                if let Some(led) = led {
                    assert!(!rules.is_private(&led), "{verb:?} {path:?} led to {}", led.display());
                    assert!(!led.starts_with("/proc"), "{verb:?} {path:?} led to {}", led.display());
                }
                let secret = self.world.secret();
                let told = seen.iter().any(|bytes| bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
                assert!(!told || !rules.is_kept_private(secret), "{verb:?} {path:?} told what is Tether's own");
            }
            Err(error) => check(&error, (operation, mode)),
        }
        self.judge(&rules, &Did::Nothing);
    }

    #[track_caller]
    fn judge(&mut self, rules: &Rules, did: &Did) {
        self.now = self.world.picture();
        rules.judge(&self.now, did);
    }

    /// Everything that can be read two steps down. What the machine has elsewhere is not looked through.
    fn walk(&self, path: &str) -> Result<Vec<Vec<u8>>, FsError> {
        let top = run(self.fence.directory(path))?;
        let mut seen = Vec::new();
        if !self.world.holds(&self.places.root.0.join(path)) {
            return Ok(seen);
        }
        for (name, _) in top.entries(MOST_ENTRIES)?.names {
            seen.extend(top.read(&name, MOST_BYTES));
            let Ok(below) = top.directory(&name) else { continue };
            for (name, _) in below.entries(MOST_ENTRIES).map(|found| found.names).unwrap_or_default() {
                seen.extend(below.read(&name, MOST_BYTES));
            }
        }
        Ok(seen)
    }

    fn content(&mut self) -> Vec<u8> {
        self.writes += 1;
        format!("written {}", self.writes).into_bytes()
    }
}

/// What a write did, by what it answered.
fn did(result: Result<u64, FsError>, content: Vec<u8>, (operation, mode): (Operation, Mode)) -> Did {
    match result {
        Ok(bytes) => {
            assert_eq!(mode, Mode::WorkspaceWrite, "nothing is written under {mode}");
            assert_eq!(bytes, content.len() as u64);
            Did::Wrote(content)
        }
        Err(error) => {
            check(&error, (operation, mode));
            if mode == Mode::ReadOnly { Did::Nothing } else { Did::Failed }
        }
    }
}

/// Panics unless an error is one that somebody who asked for this, under this mode, can act on.
fn check(error: &FsError, (operation, mode): (Operation, Mode)) {
    let mut lines = 1;
    match error {
        FsError::Denied(denial, _) => {
            assert_eq!((denial.operation, denial.mode), (operation, mode), "{error}");
            assert!(is_plain(Path::new(&denial.target)), "{error}");
            lines = 2;
        }
        FsError::Io { operation: said, source, .. } => {
            assert_eq!(*said, operation, "{error}");
            let ours = source.raw_os_error().is_none() && source.kind() != io::ErrorKind::Other;
            assert!(!ours && !source.to_string().contains("panicked"), "{error}");
        }
        FsError::NotFound(path)
        | FsError::IsADirectory(path)
        | FsError::NotADirectory(path)
        | FsError::NotUtf8(path)
        | FsError::Changed(path)
        | FsError::NotAFile { path, .. }
        | FsError::TooLarge { path, .. } => assert!(is_plain(path), "{error}"),
        FsError::InvalidPath { .. } => {}
        FsError::Full(_) | FsError::Refused(_) | FsError::Closing => panic!("nothing of the kind happened: {error}"),
    }
    let told = error.to_string();
    assert_eq!(told.lines().count(), lines, "{told:?}");
    assert!(!told.chars().any(|c| c.is_control() && c != '\n'), "{told:?}");
}
