//! Background work under one roof.
//!
//! A [`Worker`] is what is done again and again beside the calls, and how often. Whoever makes one does
//! not start it: a [`Supervisor`] runs all of them, starts one that failed or panicked again after a
//! pause that grows, counts what each run came to (`authority_worker_runs_total{name, ok}`), and ends
//! them when the service stops. What readiness shows of them is a [`Report`].
//!
//! A task that belongs to one call or one connection, and ends with it, is no worker: it is spawned
//! where it is needed.

mod pace;
mod status;
mod supervisor;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures_util::{FutureExt, TryFutureExt, future::BoxFuture};

pub use status::{Report, Statuses};
pub use supervisor::{Context, Supervisor};

/// Why a run failed.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

type Tick = Box<dyn FnMut() -> BoxFuture<'static, Result<Next, Error>> + Send>;
type Loop = Box<dyn FnMut(Context) -> BoxFuture<'static, Result<(), Error>> + Send>;

/// What is done beside the calls. Nothing happens until a [`Supervisor`] runs it.
#[must_use = "a worker does nothing until a supervisor runs it"]
pub struct Worker {
    name: &'static str,
    /// The longest pause between two runs that succeed; none: it waits for work.
    every: Option<Duration>,
    body: Body,
    is_critical: bool,
    /// Whether calls under way need it, so that it outlasts the drain.
    outlasts_calls: bool,
}

enum Body {
    Tick(Tick),
    Loop(Loop),
}

/// When a tick that succeeded is followed by the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// After the worker's period.
    Usual,
    After(Duration),
}

impl From<()> for Next {
    fn from((): ()) -> Self {
        Self::Usual
    }
}

impl Worker {
    /// Runs `tick` at once and then every `every`, up to a fifth sooner; after an error or a panic
    /// sooner still, at first. When the service stops, a tick under way ends and no other begins.
    pub fn periodic<F, T, E>(
        name: &'static str,
        every: Duration,
        mut tick: impl FnMut() -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<Next> + 'static,
        E: Into<Error> + 'static,
    {
        let tick: Tick = Box::new(move || tick().map_ok(T::into).map_err(E::into).boxed());
        Self::new(name, Some(every), Body::Tick(tick))
    }

    /// Runs `body` until [`Context::stopped`]; one that ends before, in whatever way, is started again.
    /// What must survive that stands outside the future.
    pub fn endless<F, E>(
        name: &'static str,
        mut body: impl FnMut(Context) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        let body: Loop = Box::new(move |context| body(context).map_err(E::into).boxed());
        Self::new(name, None, Body::Loop(body))
    }

    fn new(name: &'static str, every: Option<Duration>, body: Body) -> Self {
        Self { name, every, body, is_critical: false, outlasts_calls: false }
    }

    /// An endless worker whose rounds are no further apart than this.
    pub fn with_rounds(self, every: Duration) -> Self {
        Self { every: Some(every), ..self }
    }

    /// While it is late or down, the node is not ready.
    pub fn critical(self) -> Self {
        Self { is_critical: true, ..self }
    }

    /// Calls under way need it: it ends when they are over, not when the service begins to stop.
    pub fn outlasting_calls(self) -> Self {
        Self { outlasts_calls: true, ..self }
    }
}
