use std::time::Duration;

use genai::webc::StreamTimeout;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use llm::{LlmError, LlmErrorKind};
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::config::Secret;
use crate::provider::Provider;

/// The most characters that a provider's own words take up in an error.
const QUOTED: usize = 300;

/// Turns what went wrong into one line that holds no key.
pub(crate) struct Teller<'a> {
    pub(crate) provider: Provider,
    pub(crate) key: Option<&'a Secret>,
    pub(crate) place: &'a str,
    pub(crate) idle_timeout: Duration,
}

impl Teller<'_> {
    pub(crate) fn tell(&self, error: &genai::Error) -> LlmError {
        let name = self.provider.name();
        match error {
            genai::Error::HttpError { status, body, headers, .. } => self.answered(*status, body, headers),
            genai::Error::WebStream { error, .. } => self.broke(&**error),
            genai::Error::ChatResponse { body, .. } => self.reported(body),
            genai::Error::StreamParse { serde_error, .. } => {
                self.error(LlmErrorKind::Protocol, &format!("{name} sent what is not JSON: {serde_error}"))
            }
            genai::Error::JsonValueExt(error) => {
                self.error(LlmErrorKind::Protocol, &format!("{name} sent an incomplete event: {error}"))
            }
            other => self.error(LlmErrorKind::InvalidRequest, &format!("{name} could not be asked: {other}")),
        }
    }

    /// What a provider says went wrong in the middle of a reply that began well.
    pub(crate) fn reported(&self, body: &Value) -> LlmError {
        let inner = body.get("error").unwrap_or(body);
        let word = |key: &str| inner.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = inner.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let kind = match number.and_then(|code| StatusCode::from_u16(code).ok()) {
            Some(status) => kind_of(status),
            None => [word("type"), word("code"), word("status")]
                .iter()
                .find_map(|word| named_kind(word))
                .unwrap_or(LlmErrorKind::ProviderFailed),
        };
        let said = quoted(&said(&body.to_string()), self.key);
        self.error(kind, &format!("{} reported: {said}", self.provider.name()))
    }

    /// An error of this provider.
    pub(crate) fn error(&self, kind: LlmErrorKind, message: &str) -> LlmError {
        LlmError::new(kind, one_line(message, self.key))
    }

    fn answered(&self, status: StatusCode, body: &str, headers: &HeaderMap) -> LlmError {
        let said = match status.is_redirection() {
            true => format!("redirects are not followed: set {}", self.provider.address_variable()),
            false => quoted(&said(body), self.key),
        };
        let message = format!("{} answered {}: {said}", self.provider.name(), status.as_u16());
        let message = message.trim_end_matches([':', ' ']);
        let wait = retry_after(headers);
        let wanted = wait.map_or_else(String::new, |wait| format!(" (it asks to wait {} s)", wait.as_secs()));
        LlmError { retry_after: wait, ..self.error(kind_of(status), &format!("{message}{wanted}")) }
    }

    fn broke(&self, error: &(dyn std::error::Error + Send + Sync + 'static)) -> LlmError {
        let name = self.provider.name();
        if let Some(error) = error.downcast_ref::<genai::Error>() {
            return self.tell(error);
        }
        if error.is::<StreamTimeout>() {
            let idle = self.idle_timeout;
            return self.error(LlmErrorKind::TimedOut, &format!("{name} sent nothing for {idle:?}"));
        }
        let cause = deepest(error);
        let Some(error) = error.downcast_ref::<reqwest::Error>() else {
            return self.error(LlmErrorKind::Protocol, &format!("{name} sent what cannot be read: {cause}"));
        };
        let (kind, message) = if error.is_connect() {
            (LlmErrorKind::Unreachable, format!("{name} cannot be reached at {}: {cause}", self.place))
        } else if error.is_timeout() {
            (LlmErrorKind::TimedOut, format!("{name} took too long: {cause}"))
        } else if error.is_body() || error.is_decode() {
            (LlmErrorKind::Truncated, format!("{name}'s reply was cut off before its end: {cause}"))
        } else if error.is_request() {
            (LlmErrorKind::ProviderFailed, format!("{name} closed the connection without an answer: {cause}"))
        } else {
            (LlmErrorKind::InvalidRequest, format!("{name} could not be asked: {cause}"))
        };
        self.error(kind, &message)
    }
}

/// The last cause in a chain: the others repeat the URL.
pub(crate) fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(error) => error.to_string().split(" for url (").next().unwrap_or_default().to_owned(),
        None => cause.to_string(),
    }
}

/// Text without line breaks, control characters or the key.
pub(crate) fn one_line(text: &str, key: Option<&Secret>) -> String {
    let hidden = match key.map(Secret::reveal) {
        Some(key) if key.len() >= 4 => text.replace(key, "***"),
        _ => text.to_owned(),
    };
    let words = hidden.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn quoted(text: &str, key: Option<&Secret>) -> String {
    let line = one_line(text, key);
    match line.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The words for a person in the body of an error, whatever its shape.
fn said(body: &str) -> String {
    fn find(value: &Value) -> Option<&str> {
        match value {
            Value::String(text) => Some(text),
            Value::Array(items) => items.first().and_then(find),
            Value::Object(map) => {
                ["error", "message", "detail", "msg"].iter().find_map(|key| map.get(*key).and_then(find))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }
    let value: Option<Value> = serde_json::from_str(body).ok();
    value.as_ref().and_then(find).unwrap_or(body).to_owned()
}

fn kind_of(status: StatusCode) -> LlmErrorKind {
    match status.as_u16() {
        401 | 403 => LlmErrorKind::Unauthorized,
        429 => LlmErrorKind::RateLimited,
        500.. => LlmErrorKind::ProviderFailed,
        _ => LlmErrorKind::InvalidRequest,
    }
}

fn named_kind(word: &str) -> Option<LlmErrorKind> {
    Some(match word {
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" | "RESOURCE_EXHAUSTED" => {
            LlmErrorKind::RateLimited
        }
        "authentication_error" | "permission_error" | "invalid_api_key" | "UNAUTHENTICATED" | "PERMISSION_DENIED" => {
            LlmErrorKind::Unauthorized
        }
        "invalid_request_error"
        | "not_found_error"
        | "request_too_large"
        | "context_length_exceeded"
        | "INVALID_ARGUMENT"
        | "NOT_FOUND"
        | "FAILED_PRECONDITION" => LlmErrorKind::InvalidRequest,
        _ => return None,
    })
}

/// When to come back: in milliseconds, seconds, or as a date, which is held against the provider's own clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse::<f64>().ok()?).ok();
    if let Some(wait) = text("retry-after-ms").and_then(seconds) {
        return Some(wait / 1000);
    }
    let asked = text(RETRY_AFTER.as_str())?;
    seconds(asked).or_else(|| {
        let date = |text: &str| rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
        let now = text(DATE.as_str()).and_then(date).unwrap_or_else(Timestamp::now);
        Some(Duration::try_from(date(asked)?.duration_since(now)).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_wait(headers: &[(&'static str, &'static str)], wait: Option<u64>) {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        assert_eq!(retry_after(&headers), wait.map(Duration::from_millis));
    }

    #[test]
    fn a_wait_can_be_written_in_three_ways() {
        check_wait(&[], None);
        check_wait(&[("retry-after", "2")], Some(2_000));
        check_wait(&[("retry-after", "0.5")], Some(500));
        check_wait(&[("retry-after", "60"), ("retry-after-ms", "1500")], Some(1_500));
        let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        check_wait(&[now, ("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")], Some(3_000));
        check_wait(&[now, ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0));
        for nonsense in ["soon", "-1", "inf", "NaN", "1e300", ""] {
            check_wait(&[("retry-after", nonsense)], None);
        }
    }

    #[test]
    fn a_persons_words_are_found_in_any_shape() {
        for body in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"error":"no"}"#,
            r#"[{"error":{"code":400,"message":"no"}}]"#,
            r#"{"type":"error","error":{"type":"x","message":"no"}}"#,
            r#"{"detail":[{"msg":"no"}]}"#,
            "no",
        ] {
            assert_eq!(said(body), "no", "{body}");
        }
        assert_eq!(said("<html>\n"), "<html>\n");
    }

    #[test]
    fn a_line_is_one_line_and_keeps_the_key_to_itself() {
        let key = Secret::from("sk-secret");
        assert_eq!(one_line("a\r\nb\u{1b}[31mc\tsk-secret.", Some(&key)), "a b [31mc ***.");
        let long = format!("{}sk-secret{}", "x".repeat(295), "y".repeat(20));
        assert_eq!(quoted(&long, Some(&key)), format!("{}***yy…", "x".repeat(295)), "hidden first, then cut");
    }
}
