//! Choosing a preset, and telling which one is in force.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sandbox::Mode;
use sandbox_policy::{Decision, ModeCause, ModeSet, SandboxPolicy};
use serde::{Deserialize, Serialize};
use session::{Closed, Payload, Session, SessionId, Snapshot};
use user_approval::{Approval, Policy, PolicyCause, PolicySet};

use crate::presets::{CUSTOM, shown};
use crate::{Preset, Presets};

/// A preset was chosen: the selection. The knobs that it turned are events of their own, behind it, and they decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetChosen {
    /// Under which name. The table may have changed since.
    pub name: Arc<str>,
}

/// Which preset is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    /// This one.
    Preset(Arc<str>),
    /// None: the knobs stand as no preset sets them.
    Custom,
}

/// The service.
pub struct Permission {
    presets: Presets,
    sandbox: Arc<SandboxPolicy>,
    approval: Arc<Approval>,
    /// Sessions in which a choice is under way.
    choosing: Mutex<HashSet<SessionId>>,
}

/// Why a preset was not chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// There is none of that name.
    #[error("no permission preset named `{}`: use {}", shown(name), list(known))]
    UnknownPreset {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<Arc<str>>,
    },
    /// Two choices at once would leave a setting that neither of them is.
    #[error("another choice of a permission preset is under way in this session: choose again")]
    Underway,
    /// Only a top-level session begins with a preset.
    #[error("the session is a child of {0}: it begins with the scope that was handed down to it, not with a preset")]
    HasParent(SessionId),
    /// A session begins once.
    #[error("the session has begun: it runs under {0} already")]
    HasMode(Mode),
    /// The log takes nothing more. A choice that was under way is left half done; it allows nothing that was not allowed
    /// before, or by the preset.
    #[error("the preset could not be set: {0}")]
    Closed(#[from] Closed),
}

impl Permission {
    /// A service over the two knobs.
    pub fn new(presets: Presets, sandbox: Arc<SandboxPolicy>, approval: Arc<Approval>) -> Arc<Self> {
        Arc::new(Self { presets, sandbox, approval, choosing: Mutex::default() })
    }

    /// What can be chosen.
    pub fn presets(&self) -> &Presets {
        &self.presets
    }

    /// The preset that is in force: the one that was chosen last while it still fits, else the first that fits.
    pub fn current(&self, session: &Session) -> Current {
        let log = session.snapshot();
        let (mode, policy) = self.effective(&log);
        let fits = |preset: &&Preset| (preset.sandbox, preset.approval) == (mode, policy);
        let chosen = log.latest::<PresetChosen>().and_then(|chosen| self.presets.get(&chosen.name)).filter(fits);
        match chosen.or_else(|| self.presets.iter().find(fits)) {
            Some(preset) => Current::Preset(preset.name.clone()),
            None => Current::Custom,
        }
    }

    /// Chooses a preset for a session: records the selection, then the knobs that it changes, and the mode where none is
    /// recorded: the choice is an override, which children are handed and later defaults never alter.
    ///
    /// # Errors
    ///
    /// An unknown name, another choice under way in this session, or a session that is closed.
    pub fn choose(&self, session: &Session, name: &str) -> Result<(), ChooseError> {
        let preset = self.find(name)?;
        let _choice = self.begin_choice(session)?;
        self.set(session, preset)
    }

    /// Chooses the preset that a new top-level session begins with.
    ///
    /// # Errors
    ///
    /// Those of [`choose`](Self::choose); a session with a parent; one whose mode is recorded already.
    pub fn begin(&self, session: &Session, name: &str) -> Result<(), ChooseError> {
        let preset = self.find(name)?;
        if let Some(lineage) = session.header().lineage() {
            return Err(ChooseError::HasParent(lineage.parent()));
        }
        let _choice = self.begin_choice(session)?;
        if let Some(set) = session.latest::<ModeSet>() {
            return Err(ChooseError::HasMode(set.mode));
        }
        self.set(session, preset)
    }

    fn find(&self, name: &str) -> Result<&Preset, ChooseError> {
        let known = || self.presets.iter().map(|preset| preset.name.clone()).collect();
        let unknown = || ChooseError::UnknownPreset { name: name.to_owned(), known: known() };
        self.presets.get(name).ok_or_else(unknown)
    }

    fn set(&self, session: &Session, preset: &Preset) -> Result<(), ChooseError> {
        session.append(PresetChosen { name: preset.name.clone() })?;
        // Not before: a switch in front of the selection is what the selection replaces.
        let log = session.snapshot();
        let (mode, policy) = self.effective(&log);
        // One that only stands in the deployment's configuration is not this session's, and no child would have it.
        let is_recorded = log.latest::<ModeSet>().is_some();
        let mode_set = (mode != preset.sandbox || !is_recorded)
            .then_some(ModeSet { mode: preset.sandbox, source: Some(ModeCause::Preset) });
        let policy_set = (policy != preset.approval)
            .then_some(PolicySet { policy: preset.approval, source: Some(PolicyCause::Preset) });
        // Whoever looks or delegates between the two sees no more than the old setting or the new one allows.
        if preset.sandbox <= mode {
            append(session, mode_set)?;
            append(session, policy_set)?;
        } else {
            append(session, policy_set)?;
            append(session, mode_set)?;
        }
        Ok(())
    }

    /// Both knobs at one instant.
    fn effective(&self, log: &Snapshot) -> (Mode, Policy) {
        let mode = match sandbox_policy::decision(log) {
            Decision::Override(set, _) => set.mode,
            Decision::Default => self.sandbox.default_mode(),
        };
        (mode, self.approval.effective_in(log))
    }

    fn begin_choice(&self, session: &Session) -> Result<Choice<'_>, ChooseError> {
        let mut choosing = self.choosing.lock().unwrap_or_else(PoisonError::into_inner);
        match choosing.insert(session.id()) {
            true => Ok(Choice { permission: self, session: session.id() }),
            false => Err(ChooseError::Underway),
        }
    }
}

/// A choice under way. Held while observers of the log are told, so it is a mark and not a lock.
struct Choice<'a> {
    permission: &'a Permission,
    session: SessionId,
}

impl Drop for Choice<'_> {
    fn drop(&mut self) {
        self.permission.choosing.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.session);
    }
}

impl Payload for PresetChosen {
    const TAG: &'static str = "permission/preset";
    /// It names what the knobs' own events decide.
    const IGNORABLE: bool = true;
}

impl fmt::Display for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Preset(name) => name,
            Self::Custom => CUSTOM,
        })
    }
}

fn append(session: &Session, knob: Option<impl Payload>) -> Result<(), Closed> {
    knob.map_or(Ok(()), |knob| session.append(knob).map(drop))
}

/// ``(`a`, `b` or `c`)`` without the brackets.
fn list(names: &[Arc<str>]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
