use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Unread;
use super::files::Room;

/// Whose git works beside the agent: the person's own configuration leads git to places as a repository's does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitUser {
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// Configuration files beyond a repository's, absolute. None of them need exist.
    pub configs: Vec<PathBuf>,
}

impl GitUser {
    /// Whoever runs this process, as its environment says, with the machine's configuration.
    pub fn of_this_process() -> Self {
        let named = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = named("HOME");
        let below_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let settings = named("XDG_CONFIG_HOME").or_else(|| below_home(".config")).map(|dir| dir.join("git/config"));
        let system = named("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into());
        let global = [below_home(".gitconfig"), settings, named("GIT_CONFIG_GLOBAL")];
        let configs = global.into_iter().flatten().chain([system]).collect();
        Self { home, configs }
    }
}

/// A place as a setting names it. `None` where nobody here is at home.
pub(super) fn expanded(path: &Path, home: Option<&Path>) -> Result<Option<PathBuf>, Unread> {
    let Some(named) = path.as_os_str().as_bytes().strip_prefix(b"~") else { return Ok(Some(path.to_owned())) };
    let name = named.split(|byte| *byte == b'/').next().unwrap_or_default();
    let slashes = named[name.len()..].iter().take_while(|byte| **byte == b'/').count();
    let below = &named[name.len() + slashes..];
    let home = if name.is_empty() { home.map(Path::to_owned) } else { Some(home_of(name)?) };
    Ok(home.map(|home| home.join(OsStr::from_bytes(below))))
}

fn home_of(name: &[u8]) -> Result<PathBuf, Unread> {
    let users = Room::default().content(Path::new("/etc/passwd"))?;
    home_in(&users, name).ok_or_else(|| Unread::NobodyHere { name: String::from_utf8_lossy(name).into_owned() })
}

/// Its sixth field, passwd(5).
fn home_in(users: &[u8], name: &[u8]) -> Option<PathBuf> {
    let mut lines = users.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':'));
    let home = lines.find_map(|mut fields| (fields.next()? == name).then(|| fields.nth(4))?)?;
    Some(PathBuf::from(OsStr::from_bytes(home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_this_users_or_a_named_ones() {
        let home = Some(Path::new("/h"));
        let found = |path: &str, home| expanded(Path::new(path), home).unwrap();
        assert_eq!(found("a/~", home), Some("a/~".into()));
        assert_eq!(found("~/a", home), Some("/h/a".into()));
        assert_eq!(found("~//a", home), Some("/h/a".into()));
        assert_eq!(found("~", home), Some("/h".into()));
        assert_eq!(found("~/a", None), None);
        let users = b"root:x:0:0:root:/root:/bin/sh\nann:x:1:1::/home/ann b:/bin/sh\nshort:x\n";
        assert_eq!(home_in(users, b"ann"), Some("/home/ann b".into()));
        assert_eq!((home_in(users, b"short"), home_in(users, b"an")), (None, None));
        let nobody = expanded(Path::new("~no such user/a"), home).unwrap_err();
        assert_eq!(nobody.to_string(), "it names the home of \"no such user\", who is not in /etc/passwd");
    }
}
