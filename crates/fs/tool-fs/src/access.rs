//! What the tools have in common: finding the files, asking for more, telling what failed.

use std::sync::Arc;

use fs::{FileSystem, FsError};
use sandbox::{Grant, Operation, one_line};
use tools::{Call, ToolOutput, code};
use user_approval::Escalation;
use user_approval::escalation::Asks;

pub(crate) fn files(call: &Call) -> Result<Arc<dyn FileSystem>, ToolOutput> {
    let none = || ToolOutput::error(code::FAILED, "there are no files here: no file system is composed");
    call.ctx.get::<dyn FileSystem>().ok_or_else(none)
}

pub(crate) fn failed(error: FsError) -> ToolOutput {
    let text = error.to_string();
    match error.denial() {
        Some(denial) => ToolOutput::error(code::SANDBOX_DENIED, text).with_meta(denial),
        None => ToolOutput::error(code::FAILED, text),
    }
}

/// Asks for what a call asks for, if it does, before anything of it runs.
pub(crate) async fn granted(
    call: &Call,
    files: &dyn FileSystem,
    (operation, path): (Operation, &str),
    asks: Asks<'_>,
    escalation: Escalation,
) -> Result<Option<Grant>, ToolOutput> {
    let named = async {
        let target = files.leads_to(path).await.map_err(failed)?;
        Ok(format!("{operation} {}", one_line(&target.to_string_lossy())))
    };
    escalation.granted(call, asks, files.mode(), named).await
}
