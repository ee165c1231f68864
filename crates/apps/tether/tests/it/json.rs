//! What `--json` prints and what the logs hold are the same events.

mod agreement;
mod lines;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::run::process::Ran;
use crate::run::world::World;

/// The lines of one run, taken apart.
struct Printed {
    /// The first line and the last.
    session: Value,
    result: Value,
    /// The events of each session, byte for byte, in the order in which they were printed.
    events: BTreeMap<String, Vec<String>>,
    /// Children, as they were announced.
    children: Vec<Value>,
}

impl Printed {
    fn of(ran: &Ran) -> Self {
        assert!(ran.stdout.ends_with('\n'), "{}", ran.stdout);
        let mut lines = ran.json();
        let (result, session) = (lines.pop().expect("a last line"), lines.remove(0));
        assert_eq!((&session["type"], &result["type"]), (&"session".into(), &"result".into()));
        assert_eq!(session["id"], result["session"]);
        let children = lines.iter().filter(|line| line["type"] == "child").cloned().collect();
        let (mut events, mut count) = (BTreeMap::<String, Vec<String>>::new(), 0);
        let mut ended = Vec::new();
        for line in ran.stdout.lines() {
            if let Some(rest) = line.strip_prefix(r#"{"type":"child","phase":"end","session":""#) {
                ended.push(&rest[..rest.find('"').unwrap()]);
            } else if let Some((session, event)) = event(line) {
                count += 1;
                assert!(!ended.contains(&session), "its end is its last line: {line}");
                events.entry(session.to_owned()).or_default().push(event.to_owned());
            }
        }
        let printed = Self { session, result, events, children };
        assert_eq!(lines.len(), count + printed.children.len(), "every line is of a kind that is promised");
        printed
    }

    fn id(&self) -> &str {
        self.session["id"].as_str().unwrap()
    }
}

/// The session and the event of a line, cut out of it.
pub(crate) fn event(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix(r#"{"type":"event","session":""#)?;
    let (session, event) = rest.split_once(r#"","event":"#)?;
    Some((session, event.strip_suffix('}')?))
}

/// Holds the first run in a world to what its logs say.
#[track_caller]
pub(crate) fn check_whole(world: &World, ran: &Ran) {
    check_agreement(world, &Printed::of(ran), &BTreeMap::new());
}

/// Holds a run to what its logs say: each was `before` so many events long, and all the others were printed.
#[track_caller]
fn check_agreement(world: &World, printed: &Printed, before: &BTreeMap<String, usize>) {
    let logs = world.logs();
    for (id, log) in &logs {
        log.events();
        let kept: Vec<&str> = log.lines().skip(before.get(id).copied().unwrap_or(0)).collect();
        let told = printed.events.get(id).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(kept, told, "{id}");
    }
    assert!(printed.events.keys().all(|id| logs.contains_key(id)), "nothing is printed that is not kept");
}
