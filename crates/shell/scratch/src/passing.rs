use std::io;
use std::path::Path;

use crate::held::Held;
use crate::place::{leave, place};

/// A directory for a moment, of no session. It goes when this is dropped, or, where the process was killed, with those of
/// sessions.
#[derive(Debug)]
pub struct Passing(Option<Held>);

impl Passing {
    /// Makes it.
    ///
    /// # Errors
    ///
    /// What the machine says.
    pub fn make() -> io::Result<Self> {
        Ok(Self(Some(Held::make(|| place(None))?)))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), Held::path)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let Some(held) = self.0.take() else { return };
        let place = held.place().to_owned();
        // What cannot be removed now, the next sweep finds.
        let _ = held.remove();
        leave(&place);
    }
}
