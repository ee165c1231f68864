//! Directories that a program may write all the same, whatever the mode: its own state, as an operator names it.

use std::path::{Path, PathBuf};

use super::{Boundary, Workspace, lexical};
use crate::Mode;

/// A directory that no confinement may leave open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be left writable: {why}", path.display())]
pub struct NoException {
    /// The directory.
    pub path: PathBuf,
    /// What speaks against it.
    pub why: &'static str,
}

impl Workspace {
    /// What `mode` means here for a program that may write in these directories all the same: absolute and canonical.
    /// They are apart from whatever the mode is there to protect.
    ///
    /// # Errors
    ///
    /// The first of them that holds the session's directory, something protected or something of Tether's own, is inside
    /// of such, or would open a part of the session's directory under a mode that closes it.
    pub fn boundary_except(&self, mode: Mode, exceptions: &[PathBuf]) -> Result<Boundary, NoException> {
        let mut boundary = self.boundary(mode);
        if !boundary.is_confined() {
            return Ok(boundary);
        }
        for path in exceptions {
            let no = |why| Err(NoException { path: path.clone(), why });
            if !path.is_absolute() || lexical(path) != *path {
                return no("its path is not absolute and canonical");
            }
            if path.parent().is_none() {
                return no("it is everything");
            }
            if self.root.starts_with(path) {
                return no("the session's directory is in it, or is it");
            }
            if self.private.iter().any(|own| meet(own, path)) {
                return no("there is something of Tether's own in it, or around it");
            }
            if path.starts_with(&self.root) {
                match mode {
                    // Writable as it is, but for what is protected.
                    Mode::WorkspaceWrite => continue,
                    Mode::ReadOnly | Mode::DangerFullAccess => return no("it is inside the session's directory"),
                }
            }
            let named = self.protected.iter().map(|path| lexical(&self.root.join(path)));
            let known = boundary.protected().iter().map(|protected| protected.path.clone());
            if named.chain(known).any(|protected| meet(&protected, path)) {
                return no("there is something protected in it, or around it");
            }
            boundary.exceptions.push(path.clone());
        }
        Ok(boundary)
    }
}

impl Boundary {
    /// Directories below which files may be written whatever the mode is, and which are not below the writable roots. See
    /// [`Workspace::boundary_except`].
    pub fn exceptions(&self) -> &[PathBuf] {
        &self.exceptions
    }
}

fn meet(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        Workspace::new("/h/w").temp("/t/s1").home("/h/.own").protect("/x/kept")
    }

    #[track_caller]
    fn refused(mode: Mode, path: &str, why: &str) {
        let refused = workspace().boundary_except(mode, &[path.into()]).unwrap_err();
        assert!(refused.to_string().contains(path) && refused.why.contains(why), "{refused}");
    }

    // D-62
    #[test]
    fn what_a_mode_protects_is_no_exception() {
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
            refused(mode, "state", "not absolute");
            refused(mode, "/s/../h", "not absolute and canonical");
            refused(mode, "/", "everything");
            for around in ["/h", "/h/w"] {
                refused(mode, around, "the session's directory");
            }
            for own in ["/h/.own", "/h/.own/sessions"] {
                refused(mode, own, "Tether's own");
            }
            for kept in ["/x", "/x/kept", "/x/kept/below"] {
                refused(mode, kept, "protected");
            }
        }
        refused(Mode::ReadOnly, "/h/w/.git/hooks", "inside the session's directory");
    }

    // D-62
    #[test]
    fn exceptions_are_beside_the_roots() {
        let (inside, beside) = (PathBuf::from("/h/w/.git/hooks"), PathBuf::from("/h/.agent"));
        let boundary = workspace().boundary_except(Mode::ReadOnly, std::slice::from_ref(&beside)).unwrap();
        assert_eq!((boundary.exceptions(), boundary.writable_roots().len()), (&[beside.clone()][..], 0));
        let boundary = workspace().boundary_except(Mode::WorkspaceWrite, &[inside, beside.clone()]).unwrap();
        assert_eq!(boundary.exceptions(), std::slice::from_ref(&beside), "what is inside is held as it is");
        assert_eq!(boundary.protected(), workspace().boundary(Mode::WorkspaceWrite).protected());
        let open = workspace().boundary_except(Mode::DangerFullAccess, &[beside]).unwrap();
        assert_eq!(open, workspace().boundary(Mode::DangerFullAccess));
    }
}
