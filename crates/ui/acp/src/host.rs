use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Scope};
use llm::Route;
use session::{Session, Vocabulary};
use session_store::SessionStore;

/// Whoever serves: it makes the apps that sessions run in, one for each session, since what a project may narrow hangs on
/// the session's workspace root.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// An app for one session with this workspace root, which is absolute, canonical and a directory. Closed when the
    /// session is.
    ///
    /// # Errors
    ///
    /// What is wrong with the configuration, for the person at the client.
    async fn house(&self, root: &Path) -> Result<House, BoxError>;

    /// Writes what a new session begins with into its log: its mode, its preset.
    ///
    /// # Errors
    ///
    /// What the session cannot begin with.
    fn begin(&self, house: &House, session: &Session) -> Result<(), BoxError>;

    /// Where sessions are kept, to list them and to remove them, and the words that are known of their logs.
    fn store(&self) -> (Arc<dyn SessionStore>, Arc<Vocabulary>);
}

/// An app, started, and which models it has.
pub struct House {
    /// The app.
    pub app: Scope,
    /// The model of a session that has used none yet.
    pub model: Route,
    /// What can be chosen, the first one first.
    pub models: Vec<Route>,
}
