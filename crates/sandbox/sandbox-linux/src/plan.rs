//! What the helper is told: the whole of a confinement, resolved.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use sandbox::{CannotConfine, CommandLine, Confinement, Extent, Mode, Network, Temp};
use serde::{Deserialize, Serialize};

/// How a command is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tier {
    /// Namespaces, Landlock, seccomp.
    Whole,
    /// Namespaces and seccomp, on a kernel without Landlock.
    WithoutLandlock,
    /// Landlock and seccomp.
    WithoutNamespaces,
}

/// Whether the command may write anything at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Files {
    ReadOnly,
    Writable,
}

/// What the command sees at `/tmp`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tmp {
    /// A directory of the session's own.
    Session(Raw),
    /// Nothing, and nothing can be written.
    Empty,
    /// What is there.
    Machine,
}

/// The plan of one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) tier: Tier,
    pub(crate) argv: Vec<Raw>,
    pub(crate) cwd: Raw,
    pub(crate) files: Files,
    pub(crate) network: Net,
    /// The session's directory, which is seen wherever it is.
    pub(crate) root: Raw,
    /// No one of them is below another.
    pub(crate) writable: Vec<Raw>,
    /// Writable whatever else is.
    pub(crate) exceptions: Vec<Raw>,
    pub(crate) hidden: Vec<Raw>,
    pub(crate) protected: Vec<(Raw, Reach)>,
    pub(crate) tmp: Tmp,
    /// Whether what the kernel lacks is told.
    pub(crate) tell: bool,
}

/// [`Network`], as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Net {
    Allowed,
    Denied,
}

/// [`Extent`], as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reach {
    Entry,
    Tree,
    File,
}

/// A string of the system's, which need not be Unicode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Text", into = "Text")]
pub(crate) struct Raw(OsString);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Unicode(String),
    Bytes(Vec<u8>),
}

impl From<Text> for Raw {
    fn from(text: Text) -> Self {
        match text {
            Text::Unicode(text) => Self(text.into()),
            Text::Bytes(bytes) => Self(OsString::from_vec(bytes)),
        }
    }
}

impl From<Raw> for Text {
    fn from(raw: Raw) -> Self {
        raw.0.into_string().map_or_else(|raw| Self::Bytes(raw.into_vec()), Self::Unicode)
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for Raw {
    fn from(text: &T) -> Self {
        Self(text.as_ref().to_owned())
    }
}

impl Raw {
    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.0)
    }

    pub(crate) fn text(&self) -> &OsStr {
        &self.0
    }
}

impl Plan {
    /// The plan that holds `confinement` for `command`, and where the command finds its temporary directory.
    ///
    /// # Errors
    ///
    /// What no set-up of this tier could hold.
    pub(crate) fn new(
        tier: Tier,
        command: &CommandLine<'_>,
        confinement: &Confinement,
    ) -> Result<(Self, PathBuf), CannotConfine> {
        let boundary = &confinement.boundary;
        let files = match boundary.mode() {
            Mode::ReadOnly => Files::ReadOnly,
            Mode::WorkspaceWrite => Files::Writable,
            Mode::DangerFullAccess => return refuse("danger-full-access confines nothing; use the plain guard"),
        };
        if let Some(why) = boundary.withheld() {
            return refuse(why);
        }
        if command.argv.is_empty() || command.argv.iter().any(|arg| arg.as_bytes().contains(&0)) {
            return refuse("a command is a program and its arguments, none of them with a NUL byte");
        }
        let shared = match &confinement.temp {
            Temp::Shared(path) => Some(path),
            Temp::Private(_) => None,
        };
        let mut writable = boundary.writable_roots().to_vec();
        if files == Files::Writable {
            writable.push(confinement.temp.path().to_owned());
        }
        let writable = outermost(writable);
        let exceptions = outermost(boundary.exceptions().to_vec());
        let hidden = outermost(boundary.unreadable_roots().to_vec());
        let machine = tier == Tier::WithoutNamespaces
            || shared.is_some()
            || [boundary.root()]
                .into_iter()
                .chain(writable.iter().map(PathBuf::as_path))
                .any(|root| root == Path::new("/tmp"));
        let tmp = match files {
            _ if machine => Tmp::Machine,
            Files::ReadOnly => Tmp::Empty,
            Files::Writable => Tmp::Session(Raw::from(confinement.temp.path())),
        };
        let seen = match &tmp {
            // Its own path leads there as well, and is the one that file tools know.
            Tmp::Machine | Tmp::Session(_) => confinement.temp.path().to_owned(),
            Tmp::Empty => PathBuf::from("/tmp"),
        };
        let reach = |extent| match extent {
            Extent::Entry => Reach::Entry,
            Extent::Tree => Reach::Tree,
            Extent::File => Reach::File,
        };
        let plan = Self {
            tier,
            argv: command.argv.iter().map(Raw::from).collect(),
            cwd: Raw::from(command.cwd),
            files,
            network: match confinement.network {
                Network::Allowed => Net::Allowed,
                Network::Denied => Net::Denied,
            },
            root: Raw::from(boundary.root()),
            writable: writable.iter().map(Raw::from).collect(),
            exceptions: exceptions.iter().map(Raw::from).collect(),
            hidden: hidden.iter().map(Raw::from).collect(),
            protected: boundary.protected().iter().map(|it| (Raw::from(&it.path), reach(it.extent))).collect(),
            tmp,
            tell: false,
        };
        plan.check()?;
        Ok((plan, seen))
    }

    /// What is the kernel's or the whole machine's cannot be handed out, and what is held must be in one place.
    fn check(&self) -> Result<(), CannotConfine> {
        let (root, kernel) = (self.root.path(), ["/proc", "/sys", "/dev"].map(Path::new));
        for path in self.writable().chain([root]) {
            if !path.is_absolute() {
                return refuse(format!("{} is not absolute", path.display()));
            }
            let in_memory = path.starts_with("/dev/shm") && path != Path::new("/dev/shm");
            if path == Path::new("/") || (kernel.iter().any(|dir| path.starts_with(dir)) && !in_memory) {
                return refuse(format!("{} cannot be a session's directory under confinement", path.display()));
            }
        }
        if let Some(path) = self.exceptions().find(|path| kernel.iter().any(|dir| path.starts_with(dir))) {
            return refuse(format!("{} cannot be left writable under confinement", path.display()));
        }
        if let Some(around) = self.hidden().find(|hidden| root.starts_with(hidden)) {
            return refuse(format!("{} is inside {}, which is hidden from commands", root.display(), around.display()));
        }
        let held = || self.hidden().chain(self.protected.iter().map(|(path, _)| path.path()));
        if let Tmp::Session(temp) = &self.tmp
            && let Some(path) = held().find(|path| path.starts_with(temp.path()) && !root.starts_with(temp.path()))
        {
            let temp = temp.path().display();
            return refuse(format!("{} cannot be held inside the temporary directory {temp}", path.display()));
        }
        let shown = |path: &Path| self.writable().find(|root| path.starts_with(root)).map(Path::display);
        let places = || self.protected.iter().map(|(path, _)| path.path()).filter(|path| scratch::is_place(path));
        if self.tier == Tier::WithoutNamespaces
            && let Some((place, root)) = places().find_map(|place| Some((place.display(), shown(place)?)))
        {
            return refuse(format!(
                "without namespaces, {place}, where sessions' temporary directories are, cannot be kept from a command that may \
                 write {root}: have a temporary directory of the session's own, with $TMPDIR outside of the workspace"
            ));
        }
        let below = |hidden: &Path| self.writable().find(|path| hidden.starts_with(path)).map(Path::display);
        if self.tier == Tier::WithoutNamespaces
            && let Some((hidden, path)) = self.hidden().find_map(|hidden| Some((hidden.display(), below(hidden)?)))
        {
            return refuse(format!("without namespaces, {hidden} cannot be kept from a command that may write {path}"));
        }
        Ok(())
    }

    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        self.writable.iter().map(Raw::path)
    }

    pub(crate) fn exceptions(&self) -> impl Iterator<Item = &Path> {
        self.exceptions.iter().map(Raw::path)
    }

    pub(crate) fn hidden(&self) -> impl Iterator<Item = &Path> {
        self.hidden.iter().map(Raw::path)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("names and numbers alone")
    }
}

fn refuse<T>(why: impl Into<String>) -> Result<T, CannotConfine> {
    Err(CannotConfine { why: why.into() })
}

/// Without what is below another.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup_by(|later, kept| later.starts_with(kept));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_another_goes() {
        let paths = ["/w/a", "/w", "/wa", "/w/a/b", "/t"].map(PathBuf::from).to_vec();
        assert_eq!(outermost(paths), ["/t", "/w", "/wa"].map(PathBuf::from));
    }

    #[test]
    fn any_name_survives_the_way_to_the_helper() {
        for bytes in [&b"plain"[..], b"", b"a\xffb", b"\n\"\\", "é".as_bytes()] {
            let raw = Raw::from(OsStr::from_bytes(bytes));
            let read: Raw = serde_json::from_slice(&serde_json::to_vec(&raw).unwrap()).unwrap();
            assert_eq!(read.text().as_bytes(), bytes);
        }
    }
}
