use std::time::Duration;

use llm::LlmError;

/// How often a request is tried again, at most.
const RETRIES: u32 = 3;
/// What all waits of one request stay under.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long to go on with one request.
pub(crate) struct Retries {
    delay: Duration,
    done: u32,
    waited: Duration,
}

impl Retries {
    /// Waits `delay` before the first retry, and twice as long before each further one.
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, done: 0, waited: Duration::ZERO }
    }

    /// How long to wait before trying again, or `None` to give up.
    pub(crate) fn after(&mut self, error: &LlmError) -> Option<Duration> {
        if !error.is_transient() || self.done == RETRIES {
            return None;
        }
        let wait = (self.delay * 2_u32.pow(self.done)).max(error.retry_after.unwrap_or_default());
        let waited = self.waited.saturating_add(wait);
        if waited >= PATIENCE {
            return None;
        }
        (self.done, self.waited) = (self.done + 1, waited);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use llm::LlmErrorKind::{self, *};

    fn error(kind: LlmErrorKind, retry_after: Option<u64>) -> LlmError {
        LlmError { retry_after: retry_after.map(Duration::from_secs), ..LlmError::new(kind, "no") }
    }

    #[track_caller]
    fn check(errors: &[LlmError], waits: &[Option<u64>]) {
        let mut retries = Retries::new(Duration::from_secs(1));
        let got: Vec<_> = errors.iter().map(|e| retries.after(e).map(|wait| wait.as_secs())).collect();
        assert_eq!(got, waits);
    }

    #[test]
    fn three_retries_each_later_than_the_one_before() {
        check(&vec![error(ProviderFailed, None); 4], &[Some(1), Some(2), Some(4), None]);
    }

    #[test]
    fn a_provider_that_asks_for_time_gets_it_within_reason() {
        check(&[error(RateLimited, Some(9))], &[Some(9)]);
        check(&[error(RateLimited, Some(15))], &[None]);
        check(&[error(RateLimited, Some(u64::MAX))], &[None]);
        check(&vec![error(RateLimited, Some(7)); 3], &[Some(7), Some(7), None]);
    }

    #[test]
    fn what_would_fail_again_is_not_tried_again() {
        for kind in [Unauthorized, InvalidRequest, Truncated, TimedOut, Protocol] {
            check(&[error(kind, Some(1))], &[None]);
        }
    }
}
