use std::sync::Arc;

use async_trait::async_trait;
use commands::{Command, Invocation};

use crate::Permission;

/// `/preset`: says which preset is in force, or chooses one.
pub(crate) struct PresetCommand(pub(crate) Arc<Permission>);

#[async_trait]
impl Command for PresetCommand {
    fn description(&self) -> &str {
        "Says which permission preset is in force, or chooses one"
    }

    fn hint(&self) -> Option<&str> {
        Some("[name]")
    }

    async fn run(&self, invocation: &Invocation) -> Result<String, String> {
        let Self(permission) = self;
        if !invocation.arguments.is_empty() {
            permission.choose(&invocation.session, &invocation.arguments).map_err(|error| error.to_string())?;
        }
        let names: Vec<_> = permission.presets().iter().map(|preset| &*preset.name).collect();
        Ok(format!("{} is in force; there are: {}", permission.current(&invocation.session), names.join(", ")))
    }
}
