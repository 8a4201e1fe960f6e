//! Limits how long migrations wait for a lock. While a migration waits for a table, every later
//! statement on that table waits behind it.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use diesel::{
    QueryableByName,
    connection::{Instrumentation, InstrumentationEvent},
    sql_types::{Integer, Text},
};
use diesel_async::{AsyncPgConnection, async_connection_wrapper::AsyncConnectionWrapper};
use diesel_migrations::MigrationHarness;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use super::{Address, Db, Error, RunQueryDsl, sqlstate::has_timed_out, versions::MIGRATIONS};

/// How long a migration waits for a lock.
const LIMIT: Duration = Duration::from_secs(5);
/// The interval of reading which lock a migration waits for.
const LOOK: Duration = Duration::from_millis(200);

diesel::define_sql_function! { fn pg_backend_pid() -> Integer; }

/// Selects the lock that a process waits for, and the processes that hold it.
const WAITING: &str = "
    SELECT format('%s on %s, held by %s', l.mode,
                  coalesce(format('the table `%s`', l.relation::regclass), l.locktype),
                  coalesce(string_agg(format('process %s of the login `%s`', a.pid, a.usename), ', '),
                           'another transaction')) AS text
    FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = ANY (pg_blocking_pids(l.pid))
    WHERE l.pid = $1 AND NOT l.granted
    GROUP BY l.mode, l.relation, l.locktype";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    text: String,
}

/// Returns the statement that sets the limit for the rest of a session.
pub(super) fn limit() -> String {
    format!("SET lock_timeout = {}", LIMIT.as_millis())
}

/// Runs the pending migrations on a connection with the lock limit. Returns the connection and
/// their versions.
///
/// # Errors
/// [`Error::Address`] with the lock that a migration could not get, and its holder.
pub(super) async fn run(owner: &Address, mut db: Db) -> Result<(Db, Vec<String>), Error> {
    let pid: i32 = diesel::select(pg_backend_pid()).get_result(&mut db).await?;
    let seen = Arc::new(Mutex::new(None));
    let watch = tokio::spawn(watch(owner.clone(), pid, Arc::clone(&seen)));
    let late = Arc::new(Mutex::new(false));
    let noted = Arc::clone(&late);
    // Diesel's harness is synchronous. On this thread it does not need a multi-threaded runtime.
    let ran = tokio::task::spawn_blocking(move || {
        let mut harness = AsyncConnectionWrapper::<AsyncPgConnection>::from(db);
        diesel::Connection::set_instrumentation(&mut harness, Lateness(noted));
        let ran = harness.run_pending_migrations(MIGRATIONS);
        let versions = ran.map(|versions| versions.iter().map(ToString::to_string).collect());
        (versions, harness)
    });
    let ran = ran.await;
    watch.abort();
    let (versions, harness) = ran.map_err(|fault| Error::Internal(fault.to_string()))?;
    match versions {
        Ok(versions) => Ok((harness.into_inner(), versions)),
        Err(fault) if *late.lock() => Err(too_late(&*fault, seen.lock().as_deref())),
        Err(fault) => Err(Error::Internal(format!("a migration failed: {fault}"))),
    }
}

fn too_late(fault: &dyn StdError, seen: Option<&str>) -> Error {
    let seen = seen.map(|lock| format!(": {lock}")).unwrap_or_default();
    Error::Address(format!(
        "a migration waited {} s for a lock{seen}; it was cancelled to keep others from waiting behind it: \
         run `agent-authority migrate` again when the lock is free ({fault})",
        LIMIT.as_secs()
    ))
}

/// Records whether a statement reached the lock limit. The harness only returns an error text.
struct Lateness(Arc<Mutex<bool>>);

impl Instrumentation for Lateness {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if let InstrumentationEvent::FinishQuery { error: Some(error), .. } = event {
            *self.0.lock() |= has_timed_out(error);
        }
    }
}

/// Stores the last lock that the process was seen waiting for.
async fn watch(owner: Address, pid: i32, seen: Arc<Mutex<Option<String>>>) -> Result<(), Error> {
    let mut db = timeout(LIMIT, owner.connect()).await.map_err(|_| Error::Missing)??;
    loop {
        let waiting = diesel::sql_query(WAITING).bind::<Integer, _>(pid);
        if let Some(line) = waiting.load::<Line>(&mut db).await?.pop() {
            *seen.lock() = Some(line.text);
        }
        sleep(LOOK).await;
    }
}
