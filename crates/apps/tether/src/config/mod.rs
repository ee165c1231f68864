//! `tether config`: what is configured, and by whom.

mod show;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use app_boot::{Boot, Config, ConfigErrors, Flags};
use bundle::Settings;

use crate::cli::{ConfigCommand, Configuring};
use crate::exit::{Exit, Failure, tell};

pub(crate) use app_boot::{Env, Places};

/// `tether config`.
pub(crate) fn config(command: ConfigCommand, home: Option<PathBuf>) -> Result<Exit, Failure> {
    let ConfigCommand::Show { configuring, json } = command;
    let boot = configuring.boot(home)?;
    let root = root(configuring.cwd.as_deref())?;
    match configuring.configure(&boot, &root) {
        Ok(config) => show::show(&boot, &root, &config, json),
        Err(errors) => {
            for error in errors.iter() {
                tell(Failure::usage(error.clone()));
            }
            Ok(Exit::Usage)
        }
    }
}

impl Configuring {
    /// What was found around the command.
    pub(crate) fn boot(&self, home: Option<PathBuf>) -> Result<Boot, Failure> {
        Boot::of_process(home, self.env_file.as_deref()).map_err(Failure::usage)
    }

    /// The configuration for work in `root`.
    pub(crate) fn configure(&self, boot: &Boot, root: &Path) -> Result<Config, ConfigErrors> {
        let Self { model, max_depth, max_children, budget_tokens, .. } = self;
        let (model, max_depth) = (model.clone(), *max_depth);
        boot.configure(root, Flags { model, max_depth, max_children: *max_children, tokens: *budget_tokens })
    }
}

/// What the model is without a name for it, and why: the first provider with a key, else the one that needs none.
pub(crate) fn default_model(settings: &Settings) -> Result<(llm::Route, &'static str), Failure> {
    match settings.models.providers_with_key().into_iter().next() {
        Some(route) => Ok((route, "the first provider with a key")),
        None => {
            let offline = OFFLINE.parse().context("the offline model's name").map_err(Failure::failed)?;
            Ok((offline, "no provider has a key"))
        }
    }
}

/// The model of a machine with no account.
const OFFLINE: &str = "offline/script";

/// The workspace root: a directory, canonicalised by the file system before anything looks at its name.
pub(crate) fn root(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let given = named.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let root = given.canonicalize().with_context(|| format!("no such directory: {}", given.display()));
    let root = root.map_err(Failure::usage)?;
    if !root.is_dir() {
        return Err(Failure::usage(anyhow!("{} is not a directory", given.display())));
    }
    Ok(root)
}
