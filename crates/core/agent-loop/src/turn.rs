//! One turn: zero or more steps.

use std::sync::Arc;

use agent::{FailedRequest, Opening, Recourse, Rejected, StepInput, StopVerdict, StoppingTurn, TurnOutcome};
use llm::{Assembly, Finish, LlmError, Message, ToolCall, Usage};
use session::{
    AssistantMessage, Closed, InboxAccepted, MessageId, Source, StepEnd, StepStart, ToolCalled, ToolErrorCode,
    ToolReturned, TurnReason, Typed, UserMessage,
};
use tools::{Call, Then, ToolOutput};

use crate::STEP_LIMIT;
use crate::ask::Heard;
use crate::hand::{Hand, Told};

/// What a step comes to.
enum Step {
    /// The model is to be asked again.
    Next,
    /// The turn would stop, for this reason.
    Stop(TurnReason),
    /// A tool ended the turn: nothing else enters it, and nobody is asked.
    End,
}

impl Hand {
    /// Plays a turn and says why it ended. The caller writes its end.
    pub(crate) async fn play(
        &mut self,
        opening: &mut Opening,
        outcome: &mut TurnOutcome,
    ) -> Result<TurnReason, Closed> {
        let mut incoming: Vec<UserMessage> = opening.messages.iter().map(entering).collect();
        for step in 1..=STEP_LIMIT {
            if opening.cancelled.is_cancelled() {
                // What was claimed is history, whatever becomes of the turn.
                self.enter(incoming, opening)?;
                return Ok(self.aborted());
            }
            let stop = match self.step(step, incoming, opening, outcome).await? {
                Step::Next => None,
                Step::Stop(TurnReason::Completed) => Some(TurnReason::Completed),
                Step::Stop(reason) => return Ok(reason),
                Step::End if opening.cancelled.is_cancelled() => return Ok(self.aborted()),
                Step::End => return Ok(TurnReason::Completed),
            };
            // Before more is claimed: what waits stays for the next turn.
            if opening.cancelled.is_cancelled() {
                return Ok(self.aborted());
            }
            if step == STEP_LIMIT {
                // Nor is anything claimed that no step is left for.
                let Some(reason) = stop else { break };
                return Ok(reason);
            }
            incoming = self.steered(opening);
            let Some(reason) = stop else { continue };
            if incoming.is_empty() {
                outcome.reason = reason.clone();
                incoming = self.notices(outcome, opening).await;
                if incoming.is_empty() && !opening.cancelled.is_cancelled() {
                    return Ok(reason);
                }
            }
        }
        let message = format!("stopped after {STEP_LIMIT} steps: the model kept asking for tools");
        Ok(TurnReason::Error { message: Some(message.into()) })
    }

    async fn step(
        &mut self,
        step: u32,
        incoming: Vec<UserMessage>,
        opening: &Opening,
        outcome: &mut TurnOutcome,
    ) -> Result<Step, Closed> {
        let turn = outcome.turn;
        let messages = match self.admit(turn, step, &incoming, opening).await {
            Some(Ok(messages)) => messages,
            Some(Err(Rejected(why))) => return Ok(Step::Stop(TurnReason::Blocked { message: Some(why) })),
            None => {
                self.enter(incoming, opening)?;
                return Ok(Step::Stop(self.aborted()));
            }
        };
        self.tell_facts()?;
        self.enter(messages, opening)?;
        self.session.append(StepStart { turn, step })?;
        let stepped = self.model_step(turn, step, opening, outcome).await?;
        self.session.append(StepEnd { turn, step })?;
        Ok(stepped)
    }

    /// What the layers make of the messages of a step; `None` if the turn was cancelled meanwhile.
    async fn admit(
        &mut self,
        turn: u32,
        step: u32,
        incoming: &[UserMessage],
        opening: &Opening,
    ) -> Option<Result<Vec<UserMessage>, Rejected>> {
        let input = StepInput { agent: self.agent.clone(), turn, step, messages: incoming.to_vec() };
        let admitting = self.before_step.through(input, |input| async move { Ok(input.messages) });
        opening.cancelled.run_until_cancelled(admitting).await
    }

    fn enter(&mut self, messages: Vec<UserMessage>, opening: &Opening) -> Result<(), Closed> {
        for UserMessage { id, message, source } in messages {
            let accepted = opening.messages.iter().any(|accepted| accepted.id == id);
            // What did not come by the inbox is brought in by this event.
            let id = |seq| if accepted { id } else { MessageId(seq) };
            self.session.append_with(|seq| UserMessage { id: id(seq), message, source })?;
        }
        Ok(())
    }

    async fn model_step(
        &mut self,
        turn: u32,
        step: u32,
        opening: &Opening,
        outcome: &mut TurnOutcome,
    ) -> Result<Step, Closed> {
        let (mut attempt, mut spent) = (1, None);
        let (mut assembled, stop) = loop {
            let (error, assembled) = match self.ask(opening).await? {
                Ok(Heard::Whole(assembled, Finish::Stop)) => break (assembled, None),
                Ok(Heard::Whole(assembled, Finish::MaxTokens)) => break (assembled, Some(TurnReason::MaxTokens)),
                Ok(Heard::Whole(assembled, Finish::Refusal)) => {
                    let message = Some("the model declined to answer".into());
                    break (assembled, Some(TurnReason::Blocked { message }));
                }
                Ok(Heard::Cancelled { assembled }) => break (assembled, Some(self.aborted())),
                Ok(Heard::Failed { error, assembled }) => (error, assembled),
                Err(message) => break (Assembly::new().done(), Some(TurnReason::Error { message: Some(message) })),
            };
            let recourse = match assembled.message.content.is_empty() {
                true => opening.cancelled.run_until_cancelled(self.recourse(attempt, error.clone())).await,
                false => Some(Recourse::Fail),
            };
            let again = match recourse {
                Some(Recourse::Fail) => {
                    break (assembled, Some(TurnReason::Error { message: Some(error.to_string().into()) }));
                }
                Some(Recourse::Retry(pause)) => {
                    opening.cancelled.run_until_cancelled(tokio::time::sleep(pause)).await.is_some()
                }
                None => false,
            };
            if !again {
                break (assembled, Some(self.aborted()));
            }
            spent = together(spent, assembled.usage);
            attempt += 1;
        };
        let interrupted = matches!(stop, Some(TurnReason::Error { .. } | TurnReason::Aborted { .. }));
        if stop.is_some() {
            // Calls that will not run must not stand in the history without a result.
            assembled.message.content.retain(|part| !matches!(part, llm::Content::ToolCall(_)));
        }
        let message = Arc::new(assembled.message);
        let usage = together(spent, assembled.usage);
        outcome.usage += usage.unwrap_or_default();
        if message.content.iter().any(|part| part.as_text().is_some_and(|text| !text.is_empty())) {
            outcome.output = Some(message.clone());
        }
        // What was paid for is told, also where nothing came of it.
        if !(interrupted && message.content.is_empty() && usage.is_none()) {
            let message = message.clone();
            self.session.append(AssistantMessage { turn, step, message, usage, interrupted })?;
        }
        match stop {
            Some(reason) => Ok(Step::Stop(reason)),
            None => self.run_tools(turn, step, message.tool_calls(), opening).await,
        }
    }

    async fn run_tools(
        &mut self,
        turn: u32,
        step: u32,
        asked: impl Iterator<Item = &ToolCall>,
        opening: &Opening,
    ) -> Result<Step, Closed> {
        let mut calls = Vec::new();
        for ToolCall { call_id, name, arguments } in asked.cloned() {
            let (ctx, session) = (self.agent.ctx().clone(), self.session.clone());
            let cancelled = opening.cancelled.clone();
            self.session.append(ToolCalled {
                turn,
                step,
                call_id: call_id.clone(),
                name: name.clone(),
                arguments: arguments.clone(),
            })?;
            calls.push(Call { ctx, session, call_id, name, arguments, cancelled });
        }
        if calls.is_empty() {
            return Ok(Step::Stop(TurnReason::Completed));
        }
        let (mut written, mut ends) = (Ok(0), false);
        let session = self.session.clone();
        self.tools
            .run_all(calls, |call, output| {
                let ToolOutput { content, error, meta, then } = output;
                ends |= then == Then::EndTurn;
                let (call_id, is_error) = (call.call_id.clone(), error.is_some());
                let error = error.map(|code| ToolErrorCode { code });
                let result = ToolReturned { turn, step, call_id, content, is_error, error, meta };
                written = written.and_then(|_| session.append(result));
            })
            .await;
        written?;
        Ok(if ends { Step::End } else { Step::Next })
    }

    /// Messages that came in for the open turn; from now on they are settled with it.
    fn steered(&mut self, opening: &mut Opening) -> Vec<UserMessage> {
        let claimed = self.driven.claim_for_step();
        let incoming = claimed.iter().map(entering).collect();
        opening.messages.extend(claimed);
        incoming
    }

    /// What layers have to say before the turn stops.
    async fn notices(&mut self, outcome: &TurnOutcome, opening: &Opening) -> Vec<UserMessage> {
        let stopping = StoppingTurn { agent: self.agent.clone(), outcome: outcome.clone() };
        let stopping = self.on_turn_stop.through(stopping, |_| async { StopVerdict::Stop });
        match opening.cancelled.run_until_cancelled(stopping).await {
            None | Some(StopVerdict::Stop) => Vec::new(),
            Some(StopVerdict::Continue(messages)) => {
                let id = MessageId(self.session.len());
                messages.into_iter().map(|message| UserMessage { id, message, source: Source::Notice }).collect()
            }
        }
    }

    async fn recourse(&mut self, attempt: u32, error: LlmError) -> Recourse {
        let failed = FailedRequest { agent: self.agent.clone(), attempt, error };
        self.on_request_error.through(failed, |_| async { Recourse::Fail }).await
    }

    /// Appends the facts that change, if they did.
    fn tell_facts(&mut self) -> Result<(), Closed> {
        let facts = self.prompt.runtime_context(&self.session);
        if facts.is_none() && matches!(self.told, Told::Unread) {
            return Ok(());
        }
        let last = match &self.told {
            Told::Last(last) => last.clone(),
            Told::Unread => self.last_told(),
        };
        if let Some(facts) = facts
            && last.as_deref() != Some(&*facts)
        {
            let message = Arc::new(Message::user(facts.as_str()));
            let source = Source::RuntimeContext;
            self.session.append_with(|seq| UserMessage { id: MessageId(seq), message, source })?;
            self.told = Told::Last(Some(facts.into()));
        } else {
            self.told = Told::Last(last);
        }
        Ok(())
    }

    fn last_told(&self) -> Option<Arc<str>> {
        let log = self.session.snapshot();
        let mut messages = log.events().iter().rev().filter_map(|event| event.get::<UserMessage>());
        let last = messages.find(|message| message.source == Source::RuntimeContext)?;
        Some(last.message.text_cow().as_ref().into())
    }

    fn aborted(&self) -> TurnReason {
        TurnReason::Aborted { cause: self.driven.cancel_cause() }
    }
}

fn entering(accepted: &Typed<InboxAccepted>) -> UserMessage {
    UserMessage { id: accepted.id, message: accepted.message.clone(), source: accepted.source }
}

/// What attempts at one step cost, where it was told.
fn together(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    match (one, other) {
        (Some(mut sum), Some(more)) => {
            sum += more;
            Some(sum)
        }
        (one, other) => one.or(other),
    }
}
