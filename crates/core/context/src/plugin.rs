use std::any::type_name;

use async_trait::async_trait;

use crate::{BoxError, Boxed, Ctx, Realm, Registration, Scope};

/// A unit of composition: a name, a typed configuration, the services it needs, and what it does with a scope.
#[async_trait]
pub trait Plugin: Send + Sync + 'static {
    /// What it is configured with; `()` if nothing.
    type Config: Send + 'static;

    /// Unique in an app.
    fn name(&self) -> &'static str;

    /// The services that must be there before it is applied.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// Provides and registers in `ctx`, which lives as long as the app and publishes into the app's realm.
    async fn apply(&self, ctx: &Ctx, config: Self::Config) -> Result<(), BoxError>;
}

/// A service that a plugin cannot do without.
pub struct Need {
    what: &'static str,
    met: fn(&Realm) -> bool,
}

impl Need {
    /// Needs the service of this type.
    pub fn of<T: ?Sized + Send + Sync + 'static>() -> Self {
        Self { what: type_name::<T>(), met: |realm| realm.get::<T>().is_some() }
    }
}

/// The plugins of an app, in the order in which they are tried.
#[derive(Default)]
pub struct Plugins {
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    needs: Vec<Need>,
    apply: Box<dyn FnOnce(Scope) -> Boxed<'static, Result<(), BoxError>> + Send>,
}

/// Why an app did not start. Everything already applied is closed with the scope it was started in.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// Nothing that is listed provides what these wait for.
    #[error("{}", stuck(.0))]
    Stuck(Vec<(&'static str, Vec<&'static str>)>),
    /// Two rows have the same name.
    #[error("the plugin `{0}` is listed twice")]
    Twice(&'static str),
    /// A plugin refused.
    #[error("the plugin `{name}` could not start")]
    Failed {
        /// The plugin.
        name: &'static str,
        /// What it said.
        source: BoxError,
    },
    /// The scope is closing.
    #[error("the app is closing")]
    Closing(#[from] crate::Closing),
}

/// No row of the list has this name.
#[derive(Debug, thiserror::Error)]
#[error("no plugin named `{name}`; there are: {}", .known.join(", "))]
pub struct UnknownPlugin {
    /// What was asked for.
    pub name: String,
    /// What there is.
    pub known: Vec<&'static str>,
}

impl Plugins {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plugin with its configuration.
    #[must_use]
    pub fn with<P: Plugin>(mut self, plugin: P, config: P::Config) -> Self {
        let (name, needs) = (plugin.name(), plugin.needs());
        let apply = Box::new(move |scope: Scope| -> Boxed<'static, _> {
            Box::pin(async move {
                plugin.apply(&scope, config).await?;
                scope.leave();
                Ok(())
            })
        });
        self.rows.push(Row { name, needs, apply });
        self
    }

    /// Takes a row off the list, as a configuration file may.
    pub fn without(mut self, name: &str) -> Result<Self, UnknownPlugin> {
        let before = self.rows.len();
        let known = self.names();
        self.rows.retain(|row| row.name != name);
        if self.rows.len() == before {
            return Err(UnknownPlugin { name: name.to_owned(), known });
        }
        Ok(self)
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.rows.iter().map(|row| row.name).collect()
    }

    /// Applies every plugin, each in a scope of its own that `app` owns. One whose needs are not there waits for
    /// those behind it in the list; when none can go on, the error names what is missing. They close in reverse, one
    /// after the other, and after everything that `app` owns later.
    pub async fn start(self, app: &Ctx) -> Result<(), BootError> {
        let names = self.names();
        if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(BootError::Twice(twice));
        }
        let mut waiting = self.rows;
        while !waiting.is_empty() {
            let Some(ready) = waiting.iter().position(|row| row.missing(app.realm()).is_empty()) else {
                let missing = |row: &Row| (row.name, row.missing(app.realm()));
                return Err(BootError::Stuck(waiting.iter().map(missing).collect()));
            };
            let Row { name, apply, .. } = waiting.remove(ready);
            apply(app.child(name)?).await.map_err(|source| BootError::Failed { name, source })?;
            // Something between it and what comes behind it, which closes first and may still need it.
            app.own(Registration::new(|| {}))?;
        }
        Ok(())
    }
}

impl Row {
    fn missing(&self, realm: &Realm) -> Vec<&'static str> {
        self.needs.iter().filter(|need| !(need.met)(realm)).map(|need| need.what).collect()
    }
}

fn stuck(rows: &[(&'static str, Vec<&'static str>)]) -> String {
    let row = |(name, missing): &(&str, Vec<&str>)| format!("the plugin `{name}` needs {}", missing.join(", "));
    rows.iter().map(row).collect::<Vec<_>>().join("; ")
}
