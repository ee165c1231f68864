use std::borrow::Cow;
use std::sync::mpsc;
use std::time::Duration;

use async_trait::async_trait;
use fs::{Change, FsError, Previous, WriteOutcome};
use sandbox::{Operation, one_line};
use schemars::JsonSchema;
use serde::Deserialize;
use similar::TextDiff;
use tools::{Call, ToolOutput, TypedTool, code};
use user_approval::Escalation;
use user_approval::escalation::{Asks, Justification, SandboxPermissions};

use crate::FileChanged;
use crate::access::{failed, files, granted};
use crate::replace::{Times, replace, senseless};

/// The longest text that is compared, in bytes.
const DIFF_INPUT: usize = 256 * 1024;

/// The longest difference that is told, in bytes.
const DIFF_OUTPUT: usize = 16 * 1024;

/// How long two texts are compared before the difference is told more coarsely.
const DIFF_TIME: Duration = Duration::from_millis(50);

pub(crate) struct Write {
    pub(crate) escalation: Escalation,
}

pub(crate) struct Edit {
    pub(crate) escalation: Escalation,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteArgs {
    /// Absolute, or relative to the workspace root.
    path: String,
    /// The whole new content.
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SandboxPermissions")]
    sandbox_permissions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Justification")]
    justification: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditArgs {
    /// Absolute, or relative to the workspace root.
    path: String,
    /// The text to replace, exactly as it is in the file. It must be unique, unless `replace_all`.
    old_text: String,
    /// What takes its place.
    new_text: String,
    /// Replace it wherever it occurs.
    #[serde(default)]
    replace_all: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SandboxPermissions")]
    sandbox_permissions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Justification")]
    justification: Option<String>,
}

#[async_trait]
impl TypedTool for Write {
    type Args = WriteArgs;

    fn name(&self) -> &str {
        "write"
    }

    fn description(&self) -> Cow<'_, str> {
        "Creates a text file or replaces all of it; missing directories are created. To change a part, use `edit`."
            .into()
    }

    async fn run(&self, args: WriteArgs, call: &Call) -> ToolOutput {
        self.write(args, call).await.unwrap_or_else(|output| output)
    }
}

impl Write {
    async fn write(&self, args: WriteArgs, call: &Call) -> Result<ToolOutput, ToolOutput> {
        let files = files(call)?;
        let asks = asks(&args.sandbox_permissions, &args.justification);
        let grant = granted(call, &*files, (Operation::Write, &args.path), asks, self.escalation).await?;
        let written = files.write(&args.path, args.content.clone().into_bytes(), grant.as_ref()).await;
        let written = written.map_err(failed)?;
        let diff = match &written.previous {
            Previous::Content(old) => str::from_utf8(old).ok().and_then(|old| difference(old, &args.content)),
            Previous::Absent | Previous::Unknown => None,
        };
        let verb = if written.previous == Previous::Absent { "created" } else { "replaced" };
        let path = written.path.to_string_lossy();
        let text = format!("{verb} {} ({} bytes)", one_line(&path), written.bytes);
        Ok(ToolOutput::text(text).with_meta(&changed(&written, diff)))
    }
}

#[async_trait]
impl TypedTool for Edit {
    type Args = EditArgs;

    fn name(&self) -> &str {
        "edit"
    }

    fn description(&self) -> Cow<'_, str> {
        "Replaces a text in a file by another. Read the file first: `old_text` must match it exactly.".into()
    }

    async fn run(&self, args: EditArgs, call: &Call) -> ToolOutput {
        self.edit(args, call).await.unwrap_or_else(|output| output)
    }
}

impl Edit {
    async fn edit(&self, args: EditArgs, call: &Call) -> Result<ToolOutput, ToolOutput> {
        let files = files(call)?;
        if let Some(why) = senseless(&args.old_text, &args.new_text) {
            return Err(ToolOutput::error(code::INVALID_ARGUMENTS, why));
        }
        let asks = asks(&args.sandbox_permissions, &args.justification);
        let grant = granted(call, &*files, (Operation::Edit, &args.path), asks, self.escalation).await?;
        let times = if args.replace_all { Times::All } else { Times::Once };
        let (tell, told) = mpsc::channel();
        let change: Change = Box::new(move |text| {
            let (new, count) = replace(text, &args.old_text, &args.new_text, times)?;
            // Nobody listens when the call was dropped.
            let _dropped = tell.send((count, difference(text, &new)));
            Ok(new)
        });
        let path = args.path;
        let edited = files.update(&path, change, grant.as_ref()).await.map_err(|error| match error {
            FsError::Refused(why) => ToolOutput::error(code::FAILED, format!("{why} ({})", one_line(&path))),
            error => failed(error),
        })?;
        let (count, diff) = told.try_recv().unwrap_or_default();
        let path = edited.path.to_string_lossy();
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let text = format!("edited {}: replaced {times}", one_line(&path));
        Ok(ToolOutput::text(text).with_meta(&changed(&edited, diff)))
    }
}

fn asks<'a>(sandbox_permissions: &'a Option<String>, justification: &'a Option<String>) -> Asks<'a> {
    Asks { sandbox_permissions: sandbox_permissions.as_deref(), justification: justification.as_deref() }
}

fn changed(outcome: &WriteOutcome, diff: Option<String>) -> FileChanged {
    FileChanged {
        path: outcome.path.to_string_lossy().into_owned(),
        created: outcome.previous == Previous::Absent,
        bytes: outcome.bytes,
        diff,
    }
}

fn difference(old: &str, new: &str) -> Option<String> {
    if old.len().max(new.len()) > DIFF_INPUT {
        return None;
    }
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new).unified_diff().to_string();
    Some(diff).filter(|diff| diff.len() <= DIFF_OUTPUT)
}
