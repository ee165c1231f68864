//! A tool that is there while its provider is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use context::{BoxError, Ctx, Realm, RegisterError, Registration};
use subagent::{RESULT_TOOL, SubagentProvider};
use tools::Tool;

use crate::delegate::tool;
use crate::{Config, Services};

/// The longest name that models' providers take.
const NAME_LIMIT: usize = 64;

/// Two tools would have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a tool named `{0}` already: each delegation tool needs a name of its own")]
pub struct ToolTwice(pub Arc<str>);

/// A name that models' providers would not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be a tool's name: it takes 1 to {NAME_LIMIT} letters, digits, `_` or `-`")]
pub struct InvalidName(pub Arc<str>);

/// A name that is taken in every child that hands a result in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be a tool's name: children hand their results in with it")]
pub struct ReservedName(pub Arc<str>);

/// Keeps a tool's name for it while its provider is away.
struct Name;

/// Follows the provider, from now until the scope closes.
pub(crate) fn begin(ctx: &Ctx, config: Config, services: &Services) -> Result<(), BoxError> {
    let tool = config.tool.clone();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if tool.is_empty() || tool.len() > NAME_LIMIT || !tool.bytes().all(fits) {
        return Err(InvalidName(sandbox::one_line(&tool).to_string().into()).into());
    }
    if *tool == *RESULT_TOOL {
        return Err(ReservedName(tool).into());
    }
    match ctx.register::<Name>(tool.clone(), Arc::new(Name)) {
        Err(RegisterError::NameTaken(_)) => return Err(ToolTwice(tool).into()),
        reserved => reserved?,
    }
    if ctx.realm().named::<dyn Tool>(&tool).is_some() {
        return Err(ToolTwice(tool).into());
    }
    let (realm, wanted, offered) = (ctx.realm().clone(), AtomicUsize::new(0), Mutex::default());
    let offer = Arc::new(Offer { realm, config, services: services.clone(), wanted, offered });
    let following = offer.clone();
    ctx.own(services.subagents.providers().on_change(move |_| following.follow()))?;
    offer.follow();
    Ok(())
}

/// Goes, and the tool with it, when nobody follows any more.
struct Offer {
    realm: Realm,
    config: Config,
    services: Services,
    /// How many changes have not been looked at. Whoever brings the first looks, for all that come meanwhile.
    wanted: AtomicUsize,
    offered: Mutex<Option<Offered>>,
}

/// The tool, and the provider that it is there for.
struct Offered {
    provider: Arc<dyn SubagentProvider>,
    _tool: Registration,
}

impl Offer {
    /// Brings the tool in line with the providers that there are. Changes may come from anywhere at the same time, and
    /// registering tells listeners, so no lock is held meanwhile.
    fn follow(&self) {
        if self.wanted.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let mut seen = 1;
        loop {
            self.look();
            let before = self.wanted.fetch_sub(seen, Ordering::AcqRel);
            seen = before - seen;
            if seen == 0 {
                return;
            }
        }
    }

    fn look(&self) {
        let provider = self.services.subagents.providers().get(&self.config.provider);
        let old = {
            let mut offered = self.lock();
            match (&*offered, &provider) {
                (None, None) => return,
                (Some(current), Some(provider)) if Arc::ptr_eq(&current.provider, provider) => return,
                (None | Some(_), _) => offered.take(),
            }
        };
        drop(old);
        let Some(provider) = provider else { return };
        // What a stranger's provider does must not end the following.
        let Ok(inherits) = catch_unwind(AssertUnwindSafe(|| provider.inherits_parent_context())) else {
            tracing::error!(provider = %self.config.provider, tool = %self.config.tool, "a provider panicked");
            return;
        };
        let tool = tool(&self.config, &self.services, inherits);
        match self.realm.register::<dyn Tool>(self.config.tool.clone(), tool) {
            Err(taken) => tracing::error!(tool = %self.config.tool, %taken, "a delegation tool cannot be offered"),
            // In the place of nothing: nobody but who looks puts something there.
            Ok(_tool) => *self.lock() = Some(Offered { provider, _tool }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Offered>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
