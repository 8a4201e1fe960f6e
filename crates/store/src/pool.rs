//! The connection pools of one database: one for each role of the service, and one each for the
//! graph's tail and for events.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ::deadpool::{Runtime, managed::QueueMode};
use diesel::{ConnectionError, ConnectionResult};
use diesel_async::{
    AsyncPgConnection, SimpleAsyncConnection,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
        deadpool::{self, PoolError},
    },
};
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{address::Address, error::Error, receivers::Receivers, session, silence::Silence};

/// How long a statement waits for a lock, in milliseconds.
///
/// The limit is shorter than a call's deadline. A call that waits for another call with the same
/// idempotency key can therefore report that before its deadline.
const LOCK: u32 = 9_000;
/// The additional time in which the server can report that it cancelled a statement.
const MARGIN: Duration = Duration::from_secs(2);

pub(super) type Pool = deadpool::Pool<AsyncPgConnection>;
/// A pooled connection. It returns to the pool when dropped.
pub type Pooled = deadpool::Object<AsyncPgConnection>;

/// The sizes and timeouts of the pools.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The maximum number of connections for each role.
    pub tenant: usize,
    pub system: usize,
    pub recorder: usize,
    /// Connections in the system's role for events and their senders.
    pub events: usize,
    /// The maximum wait for a free connection, and for a new connection to be ready.
    pub wait: Duration,
    /// The maximum time of one statement, including waits for locks. The server enforces it. The
    /// limit of a whole transaction is two seconds longer and enforced here.
    pub statement: Duration,
    /// The maximum time that a transaction may be idle. The server then closes the connection.
    pub idle_in_transaction: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tenant: 16,
            system: 8,
            recorder: 4,
            events: 6,
            wait: Duration::from_secs(5),
            statement: Duration::from_secs(15),
            idle_in_transaction: Duration::from_secs(15),
        }
    }
}

/// The service's database. It is cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) tenant: Pool,
    pub(super) system: Pool,
    pub(super) recorder: Pool,
    pub(super) events: Pool,
    /// A single connection that other work cannot occupy.
    pub(super) tail: Pool,
    pub(super) address: Address,
    pub(super) silence: Silence,
    pub(super) receivers: Receivers,
    /// The maximum duration of a transaction, enforced here. It is long enough for the server to
    /// report a cancelled statement.
    pub(super) transaction: Duration,
    breaker: Arc<CircuitBreaker>,
}

impl Store {
    /// Creates the pools. They connect on first use: this also succeeds while Postgres is
    /// unavailable.
    pub fn open(address: &Address, limits: &Limits) -> Result<Self, Error> {
        Error::count_from_zero();
        let breaker = Arc::new(CircuitBreaker::default());
        let pool = |kind, size| pool(address, &breaker, limits, kind, size);
        Ok(Self {
            tenant: pool("tenant", limits.tenant)?,
            system: pool("system", limits.system)?,
            recorder: pool("recorder", limits.recorder)?,
            events: pool("system", limits.events)?,
            tail: pool("system", 1)?,
            address: address.clone(),
            silence: Silence::default(),
            receivers: Receivers::default(),
            transaction: limits.statement + MARGIN,
            breaker,
        })
    }

    /// Returns a receiver that is notified each time Postgres becomes available again.
    pub fn returns(&self) -> watch::Receiver<()> {
        self.breaker.returned.subscribe()
    }

    /// Returns the same store for events and their senders.
    ///
    /// Events have their own connections: however many events there are, other work in the system's
    /// role keeps its connections.
    #[must_use]
    pub fn for_events(&self) -> Self {
        Self { system: self.events.clone(), ..self.clone() }
    }

    /// Closes the pools because the service stops.
    ///
    /// Tasks that request a connection wait until the process ends. An error would report a fault
    /// that does not exist.
    pub fn close(&self) {
        for pool in [&self.tenant, &self.system, &self.recorder, &self.events, &self.tail] {
            pool.close();
        }
    }

    /// Returns a connection in the recorder's role, which writes decisions for many tenants at
    /// once.
    pub async fn recorder(&self) -> Result<Pooled, Error> {
        take(&self.recorder).await
    }

    /// Returns the connection of the graph's tail, in the system's role.
    ///
    /// While it is unavailable, the graph goes stale and no decisions are made.
    pub async fn tail(&self) -> Result<Pooled, Error> {
        take(&self.tail).await
    }

    /// Returns a connection in the system's role, which sees all tenants: for workers and the
    /// owner's lists.
    pub async fn system(&self) -> Result<Pooled, Error> {
        take(&self.system).await
    }
}

/// Takes a connection from the pool. Waits forever once the pool is closed.
pub(super) async fn take(pool: &Pool) -> Result<Pooled, Error> {
    match pool.get().await {
        Err(PoolError::Closed) => std::future::pending().await,
        taken => Ok(taken?),
    }
}

fn pool(
    address: &Address,
    breaker: &Arc<CircuitBreaker>,
    limits: &Limits,
    kind: &'static str,
    size: usize,
) -> Result<Pool, Error> {
    let mut config = ManagerConfig::default();
    // A lost connection is detected without a query. `silence.rs` ends silent connections.
    config.recycling_method = RecyclingMethod::Fast;
    let (address, breaker) = (address.clone(), Arc::clone(breaker));
    let opening = opening(kind, limits);
    config.custom_setup = Box::new(move |_| {
        let (address, breaker, opening) = (address.clone(), Arc::clone(&breaker), opening.clone());
        async move {
            let began = breaker.pass()?;
            let made = open(&address, &opening).await;
            breaker.note(began, made.as_ref().err().map(ToString::to_string));
            made
        }
        .boxed()
    });
    Pool::builder(AsyncDieselConnectionManager::new_with_config(String::new(), config))
        .max_size(size)
        // The last used connection has probably already planned the next statement.
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(limits.wait))
        .create_timeout(Some(limits.wait))
        .recycle_timeout(Some(limits.wait))
        .build()
        .map_err(|fault| Error::Internal(format!("a pool cannot be built: {fault}")))
}

async fn open(address: &Address, opening: &str) -> ConnectionResult<AsyncPgConnection> {
    let mut db = address.connect().await?;
    let set_up = db.batch_execute(opening).await;
    set_up.map_err(ConnectionError::CouldntSetupConfiguration)?;
    Ok(db)
}

/// Returns the SQL that sets up each connection of a pool and refuses unsafe sessions.
///
/// The database has a function that returns its own role of this kind. `set_config` sets the role
/// as SET ROLE does. String literals are parsed in the way that transaction.rs quotes them.
fn opening(kind: &str, limits: &Limits) -> String {
    let statement = limits.statement.as_millis();
    let idle = limits.idle_in_transaction.as_millis();
    format!(
        "SELECT set_config('role', public.authority_role('{kind}'), false); \
         SET application_name = 'agent-authority {kind}'; \
         SET standard_conforming_strings = on; SET statement_timeout = {statement}; \
         SET lock_timeout = {LOCK}; SET idle_in_transaction_session_timeout = {idle}; {}",
        session::checked(kind)
    )
}

/// Makes attempts fail immediately while Postgres is unavailable.
///
/// One attempt at a time connects again, with pauses that grow up to [`CircuitBreaker::LONGEST`].
#[derive(Default)]
struct CircuitBreaker {
    state: Mutex<State>,
    returned: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// The time of the last successful attempt.
    answered: Option<Instant>,
    open: Option<Open>,
}

struct Open {
    failures: u32,
    /// The reason of the last failure.
    why: String,
    until: Instant,
}

impl CircuitBreaker {
    const LONGEST: Duration = Duration::from_secs(1);

    /// Returns the start time of an attempt, if an attempt is permitted now.
    fn pass(&self) -> ConnectionResult<Instant> {
        let now = Instant::now();
        match &mut self.state.lock().open {
            Some(open) if now < open.until => {
                Err(ConnectionError::BadConnection(format!("{}; trying again soon", open.why)))
            }
            Some(open) => {
                // This attempt probes. Other attempts wait for its result.
                open.until = now + Self::LONGEST;
                Ok(now)
            }
            None => Ok(now),
        }
    }

    /// Records the result of the attempt that began at this time. `fault` is the reason if it
    /// failed.
    fn note(&self, began: Instant, fault: Option<String>) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let Some(why) = fault else {
            state.answered = Some(now);
            if state.open.take().is_some() {
                self.returned.send_replace(());
            }
            return;
        };
        if state.answered.is_none_or(|answered| answered < began) {
            let failures = state.open.as_ref().map_or(0, |open| open.failures);
            let pause = Duration::from_millis(25) * (1 << failures.min(6));
            let until = now + pause.min(Self::LONGEST);
            state.open = Some(Open { failures: failures + 1, why, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> String {
        "Connection refused".to_owned()
    }

    #[test]
    fn a_failure_opens_and_a_success_closes() {
        let breaker = CircuitBreaker::default();
        let returned = breaker.returned.subscribe();
        let (first, second) = (breaker.pass().unwrap(), breaker.pass().unwrap());
        breaker.note(first, Some(away()));
        let told = breaker.pass().unwrap_err().to_string();
        assert!(told.contains("Connection refused; trying again soon"), "{told}");
        assert!(!returned.has_changed().unwrap());
        breaker.note(second, None);
        assert!(breaker.pass().is_ok() && returned.has_changed().unwrap());
    }

    #[test]
    fn an_attempt_that_fails_late_does_not_open_once_the_database_is_back() {
        let breaker = CircuitBreaker::default();
        let (early, next) = (breaker.pass().unwrap(), breaker.pass().unwrap());
        breaker.note(next, None);
        breaker.note(early, Some(away()));
        let later = breaker.pass().unwrap();
        breaker.note(later, Some(away()));
        assert!(breaker.pass().is_err());
    }
}
