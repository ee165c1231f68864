//! The words that every agent begins with.

use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};
use session::Session;
use system_prompt::{PERSONA_SECTION, RuntimeFact, Section, Text};

/// Who an agent is, unless its deployment or its parent says otherwise.
pub const PERSONA: &str = "You are an agent that does tasks in a directory of the user's with the tools you are given. \
    Do what is asked, no more. Look before you change something, and check what you changed. When a call is denied, do \
    not try to get around it: go on with what you can do, and say in your final message what was denied and why you \
    needed it. Your final message is all that the user reads: say what you did and what you found.";

/// Registers the persona, and the facts that are true of every agent.
pub struct DefaultPrompt;

#[async_trait]
impl Plugin for DefaultPrompt {
    type Config = ();

    fn name(&self) -> &'static str {
        "default-prompt"
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        ctx.register::<dyn Section>(PERSONA_SECTION, Text::new(0, PERSONA))?;
        ctx.register::<dyn RuntimeFact>("directory", Arc::new(Directory))?;
        Ok(ctx.register::<dyn RuntimeFact>("date", Arc::new(Date))?)
    }
}

struct Directory;

impl RuntimeFact for Directory {
    fn order(&self) -> i32 {
        0
    }

    fn state(&self, session: &Session) -> Option<String> {
        Some(format!("Working directory: {}", session.header().cwd()))
    }
}

struct Date;

impl RuntimeFact for Date {
    fn order(&self) -> i32 {
        1
    }

    fn state(&self, session: &Session) -> Option<String> {
        let now = jiff::Timestamp::from_millisecond(i64::try_from(session.house().now()).ok()?).ok()?;
        Some(format!("Date: {}", now.to_zoned_datetime(jiff::tz::TimeZone::system()).date()))
    }
}
