use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Which tools an agent may use, by name. The default admits all.
///
/// Registered with `ctx.register::<ToolFilter>(name, filter)`: in an agent's scope for that agent alone, in the app's for
/// every agent. All apply, whatever their names, so one can only take away from another. What is not admitted is neither
/// shown to the model nor run. The one tool that they do not speak of is a [`HandIn`](crate::HandIn).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFilter {
    /// Only these, if it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<BTreeSet<Arc<str>>>,
    /// None of these.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub deny: BTreeSet<Arc<str>>,
}

impl ToolFilter {
    /// Only these.
    pub fn allowing<N: Into<Arc<str>>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { allow: Some(names.into_iter().map(Into::into).collect()), deny: BTreeSet::new() }
    }

    /// All but these.
    pub fn denying<N: Into<Arc<str>>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { allow: None, deny: names.into_iter().map(Into::into).collect() }
    }

    /// Whether a tool of this name may be used.
    pub fn admits(&self, name: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.contains(name)) && !self.deny.contains(name)
    }

    /// Whether it takes nothing away.
    pub fn admits_all(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    /// What both admit.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let allow = match (&self.allow, &other.allow) {
            (Some(ours), Some(theirs)) => Some(ours.intersection(theirs).cloned().collect()),
            (Some(names), None) | (None, Some(names)) => Some(names.clone()),
            (None, None) => None,
        };
        Self { allow, deny: self.deny.union(&other.deny).cloned().collect() }
    }

    /// Whether it admits nothing that `other` does not.
    pub fn is_within(&self, other: &Self) -> bool {
        match (&self.allow, &other.allow) {
            (Some(ours), _) => ours.iter().all(|name| !self.admits(name) || other.admits(name)),
            (None, Some(_)) => false,
            (None, None) => other.deny.is_subset(&self.deny),
        }
    }

    /// Every name that it speaks of.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.allow.iter().flatten().chain(&self.deny)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 4] = ["read", "write", "edit", "bash"];

    fn filters() -> impl Strategy<Value = ToolFilter> {
        let names = || prop::collection::btree_set(prop::sample::select(&NAMES[..3]).prop_map(Arc::from), 0..4);
        (prop::option::of(names()), names()).prop_map(|(allow, deny)| ToolFilter { allow, deny })
    }

    proptest! {
        // D-29
        #[test]
        fn two_filters_admit_what_both_do(one in filters(), other in filters()) {
            let both = one.and(&other);
            for name in NAMES {
                prop_assert_eq!(both.admits(name), one.admits(name) && other.admits(name));
            }
            prop_assert!(both.is_within(&one) && both.is_within(&other));
        }

        #[test]
        fn within_is_what_the_names_say(one in filters(), other in filters()) {
            // A name that neither speaks of stands for all the others.
            let within = NAMES.iter().all(|name| !one.admits(name) || other.admits(name));
            prop_assert_eq!(one.is_within(&other), within);
        }
    }

    #[test]
    fn the_default_admits_all_and_says_nothing() {
        let open = ToolFilter::default();
        assert!(open.admits_all() && open.admits("anything"));
        assert_eq!(serde_json::to_string(&open).unwrap(), "{}");
        let written = serde_json::to_string(&ToolFilter::denying(["write", "bash"])).unwrap();
        assert_eq!(written, r#"{"deny":["bash","write"]}"#);
        assert!(serde_json::from_str::<ToolFilter>(r#"{"denied":["write"]}"#).is_err());
    }
}
