//! What a session begins with, whichever front door opens it.

use app_boot::Config;
use bundle::Settings;
use llm::Route;
use permission::{ChooseError, Permission, Presets};
use sandbox_policy::{ModeCause, ModeSet};
use session::Session;
use user_approval::PolicySet;

use crate::cli::{Configuring, Switching};
use crate::config::default_model;
use crate::exit::Failure;

/// Whether a session is new.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    Now,
    Before,
}

/// Refuses a preset that there is not, before anything is made.
pub(crate) fn known_preset(switching: &Switching, presets: &Presets) -> Result<(), ChooseError> {
    match &switching.preset {
        Some(name) if presets.get(name).is_none() => {
            let known = presets.iter().map(|preset| preset.name.clone()).collect();
            Err(ChooseError::UnknownPreset { name: name.clone(), known })
        }
        _ => Ok(()),
    }
}

/// Writes what was asked for. A new top-level session records the mode that it starts with in any case, so that later
/// defaults never change it.
pub(crate) fn switch(
    session: &Session,
    switching: &Switching,
    begins: Begins,
    config: &Config,
    permission: &Permission,
) -> Result<(), Failure> {
    let is_new = begins == Begins::Now;
    if let Some(name) = &switching.preset {
        let chosen = if is_new { permission.begin(session, name) } else { permission.choose(session, name) };
        return chosen.map_err(Failure::failed);
    }
    match switching.sandbox {
        Some(mode) => session.append(ModeSet::by_user(mode)).map(drop).map_err(Failure::failed)?,
        None if is_new && config.initial_override.value => {
            let initial = ModeSet { mode: config.sandbox.value, source: Some(ModeCause::Initial) };
            session.append(initial).map(drop).map_err(Failure::failed)?;
        }
        None => {}
    }
    if let Some(policy) = switching.approval {
        session.append(PolicySet::by_user(policy)).map_err(Failure::failed)?;
    }
    Ok(())
}

/// The flag, else what the session used last, else the configuration, else the first provider with a key, else the
/// model that needs none.
pub(crate) fn route(
    configuring: &Configuring,
    last: Option<Route>,
    config: &Config,
    settings: &Settings,
) -> Result<Route, Failure> {
    match configuring.model.clone().or(last).or_else(|| config.model.value.clone()) {
        Some(route) => Ok(route),
        None => default_model(settings).map(|(route, _)| route),
    }
}

/// Why a model cannot answer, where that is known without asking it.
pub(crate) fn known_to_fail(route: &Route, settings: &Settings) -> Option<String> {
    let models = &settings.models;
    let access = match (&*route.provider, &*route.model) {
        ("offline", "script") => return None,
        ("offline", "file") if settings.script.is_some() => return None,
        ("offline", "file") => {
            let told = "the model `offline/file` has no file: name one in `[offline] script` of the configuration, or in \
                        TETHER_OFFLINE_SCRIPT";
            return Some(told.to_owned());
        }
        ("offline", _) => return Some(format!("no model `{route}`; there are: offline/script, offline/file")),
        ("deepseek", _) => &models.deepseek,
        ("openai", _) => &models.openai,
        ("anthropic", _) => &models.anthropic,
        ("gemini", _) => &models.gemini,
        _ => return None,
    };
    let provider = &route.provider;
    let variable = format!("{}_API_KEY", provider.to_ascii_uppercase());
    access.key.is_none().then(|| format!("there is no key for {provider}: set {variable}"))
}
