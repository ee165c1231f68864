use context::{BootError, Plugins, Scope};

use crate::settle::{blame, unsettled};
use crate::{Config, ConfigErrors};

/// Why an app did not start. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A plugin could not start.
    #[error(transparent)]
    Plugin(BootError),
    /// The configuration names what is not there.
    #[error(transparent)]
    Unsettled(ConfigErrors),
}

/// Starts an app: applies every plugin, then holds the configuration to what is there. If either fails everything is
/// closed before this returns, so that nothing half-started is left. Where a plugin fails because of a line of the
/// configuration, that line is named.
///
/// # Errors
///
/// A plugin that fails or never can start, or a name in the configuration of which nothing is there.
pub async fn start(name: &'static str, plugins: Plugins, config: &Config) -> Result<Scope, StartError> {
    let app = Scope::root(name);
    let error = match plugins.start(&app).await {
        Ok(()) => match ConfigErrors::check(unsettled(app.realm(), config)) {
            Ok(()) => return Ok(app),
            Err(wrong) => StartError::Unsettled(wrong),
        },
        Err(error) => match ConfigErrors::check(blame(app.realm(), config, &error)) {
            Ok(()) => StartError::Plugin(error),
            Err(wrong) => StartError::Unsettled(wrong),
        },
    };
    if let Err(closing) = app.close().await {
        // The start's own failure is what matters.
        tracing::warn!(%closing, "what had started did not close well");
    }
    Err(error)
}
