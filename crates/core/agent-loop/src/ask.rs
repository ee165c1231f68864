//! One model request: its header, its checkpoint, its stream.

use std::sync::Arc;

use agent::{Live, Opening, RequestInput, Signal};
use futures_util::StreamExt as _;
use llm::{Assembled, Assembly, Chunk, Finish, LlmAdapter, LlmError, LlmErrorKind, Request};
use session::{Closed, HeaderReason, RequestHeader, RequestHeaderEvent};

use crate::hand::Hand;

/// The longest reply that is taken, in bytes.
const REPLY_LIMIT: usize = 32 * 1024 * 1024;

/// What came of a request.
pub(crate) enum Heard {
    /// A whole reply.
    Whole(Assembled, Finish),
    /// An error, and what had arrived before it.
    Failed { error: LlmError, assembled: Assembled },
    /// The turn was cancelled, and what had arrived before.
    Cancelled { assembled: Assembled },
}

impl Hand {
    /// Asks the model. The inner error ends the turn before anything was asked, in one line.
    pub(crate) async fn ask(&mut self, opening: &Opening) -> Result<Result<Heard, Arc<str>>, Closed> {
        self.look_at_profile();
        let header = self.write_header()?;
        let messages = match self.session.messages() {
            Ok(messages) => messages,
            Err(damaged) => return Ok(Err(damaged.to_string().into())),
        };
        let adapter = match self.adapter() {
            Ok(adapter) => adapter,
            Err(unknown) => return Ok(Err(unknown)),
        };
        if let Err(error) = self.session.flush().await {
            return Ok(Err(error.to_string().into()));
        }
        let request = Request {
            model: header.model.clone(),
            system: header.system.clone(),
            messages,
            tools: header.tools.clone(),
            sampling: header.sampling.clone(),
        };
        let input = RequestInput { agent: self.agent.clone(), request };
        let (cancelled, live) = (&opening.cancelled, &mut self.live);
        let asked = self.model_request.through(input, |input| {
            let adapter = &adapter;
            async move { Ok(adapter.reply(input.request)) }
        });
        let mut assembly = Assembly::new();
        let mut reply = match cancelled.run_until_cancelled(asked).await {
            None => return Ok(Ok(Heard::Cancelled { assembled: assembly.done() })),
            Some(Err(error)) => return Ok(Ok(Heard::Failed { error, assembled: assembly.done() })),
            Some(Ok(reply)) => reply,
        };
        let session = self.session.id();
        let mut stopped = std::pin::pin!(cancelled.cancelled());
        loop {
            let next = tokio::select! {
                biased;
                () = &mut stopped => return Ok(Ok(Heard::Cancelled { assembled: assembly.done() })),
                next = reply.next() => next,
            };
            match next {
                Some(Ok(Chunk::End(finish))) => return Ok(Ok(Heard::Whole(assembly.done(), finish))),
                Some(Ok(chunk)) => {
                    // A stream that is always ready leaves room for others, and for whoever cancels it.
                    tokio::task::coop::consume_budget().await;
                    if assembly.size() > REPLY_LIMIT {
                        let message = format!("the model's reply has more than {REPLY_LIMIT} bytes");
                        let error = LlmError::new(LlmErrorKind::Protocol, message);
                        return Ok(Ok(Heard::Failed { error, assembled: assembly.done() }));
                    }
                    if live.is_heard()
                        && let Some(signal) = signal(&chunk)
                    {
                        live.emit(&Live { session, signal });
                    }
                    assembly.push(chunk);
                }
                Some(Err(error)) => return Ok(Ok(Heard::Failed { error, assembled: assembly.done() })),
                None => {
                    let (error, assembled) = (LlmError::truncated(), assembly.done());
                    return Ok(Ok(Heard::Failed { error, assembled }));
                }
            }
        }
    }

    /// Somebody may have chosen another model since the last request.
    fn look_at_profile(&mut self) {
        let profile = self.agent.profile();
        if !Arc::ptr_eq(&profile, &self.profile) {
            (self.profile, self.adapter, self.header) = (profile, None, None);
        }
    }

    /// The header of the next request; written to the log if it is not the last one.
    fn write_header(&mut self) -> Result<Arc<RequestHeader>, Closed> {
        let (system, tools) = (self.prompt.assemble(), self.tools.schemas());
        if let Some(last) = &self.header
            && Arc::ptr_eq(&last.system, system)
            && Arc::ptr_eq(&last.tools, tools)
        {
            return Ok(last.clone());
        }
        let profile = &self.profile;
        let header = Arc::new(RequestHeader {
            provider: profile.route.provider.clone(),
            model: profile.route.model.clone(),
            sampling: profile.sampling.clone(),
            system: system.clone(),
            tools: tools.clone(),
        });
        let last = self.session.latest::<RequestHeaderEvent>();
        if last.as_ref().is_none_or(|last| *last.header != *header) {
            let reason = if last.is_some() { HeaderReason::Changed } else { HeaderReason::Initial };
            self.session.append(RequestHeaderEvent { reason, header: header.clone() })?;
        }
        self.header = Some(header.clone());
        Ok(header)
    }

    fn adapter(&mut self) -> Result<Arc<dyn LlmAdapter>, Arc<str>> {
        let realm = self.agent.ctx().realm();
        let version = realm.version();
        if let Some((seen, adapter)) = &self.adapter
            && *seen == version
        {
            return Ok(adapter.clone());
        }
        let adapter = self.profile.route.adapter(realm).map_err(|unknown| unknown.to_string())?;
        self.adapter = Some((version, adapter.clone()));
        Ok(adapter)
    }
}

fn signal(chunk: &Chunk) -> Option<Signal> {
    match chunk {
        Chunk::Text(text) => Some(Signal::Text(text.clone())),
        Chunk::Thought(text) => Some(Signal::Thought(text.clone())),
        Chunk::ThoughtSignature(_) | Chunk::ToolCall(_) | Chunk::Usage(_) | Chunk::End(_) => None,
    }
}
