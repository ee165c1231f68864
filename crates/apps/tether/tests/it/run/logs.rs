use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A log as it is on disk: whole lines.
#[derive(Debug)]
pub(crate) struct Log {
    text: String,
}

/// A line of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Event<'a> {
    pub(crate) seq: u64,
    #[serde(rename = "time")]
    pub(crate) _time: u64,
    #[serde(rename = "type")]
    pub(crate) tag: &'a str,
    /// Whether a program that does not know it may go on without it.
    #[serde(default, rename = "ignorable")]
    pub(crate) _ignorable: bool,
    #[serde(borrow)]
    pub(crate) data: &'a RawValue,
}

impl Log {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'), "{} does not end in a whole line", path.display());
        Self { text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn header_line(&self) -> &str {
        self.text.lines().next().unwrap()
    }

    pub(crate) fn header(&self) -> Value {
        serde_json::from_str(self.header_line()).unwrap()
    }

    /// The lines behind the header, as they stand.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().skip(1)
    }

    /// Every event, counted from 0 without a gap.
    pub(crate) fn events(&self) -> Vec<Event<'_>> {
        let events: Vec<Event<'_>> = self.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        assert!(events.iter().map(|event| event.seq).eq(0..events.len() as u64), "{}", self.text);
        events
    }

    /// What the events of one kind say.
    pub(crate) fn all(&self, tag: &str) -> Vec<Value> {
        self.events().iter().filter(|event| event.tag == tag).map(Event::data).collect()
    }

    /// The reason for which its last turn ended.
    pub(crate) fn last_end(&self) -> String {
        let ends = self.all("turn/end");
        ends.last().expect("a turn ended")["reason"]["kind"].as_str().unwrap().to_owned()
    }
}

impl Event<'_> {
    pub(crate) fn data(&self) -> Value {
        serde_json::from_str(self.data.get()).unwrap()
    }
}
