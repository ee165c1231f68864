use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};
use llm::{LlmAdapter, LlmError, LlmErrorKind, Reply, Request};
use serde::Deserialize;

use crate::play::{Play, cut};
use crate::{FileScript, Script};

/// Registers the provider `offline`: the model `script` is a [`Script`], and `file` a [`FileScript`] where one is
/// configured. It refuses to start if that file cannot be read.
pub struct LlmScript;

/// What [`LlmScript`] is configured with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The replies of `offline/file`, in the form that [`FileScript`] reads.
    pub file: Option<PathBuf>,
}

struct Offline {
    file: Option<FileScript>,
}

#[async_trait]
impl Plugin for LlmScript {
    type Config = Config;

    fn name(&self) -> &'static str {
        "llm-script"
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let file = match config.file {
            Some(path) => Some(ctx.spawn_blocking("read the script file", || FileScript::open(path))?.await??),
            None => None,
        };
        Ok(ctx.register::<dyn LlmAdapter>("offline", Arc::new(Offline { file }))?)
    }
}

impl LlmAdapter for Offline {
    fn reply(&self, request: Request) -> Reply {
        let why = match (&*request.model, &self.file) {
            ("script", _) => return Script.reply(request),
            ("file", Some(file)) => return file.reply(request),
            ("file", None) => {
                "the model `offline/file` has no file: name one in `[offline] script` of the configuration, or \
                               in TETHER_OFFLINE_SCRIPT"
                    .to_owned()
            }
            (other, _) => {
                format!("no model `{}` at `offline`; there are: offline/script, offline/file", cut(other, 60))
            }
        };
        Play::error(LlmError::new(LlmErrorKind::InvalidRequest, why)).into()
    }
}
