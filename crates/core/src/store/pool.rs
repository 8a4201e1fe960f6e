//! The pools on one database: one for each role that the service takes, and one for the graph's tail.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ::deadpool::Runtime;
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

use super::{Address, Error, silence::Silence};

/// How long a statement waits for a lock, in milliseconds: whoever waits for a first request with the
/// same idempotency key is told so before the call's own end.
const LOCK: u32 = 9_000;
/// What the server has for saying that it ended a statement.
const MARGIN: Duration = Duration::from_secs(2);

pub(super) type Pool = deadpool::Pool<AsyncPgConnection>;
/// A connection on loan; it goes back when dropped.
pub type Pooled = deadpool::Object<AsyncPgConnection>;

/// How many connections there are, and how long anything may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at most, for each role.
    pub tenant: usize,
    pub system: usize,
    pub recorder: usize,
    /// For a free connection, and for a new one to be ready.
    pub wait: Duration,
    /// For one statement, locks included: kept by the server. A transaction has two seconds more,
    /// whatever it does: kept by us.
    pub statement: Duration,
    /// For a transaction in which nothing runs; its connection is closed.
    pub idle_in_transaction: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tenant: 16,
            system: 8,
            recorder: 4,
            wait: Duration::from_secs(5),
            statement: Duration::from_secs(15),
            idle_in_transaction: Duration::from_secs(15),
        }
    }
}

/// The database as the service uses it. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) tenant: Pool,
    pub(super) system: Pool,
    pub(super) recorder: Pool,
    /// One connection that nobody else can keep busy.
    pub(super) tail: Pool,
    pub(super) address: Address,
    pub(super) silence: Silence,
    /// How long a transaction may take, on our side: a statement that the server ends is told as
    /// what it is.
    pub(super) transaction: Duration,
    breaker: Arc<CircuitBreaker>,
}

impl Store {
    /// Connects at first use, so that it opens while Postgres is away, too.
    pub fn open(address: &Address, limits: &Limits) -> Result<Self, Error> {
        let breaker = Arc::new(CircuitBreaker::default());
        let pool = |kind, size| pool(address, &breaker, limits, kind, size);
        Ok(Self {
            tenant: pool("tenant", limits.tenant)?,
            system: pool("system", limits.system)?,
            recorder: pool("recorder", limits.recorder)?,
            tail: pool("system", 1)?,
            address: address.clone(),
            silence: Silence::default(),
            transaction: limits.statement + MARGIN,
            breaker,
        })
    }

    /// Tells each time that Postgres is back after it was away.
    pub fn returns(&self) -> watch::Receiver<()> {
        self.breaker.returned.subscribe()
    }

    /// From now on nobody is given a connection: the service stops. Who wants
    /// one waits, and ends with the process; a fault would be told where there is none.
    pub fn close(&self) {
        for pool in [&self.tenant, &self.system, &self.recorder, &self.tail] {
            pool.close();
        }
    }

    /// A connection in the recorder's role, which writes decisions for many tenants at once.
    pub async fn recorder(&self) -> Result<Pooled, Error> {
        take(&self.recorder).await
    }

    /// The connection of the graph's tail, in the system's role: while it cannot be had, the
    /// graph goes stale and nothing is decided.
    pub async fn tail(&self) -> Result<Pooled, Error> {
        take(&self.tail).await
    }

    /// A connection in the system's role, which sees every tenant: workers, the owner's lists.
    pub async fn system(&self) -> Result<Pooled, Error> {
        take(&self.system).await
    }
}

/// A connection of the pool; once it is closed, nothing for ever.
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
    // A lost connection is known to be closed without asking; silent ones `silence.rs` ends.
    config.recycling_method = RecyclingMethod::Fast;
    let (address, breaker) = (address.clone(), Arc::clone(breaker));
    let opening = opening(kind, limits);
    config.custom_setup = Box::new(move |_| {
        let (address, breaker, opening) = (address.clone(), Arc::clone(&breaker), opening.clone());
        async move {
            let began = breaker.pass()?;
            let made = open(&address, &opening).await;
            breaker.note(began, made.is_ok());
            made
        }
        .boxed()
    });
    Pool::builder(AsyncDieselConnectionManager::new_with_config(String::new(), config))
        .max_size(size)
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

/// What every connection of a pool is told once. The database knows its own role of this kind:
/// `set_config` takes it as SET ROLE does. Literals are read as transaction.rs quotes them.
fn opening(kind: &str, limits: &Limits) -> String {
    let statement = limits.statement.as_millis();
    let idle = limits.idle_in_transaction.as_millis();
    format!(
        "SELECT set_config('role', public.authority_role('{kind}'), false); \
         SET application_name = 'agent-authority {kind}'; \
         SET standard_conforming_strings = on; SET statement_timeout = {statement}; \
         SET lock_timeout = {LOCK}; SET idle_in_transaction_session_timeout = {idle}"
    )
}

/// While Postgres is away, callers are refused at once and one at a time tries again, ever more
/// slowly, up to [`CircuitBreaker::LONGEST`].
#[derive(Default)]
struct CircuitBreaker {
    state: Mutex<State>,
    returned: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// When somebody was last let in.
    answered: Option<Instant>,
    closed: Option<Closed>,
}

struct Closed {
    failures: u32,
    until: Instant,
}

impl CircuitBreaker {
    const LONGEST: Duration = Duration::from_secs(1);

    /// When the attempt begins, if it may.
    fn pass(&self) -> ConnectionResult<Instant> {
        let now = Instant::now();
        match &mut self.state.lock().closed {
            Some(closed) if now < closed.until => Err(ConnectionError::BadConnection(
                "it did not answer a moment ago; trying again soon".to_owned(),
            )),
            Some(closed) => {
                // The one that goes ahead; the others wait for what it learns.
                closed.until = now + Self::LONGEST;
                Ok(now)
            }
            None => Ok(now),
        }
    }

    /// What an attempt came to that began then.
    fn note(&self, began: Instant, is_there: bool) {
        let mut state = self.state.lock();
        let now = Instant::now();
        if is_there {
            state.answered = Some(now);
            if state.closed.take().is_some() {
                self.returned.send_replace(());
            }
        } else if state.answered.is_none_or(|answered| answered < began) {
            let failures = state.closed.as_ref().map_or(0, |closed| closed.failures);
            let pause = Duration::from_millis(25) * (1 << failures.min(6));
            state.closed =
                Some(Closed { failures: failures + 1, until: now + pause.min(Self::LONGEST) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_closes_and_a_success_opens() {
        let breaker = CircuitBreaker::default();
        let returned = breaker.returned.subscribe();
        let (first, second) = (breaker.pass().unwrap(), breaker.pass().unwrap());
        breaker.note(first, false);
        assert!(breaker.pass().is_err() && !returned.has_changed().unwrap());
        breaker.note(second, true);
        assert!(breaker.pass().is_ok() && returned.has_changed().unwrap());
    }

    #[test]
    fn an_attempt_that_fails_late_does_not_close_on_a_database_that_is_back() {
        let breaker = CircuitBreaker::default();
        let (early, next) = (breaker.pass().unwrap(), breaker.pass().unwrap());
        breaker.note(next, true);
        breaker.note(early, false);
        let later = breaker.pass().unwrap();
        breaker.note(later, false);
        assert!(breaker.pass().is_err());
    }
}
