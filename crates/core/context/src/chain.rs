use std::sync::Arc;

use async_trait::async_trait;

use crate::Boxed;

/// A place where behaviour may be wrapped: a key type that says what goes in and what comes out.
pub trait Chain: 'static {
    /// What the wrapped work is given.
    type Input: Send + 'static;
    /// What it answers.
    type Output: Send + 'static;
}

/// One layer around a [`Chain`]. Not calling `next` decides; calling it twice retries.
///
/// An object and not a closure: stable Rust cannot say that an async closure's future is `Send`.
#[async_trait]
pub trait Around<C: Chain>: Send + Sync + 'static {
    /// Answers for the chain, usually by way of `next`.
    async fn around(&self, input: C::Input, next: Next<'_, C>) -> C::Output;
}

/// The work that a chain is wrapped around.
pub type End<'a, C> = dyn Fn(<C as Chain>::Input) -> Boxed<'a, <C as Chain>::Output> + Send + Sync + 'a;

/// The rest of a chain. `Copy`, so a layer may run it more than once.
pub struct Next<'a, C: Chain> {
    rest: &'a [Arc<dyn Around<C>>],
    end: &'a End<'a, C>,
}

impl<C: Chain> Clone for Next<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Chain> Copy for Next<'_, C> {}

impl<'a, C: Chain> Next<'a, C> {
    /// The whole chain: `layers`, outermost first, around `end`.
    pub fn over(layers: &'a [Arc<dyn Around<C>>], end: &'a End<'a, C>) -> Self {
        Self { rest: layers, end }
    }

    /// Runs what is left: the next layer in, or the work itself.
    pub fn run(self, input: C::Input) -> Boxed<'a, C::Output> {
        match self.rest {
            [] => (self.end)(input),
            [layer, rest @ ..] => layer.around(input, Next { rest, end: self.end }),
        }
    }
}
