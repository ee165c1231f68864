//! Which of the harness's variables a command sees.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The environment of a command: what is allowed of the harness's own, and what is added by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

const NAMES: [&str; 11] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TZ", "TMPDIR"];

const PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// In capitals and in small letters, since programs disagree.
const PROXIES: [&str; 5] = ["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"];

/// Parts of a name that say that its value is nobody else's, whatever family it puts itself in.
const CREDENTIALS: [&str; 10] =
    ["TOKEN", "SECRET", "PASS", "PWD", "CRED", "KEY", "AUTH", "COOKIE", "PRIVATE", "SIGNATURE"];

impl Environment {
    /// What is allowed of these, and nothing else: a secret does not reach a command by being in the environment.
    ///
    /// A proxy's address is passed without the name and password in it; who wants commands to have those names them with
    /// [`with`](Self::with).
    pub fn allowed<I>(vars: I) -> Self
    where
        I: IntoIterator<Item = (OsString, OsString)>,
    {
        let allowed = vars.into_iter().filter_map(|(name, value)| match Kind::of(name.to_str()?)? {
            Kind::Plain => Some((name, value)),
            Kind::Proxy => Some((name, without_user(value))),
        });
        Self(allowed.collect())
    }

    /// What is allowed of the harness's own.
    pub fn inherited() -> Self {
        Self::allowed(std::env::vars_os())
    }

    /// Adds a variable, or sets it anew. What is added by name is not judged.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// All of it, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

enum Kind {
    Plain,
    Proxy,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        let is_proxy = |proxy: &&str| *proxy == name || name == proxy.to_ascii_lowercase();
        let is_of_family = || PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !is_credential(name);
        if NAMES.contains(&name) || is_of_family() {
            Some(Self::Plain)
        } else if PROXIES.iter().any(is_proxy) {
            Some(Self::Proxy)
        } else {
            None
        }
    }
}

fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    CREDENTIALS.iter().any(|part| name.contains(part))
}

/// `scheme://name:password@host` without `name:password@`.
fn without_user(value: OsString) -> OsString {
    let bytes = value.as_bytes();
    let start = bytes.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
    let end = bytes[start..].iter().position(|byte| b"/?#,".contains(byte)).map_or(bytes.len(), |at| start + at);
    match bytes[start..end].iter().rposition(|byte| *byte == b'@') {
        Some(at) => OsString::from_vec([&bytes[..start], &bytes[start + at + 1..]].concat()),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: &str, seen: Option<&str>) {
        let environment = Environment::allowed([(name.into(), value.into())]);
        assert_eq!(environment.get(name), seen.map(OsStr::new), "{name}");
    }

    // D-65
    #[test]
    fn only_what_is_on_the_list_is_passed() {
        for name in NAMES.into_iter().chain(["LC_ALL", "LC_TIME", "XDG_RUNTIME_DIR", "XDG_DATA_DIRS", "XDG_SESSION_ID"])
        {
            check(name, "x", Some("x"));
        }
        for name in ["LD_PRELOAD", "SSH_AUTH_SOCK", "PATHS", "path", "HOMEX", "OPENAI_API_KEY", "LC", "XDG", "", "IFS"]
        {
            check(name, "x", None);
        }
    }

    // D-65
    #[test]
    fn a_credential_hides_in_no_family() {
        for name in
            ["XDG_TOKEN", "XDG_api_key", "XDG_SESSION_COOKIE", "LC_PASSWORD", "XDG_CREDENTIALS", "XDG_MY_SECRET"]
        {
            check(name, "x", None);
        }
    }

    // D-65
    #[test]
    fn a_proxy_is_passed_without_who_uses_it() {
        for name in ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ftp_proxy", "HTTP_PROXY"] {
            check(name, "http://proxy:3128", Some("http://proxy:3128"));
            check(name, "http://me:p@ss@proxy:3128/@x", Some("http://proxy:3128/@x"));
            check(name, "me:pass@proxy", Some("proxy"));
            check(name, "a.example,b.example", Some("a.example,b.example"));
        }
        check("Http_Proxy", "x", None);
    }

    #[test]
    fn what_is_added_by_name_is_passed() {
        let environment =
            Environment::allowed([("TERM".into(), "dumb".into())]).with("A_TOKEN", "x").with("TERM", "vt");
        let all: Vec<_> = environment.iter().collect();
        assert_eq!(all, [("A_TOKEN", "x"), ("TERM", "vt")].map(|(n, v)| (OsStr::new(n), OsStr::new(v))));
    }
}
