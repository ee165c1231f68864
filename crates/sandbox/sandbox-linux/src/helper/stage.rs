use std::fmt::Display;

/// A step of the set-up that failed. Nothing of the command has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetUp {
    pub(crate) stage: &'static str,
    pub(crate) why: String,
}

impl SetUp {
    pub(crate) fn new(stage: &'static str, why: impl Display) -> Self {
        Self { stage, why: why.to_string() }
    }
}

/// Says which step an error belongs to.
pub(crate) trait Stage<T> {
    fn stage(self, stage: &'static str) -> Result<T, SetUp>;
    /// The same, with what it was about.
    fn stage_at(self, stage: &'static str, at: impl Display) -> Result<T, SetUp>;
}

impl<T, E: Display> Stage<T> for Result<T, E> {
    fn stage(self, stage: &'static str) -> Result<T, SetUp> {
        self.map_err(|error| SetUp::new(stage, error))
    }

    fn stage_at(self, stage: &'static str, at: impl Display) -> Result<T, SetUp> {
        self.map_err(|error| SetUp::new(stage, format_args!("{at}: {error}")))
    }
}
