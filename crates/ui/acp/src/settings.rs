//! What a client can see and set of a session: its permission preset as its mode, and its model.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode, SessionModeState,
};
use llm::Route;
use permission::{Current, Permission};
use session::Session;
use user_approval::Policy;

/// The option that says which model answers.
pub(crate) const MODEL: &str = "model";

/// The presets as modes. Settings that no preset has are shown, and cannot be chosen.
pub(crate) fn modes(permission: &Permission, session: &Session) -> SessionModeState {
    let current = permission.current(session);
    let mut modes: Vec<_> = permission
        .presets()
        .iter()
        .map(|preset| {
            let asks = match preset.approval {
                Policy::Ask => "asks before it goes further",
                Policy::Never => "never asks",
            };
            let told = format!("{}, {asks}", preset.sandbox);
            SessionMode::new(preset.name.clone(), preset.name.to_string()).description(told)
        })
        .collect();
    if current == Current::Custom {
        modes.push(SessionMode::new(current.to_string(), "custom").description("as no preset sets it".to_owned()));
    }
    SessionModeState::new(current.to_string(), modes)
}

/// The one option there is.
pub(crate) fn options(current: &Route, models: &[Route]) -> Vec<SessionConfigOption> {
    let own = (!models.contains(current)).then_some(current);
    let choices = models.iter().chain(own).map(ToString::to_string);
    let choices: Vec<_> =
        choices.map(|model| SessionConfigSelectOption::new(Arc::<str>::from(&*model), model)).collect();
    let model = SessionConfigOption::select(MODEL, "Model", Arc::<str>::from(current.to_string()), choices);
    vec![model.category(SessionConfigOptionCategory::Model)]
}
