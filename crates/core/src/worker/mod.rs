//! Background work under one supervisor.
//!
//! A [`Worker`] is a task beside the calls: periodic or endless. Constructors return workers and start
//! none. A [`Supervisor`] runs them, restarts those that fail or panic with back-off, counts the runs
//! (`authority_worker_runs_total{name, ok}`) and stops them with the service. Readiness shows a
//! [`Report`] of each.
//!
//! A task of one call, connection or transaction is not a worker: it is spawned where it is needed,
//! and ends with that.

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

/// A background task. Nothing happens until a [`Supervisor`] runs it.
#[must_use = "a worker does nothing until a supervisor runs it"]
pub struct Worker {
    name: &'static str,
    /// The longest pause between two successful runs; `None` if it waits for work.
    every: Option<Duration>,
    body: Body,
    is_critical: bool,
    /// Calls in progress need it, so it runs until the drain is over.
    outlasts_calls: bool,
}

enum Body {
    Tick(Tick),
    Loop(Loop),
}

/// When the next tick follows one that succeeded.
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
    /// Runs `tick` at once, and again `every` after its end, or up to a fifth sooner. After an error or a
    /// panic it runs again with back-off, which never exceeds `every`. When the service stops, a running
    /// tick is finished and no other begins.
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

    /// Runs `body` until [`Context::stopped`]. If it ends before, by a panic, an error or a return, it is
    /// restarted with back-off. State that must outlive that (a queue) belongs outside the future.
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

    /// For an endless worker: without a successful round for several such periods it is late.
    pub fn with_rounds(self, every: Duration) -> Self {
        Self { every: Some(every), ..self }
    }

    /// The node is not ready while this worker is late or down.
    pub fn critical(self) -> Self {
        Self { is_critical: true, ..self }
    }

    /// Calls in progress need it: it ends after the drain, not when the service begins to stop.
    pub fn outlasting_calls(self) -> Self {
        Self { outlasts_calls: true, ..self }
    }
}
