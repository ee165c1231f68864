use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use genai::chat::ChatStream;
use llm::{Chunk, LlmError, Request};
use tracing::Dispatch;

use crate::adapter::Backend;
use crate::decode::Decoder;
use crate::error::Teller;
use crate::frames::Frames;
use crate::request::translate;
use crate::retry::Retries;

/// A request and its reply, over as many attempts as it takes.
pub(crate) struct Exchange {
    backend: Arc<Backend>,
    request: Request,
    retries: Retries,
    attempt: Option<Attempt>,
    ready: VecDeque<Chunk>,
    /// Something was handed out: from here on there is no second attempt.
    spoke: bool,
}

struct Attempt {
    stream: ChatStream,
    decoder: Decoder,
    place: String,
}

impl Exchange {
    pub(crate) fn new(backend: Arc<Backend>, request: Request) -> Self {
        let retries = Retries::new(backend.config.retry_delay);
        Self { backend, request, retries, attempt: None, ready: VecDeque::new(), spoke: false }
    }

    /// The next chunk. Not to be called again after [`Chunk::End`] or an error.
    pub(crate) async fn next(&mut self) -> Result<Chunk, LlmError> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                self.spoke = true;
                return Ok(chunk);
            }
            let Err(error) = self.step().await else { continue };
            self.attempt = None;
            let wait = if self.spoke { None } else { self.retries.after(&error) };
            let Some(wait) = wait else { return Err(error) };
            tracing::info!(provider = self.backend.provider.name(), ?wait, %error, "trying again");
            // Chunks of the failed attempt that nobody has seen.
            self.ready.clear();
            tokio::time::sleep(wait).await;
        }
    }

    /// Waits for the next event of the attempt, after starting one if there is none.
    async fn step(&mut self) -> Result<(), LlmError> {
        let attempt = match &mut self.attempt {
            Some(attempt) => attempt,
            none => none.insert(Attempt::start(&self.backend, &self.request).await?),
        };
        let event = quietly(attempt.stream.next()).await;
        let teller = teller(&self.backend, &attempt.place);
        match event {
            Some(Ok(event)) => attempt.decoder.read(event, &self.request, &teller, &mut self.ready),
            Some(Err(error)) => attempt.decoder.fail(&error, &teller, &mut self.ready),
            None => Err(LlmError::truncated()),
        }
    }
}

impl Attempt {
    async fn start(backend: &Backend, request: &Request) -> Result<Self, LlmError> {
        let client = backend.client()?;
        let frames = Arc::new(Frames::new(backend.provider));
        let (chat, options) = translate(backend.provider, request);
        let idle = backend.config.idle_timeout;
        let options = options
            .with_raw_frame_sink_arc(frames.clone())
            .with_stream_header_timeout(idle)
            .with_stream_read_timeout(idle);
        let place = client.place();
        let target = client.target(&request.model);
        let answer = quietly(client.genai.exec_chat_stream(target, chat, Some(&options))).await;
        let stream = answer.map_err(|error| teller(backend, &place).tell(&error))?.stream;
        Ok(Self { stream, decoder: Decoder::new(backend.provider, frames), place })
    }
}

fn teller<'a>(backend: &'a Backend, place: &'a str) -> Teller<'a> {
    let key = backend.config.access(backend.provider).key.as_ref();
    Teller { provider: backend.provider, key, place, idle_timeout: backend.config.idle_timeout }
}

/// Runs the library without letting it log: it writes whole error bodies, which may repeat a key.
async fn quietly<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let silence = Dispatch::none();
    poll_fn(|cx| tracing::dispatcher::with_default(&silence, || future.as_mut().poll(cx))).await
}
