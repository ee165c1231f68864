use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};

use crate::{Command, Invocation, list};

/// Registers `/help`.
pub struct CommandsPlugin;

#[async_trait]
impl Plugin for CommandsPlugin {
    type Config = ();

    fn name(&self) -> &'static str {
        "commands"
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        Ok(ctx.register::<dyn Command>("help", Arc::new(Help))?)
    }
}

/// Says what there is.
struct Help;

#[async_trait]
impl Command for Help {
    fn description(&self) -> &str {
        "Lists the commands"
    }

    async fn run(&self, invocation: &Invocation) -> Result<String, String> {
        let mut text = String::new();
        for command in list(invocation.ctx.realm()) {
            let hint = command.hint.map_or_else(String::new, |hint| format!(" {hint}"));
            let _ = writeln!(text, "/{}{hint}: {}", command.name, command.description);
        }
        Ok(text.trim_end().to_owned())
    }
}
