use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use llm::Route;
use sandbox::Mode;
use serde::Deserialize;
use toml::Spanned;
use user_approval::Policy;

use super::ConfigError;

/// The longest configuration that is read, in bytes.
pub(super) const LIMIT: u64 = 256 * 1024;

/// Keys that the format has and this version does not serve. Refused by name: a limit that is written down and not
/// kept would be worse than none.
const LATER: [&str; 11] = [
    "tmp",
    "network",
    "permission",
    "max_children",
    "max_children_total",
    "tokens",
    "seconds",
    "subagent",
    "provider",
    "presets",
    "plugins",
];

/// A configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(skip)]
    path: PathBuf,
    #[serde(skip)]
    text: String,
    pub(crate) model: Option<Spanned<ModelName>>,
    #[serde(default)]
    pub(crate) sandbox: Sandbox,
    #[serde(default)]
    pub(crate) approval: Approval,
    #[serde(default)]
    pub(crate) budget: Budget,
    pub(crate) offline: Option<Spanned<Offline>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sandbox {
    pub(crate) default: Option<ModeName>,
    pub(crate) initial_override: Option<Spanned<bool>>,
    pub(crate) protected: Option<Vec<PathBuf>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approval {
    pub(crate) default: Option<Policy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    pub(crate) max_depth: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offline {
    pub(crate) script: Option<PathBuf>,
}

/// A model's name, refused with the route's own words.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ModelName(pub(crate) Route);

/// A mode's name, refused with the mode's own words.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ModeName(pub(crate) Mode);

/// A policy's name, for variables.
pub(crate) struct PolicyName(pub(crate) Policy);

impl File {
    /// Reads a file, if it is there.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let Some(text) = read_bounded(path)? else { return Ok(None) };
        match toml::from_str::<Self>(&text) {
            Ok(file) => Ok(Some(Self { path: path.to_owned(), text, ..file })),
            Err(error) => {
                let line = line_of(&text, error.span().map_or(0, |span| span.start));
                Err(ConfigError::File { file: path.to_owned(), line, message: told(error.message()) })
            }
        }
    }

    /// What only a user may say.
    pub(crate) fn refuse_what_widens(&self) -> Result<(), ConfigError> {
        let refused = [
            ("model", self.model.as_ref().map(Spanned::span)),
            ("sandbox.initial_override", self.sandbox.initial_override.as_ref().map(Spanned::span)),
            ("offline", self.offline.as_ref().map(Spanned::span)),
        ];
        for (key, span) in refused {
            if let Some(span) = span {
                let message = format!("`{key}` is for the user's own configuration: a project can narrow, never widen");
                return Err(ConfigError::File {
                    file: self.path.clone(),
                    line: line_of(&self.text, span.start),
                    message,
                });
            }
        }
        Ok(())
    }
}

/// The text of a regular file of bounded size. A project's file is untrusted: it may be a pipe or a device.
fn read_bounded(path: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |message: String| ConfigError::Unreadable { file: path.to_owned(), message };
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error.to_string())),
    };
    if !found.is_file() {
        return Err(unreadable("not a regular file".to_owned()));
    }
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::new();
    file.take(LIMIT + 1).read_to_string(&mut text).map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > LIMIT {
        return Err(unreadable(format!("more than {LIMIT} bytes")));
    }
    Ok(Some(text))
}

/// What the parser said, in one line and with the nearest key.
fn told(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.replace('\n', "; ") };
    let unknown = rest.split('`').next().unwrap_or_default();
    if LATER.contains(&unknown) {
        return format!("`{unknown}` is not supported by this version");
    }
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
    let nearest = known
        .iter()
        .copied()
        .max_by(|a, b| strsim::jaro_winkler(unknown, a).total_cmp(&strsim::jaro_winkler(unknown, b)));
    match nearest {
        Some(nearest) => format!("unknown key `{unknown}`; did you mean `{nearest}`? There are: {}", known.join(", ")),
        None => format!("unknown key `{unknown}`"),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

impl TryFrom<String> for ModelName {
    type Error = llm::RouteError;
    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse().map(Self)
    }
}

impl TryFrom<String> for ModeName {
    type Error = sandbox::UnknownMode;
    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse().map(Self)
    }
}

impl FromStr for PolicyName {
    type Err = &'static str;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "ask" => Ok(Self(Policy::Ask)),
            "never" => Ok(Self(Policy::Never)),
            _ => Err("not an approval policy: it is ask or never"),
        }
    }
}
