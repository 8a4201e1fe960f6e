//! Background work under one supervisor.
//!
//! A [`Worker`] is a periodic or endless task that is independent of calls. Constructors return
//! workers without starting them. A [`Supervisor`] runs the workers, restarts a failed or panicked
//! worker with back-off, counts the runs (`authority_worker_runs_total{name, ok}`) and stops them
//! with the service. Readiness shows a [`Report`] of each worker.
//!
//! A task of one call, connection or transaction is not a worker. It is spawned where it is needed
//! and ends with its call, connection or transaction.

mod pace;
mod status;
mod supervisor;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures_util::{FutureExt, TryFutureExt, future::BoxFuture};

pub use status::{Report, Statuses};
pub use supervisor::{Context, Supervisor};

/// The reason why a run failed.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

type Tick = Box<dyn FnMut() -> BoxFuture<'static, Result<Next, Error>> + Send>;
type Loop = Box<dyn FnMut(Context) -> BoxFuture<'static, Result<(), Error>> + Send>;

/// A background task. It does not run until it is passed to a [`Supervisor`].
#[must_use = "a worker does not run without a supervisor"]
pub struct Worker {
    name: &'static str,
    /// The maximum pause between two successful runs; `None` if it waits for work.
    every: Option<Duration>,
    body: Body,
    is_critical: bool,
    /// Whether calls in progress need it. It then runs until the drain is over.
    outlasts_calls: bool,
}

enum Body {
    Tick(Tick),
    Loop(Loop),
}

/// The time of the next tick after a successful one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The worker's usual period.
    Usual,
    After(Duration),
}

impl From<()> for Next {
    fn from((): ()) -> Self {
        Self::Usual
    }
}

impl Worker {
    /// Creates a worker that runs `tick` at once, and then repeatedly.
    ///
    /// The pause between the end of a run and the next run is `every`, or up to a fifth shorter.
    ///
    /// After an error or a panic, `tick` runs again with back-off, which never exceeds `every`. When
    /// the service stops, a running tick is finished. Another tick does not start.
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

    /// Creates a worker that runs `body` until [`Context::stopped`].
    ///
    /// If `body` ends earlier, by a panic, an error or a return, it is restarted with back-off.
    /// State that must survive a restart, such as a queue, belongs outside the future.
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

    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Sets the period of an endless worker's rounds. The worker is late after several periods
    /// without a success.
    pub fn with_rounds(self, every: Duration) -> Self {
        Self { every: Some(every), ..self }
    }

    /// Makes the node not ready while this worker is late or down.
    pub fn critical(self) -> Self {
        Self { is_critical: true, ..self }
    }

    /// Keeps the worker running until the drain is over, because calls in progress need it.
    pub fn outlasting_calls(self) -> Self {
        Self { outlasts_calls: true, ..self }
    }
}
