//! Which scenario shows which promise.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::Error as _;

/// The id of a promise, such as `D-07`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Promise(u32);

/// Every promise there is.
const KNOWN: [RangeInclusive<u32>; 5] = [1..=12, 20..=32, 40..=52, 60..=66, 70..=72];

/// Those that somebody sees who runs `tether`: each has a scenario.
const SHOWN: [RangeInclusive<u32>; 6] = [1..=2, 4..=11, 20..=20, 22..=32, 52..=52, 70..=71];

/// Those beside them that nobody could see who runs `tether`, and why.
const HIDDEN: [(u32, &str); 3] = [
    (3, "no command comes between the call of a start and its first poll"),
    (12, "the compiler refuses the programs that it is about"),
    (21, "every provider that a row can name offers every capability"),
];

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "D-{:02}", self.0)
    }
}

impl<'de> Deserialize<'de> for Promise {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = String::deserialize(deserializer)?;
        let mut known = KNOWN.into_iter().flatten().map(Self);
        known
            .find(|known| known.to_string() == id)
            .ok_or_else(|| D::Error::custom(format!("there is no promise `{id}`")))
    }
}

/// The table of promises, with the scenarios that show each.
pub(super) fn table(scenarios: &BTreeMap<String, Vec<Promise>>) -> String {
    let shown: BTreeSet<Promise> = SHOWN.into_iter().flatten().map(Promise).collect();
    let named: BTreeSet<Promise> = scenarios.values().flatten().copied().collect();
    let mut table = "| promise | shown by |\n|---|---|\n".to_owned();
    for promise in shown.union(&named) {
        let showing = scenarios.iter().filter(|(_, promises)| promises.contains(promise));
        let showing: Vec<String> = showing.map(|(name, _)| format!("`{name}`")).collect();
        assert!(!showing.is_empty(), "no scenario shows {promise}");
        writeln!(table, "| {promise} | {} |", showing.join(", ")).unwrap();
    }
    for (id, why) in HIDDEN {
        assert!(!named.contains(&Promise(id)), "{} cannot be shown: {why}", Promise(id));
        writeln!(table, "| {} | none: {why} |", Promise(id)).unwrap();
    }
    table
}

#[test]
fn a_promise_that_was_not_made_is_an_error() {
    let read = |id: &str| serde_json::from_value::<Promise>(id.into());
    assert_eq!(read("D-07").unwrap(), Promise(7));
    for id in ["D-7", "D-13", "D-99", "d-07", ""] {
        assert!(read(id).unwrap_err().to_string().contains(&format!("no promise `{id}`")));
    }
}

#[test]
#[should_panic(expected = "no scenario shows D-02")]
fn a_promise_without_a_scenario_is_an_error() {
    table(&BTreeMap::from([("a".to_owned(), vec![Promise(1)])]));
}
