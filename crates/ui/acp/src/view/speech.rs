//! What a model is saying, before the log has it.

/// Which of the two a model says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Text,
    Thought,
}

/// A turn and a step of it: one message of the model.
pub(super) type StepId = (u32, u32);

/// What has arrived of messages that the log may not have.
#[derive(Default)]
pub(super) struct Speech {
    /// The last step of which anything was heard.
    step: StepId,
    /// What was heard of it and not shown yet.
    waiting: Vec<(Voice, String)>,
    /// The last step of which anything was shown. It may be one before, of which the log has the rest.
    begun: StepId,
    /// What was shown of it, by voice.
    shown: [String; 2],
}

impl Speech {
    /// More of the message of a step. What was not shown of the one before is shown from the log.
    pub(super) fn hear(&mut self, step: StepId, voice: Voice, text: &str) {
        if step != self.step {
            self.step = step;
            self.waiting.clear();
        }
        match self.waiting.last_mut() {
            Some((last, said)) if *last == voice => said.push_str(text),
            _ => self.waiting.push((voice, text.to_owned())),
        }
    }

    /// What can be shown when everything that the log has was, the message of step `logged` last.
    pub(super) fn take(&mut self, logged: Option<StepId>) -> (StepId, Vec<(Voice, String)>) {
        let waiting = std::mem::take(&mut self.waiting);
        if logged.is_some_and(|logged| logged >= self.step) {
            return (self.step, Vec::new());
        }
        if !waiting.is_empty() && self.begun != self.step {
            self.begun = self.step;
            self.shown = Default::default();
        }
        for (voice, text) in &waiting {
            self.shown[*voice as usize].push_str(text);
        }
        (self.step, waiting)
    }

    /// What is still to be shown of a message that the log has.
    pub(super) fn rest<'a>(&self, step: StepId, voice: Voice, whole: &'a str) -> &'a str {
        match step == self.begun {
            // One that was begun anew, since its request failed half way, is shown anew.
            true => whole.strip_prefix(&*self.shown[voice as usize]).unwrap_or(whole),
            false => whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Voice::{Text, Thought};
    use super::*;

    #[test]
    fn everything_is_shown_once_whether_it_is_heard_or_read_first() {
        let mut speech = Speech::default();
        speech.hear((1, 1), Thought, "hm");
        speech.hear((1, 1), Text, "he");
        speech.hear((1, 1), Text, "ll");
        assert_eq!(speech.take(None).1, [(Thought, "hm".to_owned()), (Text, "hell".to_owned())]);
        speech.hear((1, 1), Text, "o");
        assert_eq!(speech.rest((1, 1), Text, "hello"), "o");
        assert_eq!(speech.rest((1, 1), Thought, "hm"), "");
        assert_eq!(speech.take(Some((1, 1))).1, [], "the log had it");
        speech.hear((1, 2), Text, "a");
        speech.hear((1, 3), Text, "b");
        assert_eq!(speech.rest((1, 2), Text, "a"), "a", "it was never shown");
        assert_eq!(speech.take(Some((1, 2))), ((1, 3), vec![(Text, "b".to_owned())]));
        assert_eq!(speech.rest((1, 3), Text, "c"), "c", "it was begun anew");
        speech.hear((1, 4), Text, "d");
        assert_eq!(speech.rest((1, 3), Text, "bc"), "c", "it was begun, and is shown late");
    }
}
