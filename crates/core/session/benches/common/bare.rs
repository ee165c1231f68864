//! What a log is compared with when it is read.

use std::hint::black_box;

/// Reads lines of a log as `serde_json` alone would.
pub(crate) fn parse_bare(lines: &str) {
    for line in lines.lines() {
        black_box(serde_json::from_str::<Envelope<'_>>(line).expect("it was written"));
    }
}

#[derive(serde::Deserialize)]
#[expect(dead_code, reason = "parsed to be timed")]
struct Envelope<'a> {
    seq: u64,
    time: u64,
    r#type: &'a str,
    #[serde(default)]
    ignorable: bool,
    #[serde(borrow)]
    data: &'a serde_json::value::RawValue,
}
