//! A line of a log, without a look at the payload.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What a line says of its payload.
pub(crate) struct Envelope<'a> {
    pub seq: u64,
    pub time: u64,
    pub tag: Cow<'a, str>,
    pub ignorable: bool,
    /// A slice of the line.
    pub data: &'a str,
}

#[derive(Deserialize)]
struct Wire<'a> {
    seq: u64,
    time: u64,
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    ignorable: bool,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl<'a> Envelope<'a> {
    /// Reads any JSON that has what it takes.
    pub(crate) fn parse(line: &'a str) -> serde_json::Result<Self> {
        let Wire { seq, time, r#type: tag, ignorable, data } = serde_json::from_str(line)?;
        Ok(Self { seq, time, tag, ignorable, data: data.get() })
    }

    /// Reads the one form that we write, in half the time; `None` for any other. Whether the data is JSON is left open:
    /// if it is, then so is the line, with the same meaning.
    pub(crate) fn ours(line: &'a str) -> Option<Self> {
        let (seq, rest) = number(line.strip_prefix(r#"{"seq":"#)?)?;
        let (time, rest) = number(rest.strip_prefix(r#","time":"#)?)?;
        let (tag, rest) = rest.strip_prefix(r#","type":""#)?.split_once('"')?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
        if !tag.bytes().all(plain) {
            return None;
        }
        let (ignorable, rest) = match rest.strip_prefix(r#","ignorable":true"#) {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let data = rest.strip_prefix(r#","data":"#)?.strip_suffix('}')?;
        Some(Self { seq, time, tag: tag.into(), ignorable, data })
    }
}

/// A number as JSON has it, and what follows.
fn number(text: &str) -> Option<(u64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    let padded = length > 1 && digits.starts_with('0');
    if padded { None } else { Some((digits.parse().ok()?, rest)) }
}
