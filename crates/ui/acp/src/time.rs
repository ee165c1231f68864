//! Times for clients.

/// A time in milliseconds since the Unix epoch, as ISO 8601 has it; `None` where that is beyond its calendar.
pub(crate) fn iso(millis: u64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()?;
    Some(time.to_string())
}
