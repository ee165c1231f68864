//! How a search runs: where it begins, on a thread for blocking work, until it is done, too long, or not wanted any more.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use fs::{Directory, FileSystem, FsError, Kind, MAX_FILE_BYTES};
use sandbox::one_line;
use tools::{Call, ToolOutput, code};

use crate::access::failed;
use crate::ignored::{FILE, MAX_RULES_BYTES, Rules};

/// How long a search may take. What was found by then is told.
pub(crate) const TIME: Duration = Duration::from_secs(20);

/// The most bytes of one answer, but for its last lines.
pub(crate) const BYTES: usize = 32 * 1024;

/// Why a search ends before it is done. Watched while it runs.
#[derive(Default)]
pub(crate) struct Stop(AtomicU8);

/// What ends a search early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Time = 1,
    /// Nobody waits for the answer.
    Left,
}

/// Where a search begins.
pub(crate) struct Start {
    pub(crate) directory: Box<dyn Directory>,
    /// Absolute.
    pub(crate) path: PathBuf,
    /// Those of the directories above it.
    pub(crate) rules: Rules,
}

/// What a path is that is to be searched.
pub(crate) enum Place {
    Directory(Start),
    File { path: PathBuf, bytes: Vec<u8> },
}

/// Says that nobody waits any more, when dropped.
struct Waiting(Arc<Stop>);

impl Stop {
    pub(crate) fn now(&self, why: Why) {
        self.0.store(why as u8, Ordering::Release);
    }

    pub(crate) fn why(&self) -> Option<Why> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Why::Time),
            _ => Some(Why::Left),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.now(Why::Left);
    }
}

/// Does the work where it may block, within its time.
pub(crate) async fn run<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, ToolOutput> {
    let stop = Arc::new(Stop::default());
    let waiting = Waiting(stop.clone());
    let work = move || work(&stop);
    let answer = call.ctx.spawn_blocking("search", work).map_err(|_| failed(FsError::Closing))?;
    let time = async {
        tokio::time::sleep(TIME).await;
        waiting.0.now(Why::Time);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = call.cancelled.cancelled() => {
            Err(ToolOutput::error(code::CANCELLED, format!("`{}` was cancelled", call.name)))
        }
        answer = answer => answer.map_err(|_| ToolOutput::error(code::PANICKED, "the search panicked")),
        () = time => unreachable!("it only says that time is up"),
    }
}

/// The place where a search begins, with the rules that hold there.
pub(crate) async fn place(files: &dyn FileSystem, path: &str, ignored: Ignored) -> Result<Place, ToolOutput> {
    match files.directory(path).await {
        Ok(directory) => Ok(Place::Directory(start(files, path, directory, ignored).await.map_err(failed)?)),
        Err(FsError::NotADirectory(_)) => {
            let content = files.read(path, MAX_FILE_BYTES).await.map_err(failed)?;
            Ok(Place::File { path: content.path, bytes: content.bytes })
        }
        Err(error) => Err(failed(error)),
    }
}

/// Whether what git ignores is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    LeftOut,
    Included,
}

impl Ignored {
    pub(crate) fn included(yes: bool) -> Self {
        if yes { Self::Included } else { Self::LeftOut }
    }
}

/// Below the root, rules of the directories above count. They are read stepping down from the root; where a link or `..`
/// is on the way, the names need not say where the place is, and only its own rules count.
async fn start(
    files: &dyn FileSystem,
    given: &str,
    directory: Box<dyn Directory>,
    ignored: Ignored,
) -> Result<Start, FsError> {
    let path = directory.path().to_owned();
    let mut rules = Rules::new(ignored);
    let by_names = Path::new(given).components().all(|part| part != Component::ParentDir);
    let below = path.strip_prefix(files.root()).ok().filter(|_| by_names).map(Path::to_owned);
    let (Some(below), Ignored::LeftOut) = (below, ignored) else { return Ok(Start { directory, path, rules }) };
    above_the_root(files, &mut rules).await;
    let (mut here, mut at) = (files.directory(".").await?, files.root().to_owned());
    for name in &below {
        rules.enter(&*here, &at);
        at.push(name);
        match here.directory(name) {
            Ok(next) => here = next,
            Err(_) => return Ok(Start { directory, path, rules: Rules::new(ignored) }),
        }
    }
    Ok(Start { directory: here, path, rules })
}

/// The root may be inside a repository: then the rules from the repository's top down to the root count too.
async fn above_the_root(files: &dyn FileSystem, rules: &mut Rules) {
    let mut above = Vec::new();
    for directory in files.root().ancestors() {
        let Some(name) = directory.to_str() else { return };
        if directory != files.root() {
            let text = files.read(&format!("{name}/{FILE}"), MAX_RULES_BYTES).await;
            above.push((directory, text.map(|content| content.bytes)));
        }
        if files.stat(&format!("{name}/.git")).await.is_ok_and(|git| matches!(git.kind, Kind::Directory | Kind::File)) {
            for (directory, text) in above.into_iter().rev() {
                rules.add(directory, text);
            }
            return;
        }
    }
}

/// A path as it can be given to the other tools: relative to the root where it is below it.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    let short = path.strip_prefix(root).unwrap_or(path);
    one_line(&short.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use context::Scope;
    use session::Sessions;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_search_has_its_time_and_then_tells_what_it_has() {
        let app = Scope::root("app");
        let call = Call::new(&app, Sessions::new().create("/w"), "grep", "{}");
        let until_told = |stop: &Stop| {
            let deadline = Instant::now() + Duration::from_secs(30);
            while stop.why().is_none() && Instant::now() < deadline {
                std::thread::yield_now();
            }
            stop.why()
        };
        let (why, ()) = tokio::join!(run(&call, until_told), tokio::time::advance(TIME + Duration::from_secs(1)));
        assert_eq!(why.unwrap(), Some(Why::Time));
        assert_eq!(run(&call, |stop| stop.why()).await.unwrap(), None);
        app.close().await.unwrap();
        let closed = run(&call, |_| ()).await.unwrap_err();
        assert_eq!(closed.to_text(), "the agent is closing");
    }

    #[tokio::test]
    async fn a_search_that_panics_is_an_answer() {
        let app = Scope::root("app");
        let call = Call::new(&app, Sessions::new().create("/w"), "grep", "{}");
        let answer = run(&call, |_| panic!("a bug")).await.map(|()| "done");
        assert_eq!(answer.unwrap_err().error.as_deref(), Some(code::PANICKED));
        assert!(app.close().await.is_err(), "and whoever closes is told");
    }
}
