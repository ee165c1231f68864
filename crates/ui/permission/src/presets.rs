//! The table of presets.

use std::sync::Arc;

use sandbox::Mode;
use user_approval::Policy;

/// What is shown where no preset fits. It names nothing that can be chosen.
pub const CUSTOM: &str = "custom";

/// The longest name of a preset, in bytes.
const MAX_NAME: usize = 64;

/// A setting of both knobs, under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// What it is chosen by.
    pub name: Arc<str>,
    /// The sandbox mode that it sets.
    pub sandbox: Mode,
    /// The approval policy that it sets.
    pub approval: Policy,
}

/// The presets of a deployment, in the order in which they are shown: at least one, each with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presets(Arc<[Preset]>);

/// Why presets are no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresetsError {
    /// There is nothing to choose.
    #[error("there are no permission presets: name at least one")]
    Empty,
    /// A name that cannot be typed or shown.
    #[error(
        "`{}` does not name a permission preset: use at most {MAX_NAME} ASCII letters, digits, `-` and `_`, beginning with a \
         letter or a digit",
        shown(.0)
    )]
    Name(Arc<str>),
    /// The name of what is no preset.
    #[error("no permission preset can be named `{0}`: it is shown where none fits; use another name")]
    Reserved(Arc<str>),
    /// A name that is there twice.
    #[error("there are two permission presets named `{0}`: give each a name of its own")]
    Duplicate(Arc<str>),
}

impl Preset {
    /// A preset.
    pub fn new(name: impl Into<Arc<str>>, sandbox: Mode, approval: Policy) -> Self {
        Self { name: name.into(), sandbox, approval }
    }
}

impl Presets {
    /// These presets, in this order.
    ///
    /// # Errors
    ///
    /// None at all, a name that is not a plain word, the name [`CUSTOM`] in any case, or one name twice.
    pub fn new(presets: Vec<Preset>) -> Result<Self, PresetsError> {
        if presets.is_empty() {
            return Err(PresetsError::Empty);
        }
        for (index, Preset { name, .. }) in presets.iter().enumerate() {
            if !is_plain(name) {
                return Err(PresetsError::Name(name.clone()));
            }
            if name.eq_ignore_ascii_case(CUSTOM) {
                return Err(PresetsError::Reserved(name.clone()));
            }
            if presets[..index].iter().any(|other| other.name == *name) {
                return Err(PresetsError::Duplicate(name.clone()));
            }
        }
        Ok(Self(presets.into()))
    }

    /// The preset of this name.
    pub fn get(&self, name: &str) -> Option<&Preset> {
        self.iter().find(|preset| *preset.name == *name)
    }

    /// What can be chosen.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|preset| &*preset.name)
    }

    /// The presets.
    pub fn iter(&self) -> std::slice::Iter<'_, Preset> {
        self.0.iter()
    }
}

/// One preset a mode, named like it. Unconfined, there is nothing left to ask for.
impl Default for Presets {
    fn default() -> Self {
        let preset = |mode: Mode| {
            let approval = match mode {
                Mode::ReadOnly | Mode::WorkspaceWrite => Policy::Ask,
                Mode::DangerFullAccess => Policy::Never,
            };
            Preset::new(mode.as_str(), mode, approval)
        };
        Self(Mode::ALL.map(preset).into())
    }
}

impl<'a> IntoIterator for &'a Presets {
    type Item = &'a Preset;
    type IntoIter = std::slice::Iter<'a, Preset>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// As much of a foreign name as an error repeats, on one line.
pub(crate) fn shown(name: &str) -> String {
    let start: String = name.chars().take(MAX_NAME).collect();
    start.escape_debug().to_string()
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.len() <= MAX_NAME && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}
