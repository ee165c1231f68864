//! A user's configuration, and a project's that a stranger wrote.

use std::fs;
use std::path::Path;

use app_boot::{Boot, Config, ConfigErrors, Entry, Env, Flags};
use tempfile::TempDir;
use tools::ToolFilter;
use user_approval::Policy;

/// Between the user's file and the project's.
const BETWEEN: &[u8] = b"\n---\n";

/// Keys in which a project has no say.
const USERS: [&str; 4] = ["model", "sandbox.initial_override", "offline.script", "permission."];

/// How many errors are told of one configuration, and how long each is at most.
const MOST_ERRORS: usize = 50;
const LONGEST: usize = 4000;

/// Reads `data` as a user's configuration file, a line of `---`, and a project's.
///
/// # Panics
///
/// If reading does, if an error names no file or is not one line, or if the project's file widened anything.
pub fn config(data: &[u8]) {
    let between = data.windows(BETWEEN.len()).position(|part| part == BETWEEN);
    let (user, project) = match between {
        Some(at) => (&data[..at], &data[at + BETWEEN.len()..]),
        None => (data, data),
    };
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let alone = load(&dir, user, b"");
    let both = load(&dir, user, project);
    match (alone, both) {
        (Ok(alone), Ok(both)) => narrower(&both, &alone),
        (Err(_), Ok(_)) => panic!("a project's file mended the user's"),
        (alone, Err(wrong)) => {
            check(&wrong);
            let projects = |told: String| told.contains("/project/.tether/config.toml:");
            assert!(alone.is_err() || wrong.iter().all(|error| projects(error.to_string())), "{wrong}");
        }
    }
}

fn load(dir: &TempDir, user: &[u8], project: &[u8]) -> Result<Config, ConfigErrors> {
    let put = |path: &Path, content: &[u8]| {
        fs::create_dir_all(path.parent().expect("it is below a directory")).expect("the directory is writable");
        fs::write(path, content).expect("the directory is writable");
    };
    let dir = dir.path();
    put(&dir.join("config/tether/config.toml"), user);
    put(&dir.join("project/.tether/config.toml"), project);
    let variables = [("HOME", dir.join("user")), ("XDG_CONFIG_HOME", dir.join("config"))];
    let variables = variables.map(|(name, path)| (name, path.to_string_lossy().into_owned()));
    let boot = Boot::new(Env::of(&variables), None, None).expect("there is a home, and no file of keys");
    boot.configure(&dir.join("project"), Flags::default())
}

fn check(wrong: &ConfigErrors) {
    let told: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    assert!((1..=MOST_ERRORS).contains(&told.len()), "{} errors", told.len());
    for told in told {
        assert!(told.contains("config.toml:"), "it names no file: {told}");
        assert!(!told.chars().any(char::is_control) && told.len() < LONGEST, "not a line to read: {told:?}");
    }
}

/// Panics if `both` allows anything that `alone` does not.
fn narrower(both: &Config, alone: &Config) {
    assert!(both.sandbox.value <= alone.sandbox.value, "the project widened the sandbox");
    let asks = |config: &Config| config.approval.value == Policy::Ask;
    assert!(asks(alone) || !asks(both), "the project has somebody asked");
    assert!(both.max_depth.value <= alone.max_depth.value, "the project widened `budget.max_depth`");
    for (key, both, alone) in [
        ("max_children", both.max_children.value, alone.max_children.value),
        ("max_children_total", both.max_children_total.value, alone.max_children_total.value),
        ("tokens", both.tokens.value, alone.tokens.value),
        ("seconds", both.seconds.value, alone.seconds.value),
    ] {
        let limit = |value: Option<u64>| value.unwrap_or(u64::MAX);
        assert!(limit(both) <= limit(alone), "the project widened `budget.{key}`");
    }
    for path in &alone.protected {
        assert!(both.protected.contains(path), "the project unprotected {}", path.value.display());
    }
    no_more_tools(both, alone);
    let users = |config: &Config| {
        let own = |key: &str| key.starts_with("subagent.") || USERS.iter().any(|users| key.starts_with(users));
        let entries = config.entries().into_iter().filter(|entry| own(&entry.key));
        entries.map(|Entry { key, value, from, .. }| (key, value, from)).collect::<Vec<_>>()
    };
    assert_eq!(users(both), users(alone), "the project changed what is the user's");
    assert_eq!(both.presets().names().collect::<Vec<_>>(), alone.presets().names().collect::<Vec<_>>());
    assert!(both.limits().max_depth <= alone.limits().max_depth);
}

fn no_more_tools(both: &Config, alone: &Config) {
    let names = |filter: &Option<ToolFilter>| {
        let filter = filter.clone().unwrap_or_default();
        filter.allow.into_iter().flatten().chain(filter.deny).collect::<Vec<_>>()
    };
    let (both, alone) = (both.tools.filter(), alone.tools.filter());
    let admits = |filter: &Option<ToolFilter>, name: &str| filter.as_ref().is_none_or(|filter| filter.admits(name));
    for name in names(&both).iter().chain(&names(&alone)).map(|name| &**name).chain(["a tool that nobody names"]) {
        assert!(!admits(&both, name) || admits(&alone, name), "the project allows `{name}`");
    }
}
