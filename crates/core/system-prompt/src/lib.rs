//! What every request begins with, and the facts that change.
//!
//! *Owns:* the ordered sections of the system prompt, and the runtime context: facts told in a message that is appended
//! only when they change, so that the cached prefix of a conversation stays byte for byte the same.
//! *Never:* a section or a fact of its own, the log.
//!
//! ```
//! # use std::sync::Arc; use context::Scope; use system_prompt::*;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! app.register::<dyn Section>("tone", Text::new(20, "Be brief."))?;
//! app.register::<dyn Section>("persona", Text::new(10, "You are a harbour pilot."))?;
//! let mut prompt = Prompt::new(app.realm());
//! assert_eq!(&**prompt.assemble(), "You are a harbour pilot.\n\nBe brief.");
//! // An agent's own section takes the place of the app's, for that agent alone.
//! let agent = app.child_in("agent", app.realm().nested())?;
//! agent.register::<dyn Section>("persona", Text::new(10, "You review code."))?;
//! assert_eq!(&**Prompt::new(agent.realm()).assemble(), "You review code.\n\nBe brief.");
//! # drop(agent); app.close().await?; Ok(()) }
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use context::Realm;
use session::Session;

/// How a runtime context message begins. A user message that begins so is the harness's, not a person's.
pub const RUNTIME_CONTEXT_TAG: &str = "<runtime-context>";

/// The name of the section that says who an agent is. A child with a persona of its own has one that shadows the app's.
pub const PERSONA_SECTION: &str = "persona";

/// A part of the system prompt. Registered by name with `ctx.register::<dyn Section>(name, section)`; one registered in
/// an agent's scope shadows the app's of that name.
pub trait Section: Send + Sync {
    /// Lower comes first. Equal ones keep the order of registration.
    fn order(&self) -> i32;

    /// The text, the same every time: what changes is a [`RuntimeFact`].
    fn text(&self) -> Cow<'_, str>;
}

/// A section whose text is known.
pub struct Text {
    order: i32,
    text: Box<str>,
}

/// A fact that may change while an agent lives: its scope, the date. Registered by name with
/// `ctx.register::<dyn RuntimeFact>(name, fact)`.
pub trait RuntimeFact: Send + Sync {
    /// Lower comes first. Equal ones keep the order of registration.
    fn order(&self) -> i32;

    /// What holds now for the agent of this session, in one short statement; `None` to say nothing.
    fn state(&self, session: &Session) -> Option<String>;
}

/// The system prompt as seen from one realm.
pub struct Prompt {
    realm: Realm,
    seen: Option<u64>,
    text: Arc<str>,
    facts: Vec<Arc<dyn RuntimeFact>>,
}

impl Text {
    /// A section to register.
    pub fn new(order: i32, text: impl Into<Box<str>>) -> Arc<Self> {
        Arc::new(Self { order, text: text.into() })
    }
}

impl Section for Text {
    fn order(&self) -> i32 {
        self.order
    }

    fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.text)
    }
}

impl Prompt {
    /// Looks sections and facts up from `realm`, again whenever something there changes.
    pub fn new(realm: &Realm) -> Self {
        Self { realm: realm.clone(), seen: None, text: "".into(), facts: Vec::new() }
    }

    /// The sections in order, a blank line between them. The same allocation until the text changes.
    pub fn assemble(&mut self) -> &Arc<str> {
        self.refresh();
        &self.text
    }

    /// The facts that hold now, as one message; `None` if there are none.
    pub fn runtime_context(&mut self, session: &Session) -> Option<String> {
        self.refresh();
        let facts: Vec<String> = self.facts.iter().filter_map(|fact| fact.state(session)).collect();
        if facts.is_empty() {
            return None;
        }
        Some(format!("{RUNTIME_CONTEXT_TAG}\n{}\n</runtime-context>", facts.join("\n")))
    }

    fn refresh(&mut self) {
        let version = self.realm.version();
        if self.seen == Some(version) {
            return;
        }
        let mut sections = self.realm.all_named::<dyn Section>();
        sections.sort_by_key(|(_, section)| section.order());
        let texts: Vec<_> =
            sections.iter().map(|(_, section)| section.text()).filter(|text| !text.is_empty()).collect();
        let text = texts.join("\n\n");
        if *text != *self.text {
            self.text = text.into();
        }
        let mut facts = self.realm.all_named::<dyn RuntimeFact>();
        facts.sort_by_key(|(_, fact)| fact.order());
        self.facts = facts.into_iter().map(|(_, fact)| fact).collect();
        // Last: a section that panics is asked again.
        self.seen = Some(version);
    }
}

#[cfg(test)]
mod tests {
    use context::Scope;
    use session::{SessionTitle, Sessions};

    use super::*;

    struct Title(i32);

    impl RuntimeFact for Title {
        fn order(&self) -> i32 {
            self.0
        }

        fn state(&self, session: &Session) -> Option<String> {
            session.latest::<SessionTitle>().map(|title| format!("{}: {}", self.0, title.title))
        }
    }

    #[tokio::test]
    async fn sections_are_ordered_cached_and_follow_their_registrations() {
        let app = Scope::root("app");
        let mut prompt = Prompt::new(app.realm());
        assert_eq!(&**prompt.assemble(), "");
        let late = app.realm().register::<dyn Section>("late", Text::new(9, "late")).unwrap();
        app.register::<dyn Section>("empty", Text::new(0, "")).unwrap();
        app.register::<dyn Section>("early", Text::new(-1, "early")).unwrap();
        let first = prompt.assemble().clone();
        assert_eq!(&*first, "early\n\nlate");
        app.register::<dyn RuntimeFact>("other", Arc::new(Title(1))).unwrap();
        assert!(Arc::ptr_eq(&first, prompt.assemble()), "an unrelated change keeps the text");
        drop(late);
        assert_eq!(&**prompt.assemble(), "early");
        app.close().await.unwrap();
    }

    #[tokio::test]
    async fn facts_speak_in_order_or_not_at_all() {
        let app = Scope::root("app");
        app.register::<dyn RuntimeFact>("b", Arc::new(Title(2))).unwrap();
        app.register::<dyn RuntimeFact>("a", Arc::new(Title(1))).unwrap();
        let session = Sessions::new().create("/home/me");
        let mut prompt = Prompt::new(app.realm());
        assert_eq!(prompt.runtime_context(&session), None);
        session.append(SessionTitle { title: "t".into(), source: "user".into() }).unwrap();
        let told = "<runtime-context>\n1: t\n2: t\n</runtime-context>";
        assert_eq!(prompt.runtime_context(&session).as_deref(), Some(told));
        app.close().await.unwrap();
    }
}
