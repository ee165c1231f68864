//! What the kernel says that it has. Whether it holds is for [`enforcement`](sandbox::SandboxProvider::enforcement) to try.

use std::fs;

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};

/// Something that commands are confined with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// Whether there is any of it.
    pub available: bool,
    /// What there is of it, in a few words.
    pub text: String,
}

/// The newest first.
const ABIS: [(ABI, u32); 6] = [(ABI::V6, 6), (ABI::V5, 5), (ABI::V4, 4), (ABI::V3, 3), (ABI::V2, 2), (ABI::V1, 1)];

/// What the kernel of this machine has: namespaces, Landlock, seccomp.
pub fn features() -> [Feature; 3] {
    [namespaces(), landlock(), seccomp()]
}

fn namespaces() -> Feature {
    let there = ["user", "mnt", "pid", "ipc", "net"]
        .iter()
        .all(|kind| fs::exists(format!("/proc/self/ns/{kind}")).unwrap_or(false));
    let most =
        fs::read_to_string("/proc/sys/user/max_user_namespaces").ok().and_then(|most| most.trim().parse::<u64>().ok());
    let (available, text) = match (there, most) {
        (false, _) => (false, "the kernel has not all of them".to_owned()),
        (true, Some(0)) => (false, "switched off: /proc/sys/user/max_user_namespaces is 0".to_owned()),
        (true, Some(most)) => (true, format!("all kinds that are needed; at most {most} user namespaces")),
        (true, None) => (true, "all kinds that are needed; no limit is stated".to_owned()),
    };
    Feature { name: "namespaces", available, text }
}

/// A ruleset is made for each, and restricts nobody until it is applied.
fn landlock() -> Feature {
    let has = |abi: ABI| {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let rules = rules.handle_access(AccessFs::from_all(abi)).and_then(|rules| match Scope::from_all(abi) {
            scopes if scopes.is_empty() => Ok(rules),
            scopes => rules.scope(scopes),
        });
        rules.and_then(Ruleset::create).is_ok()
    };
    match ABIS.into_iter().find(|(abi, _)| has(*abi)) {
        Some((ABI::V6, _)) => Feature { name: "landlock", available: true, text: "version 6 or newer".to_owned() },
        Some((_, version)) => Feature { name: "landlock", available: true, text: format!("version {version}") },
        None => Feature { name: "landlock", available: false, text: "not in this kernel, or switched off".to_owned() },
    }
}

fn seccomp() -> Feature {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    match actions.split_whitespace().any(|action| action == "errno") {
        true => Feature { name: "seccomp", available: true, text: "filters".to_owned() },
        false => Feature { name: "seccomp", available: false, text: "not in this kernel".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_with_words() {
        let told = features();
        assert_eq!(told.each_ref().map(|feature| feature.name), ["namespaces", "landlock", "seccomp"]);
        assert!(told.iter().all(|feature| !feature.text.is_empty()));
    }
}
