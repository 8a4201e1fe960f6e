//! Limits how long migrations wait for a lock. While a migration waits for a table, every later
//! statement on that table waits behind it.

use std::{sync::Arc, time::Duration};

use diesel::{
    QueryableByName,
    sql_types::{Integer, Text},
};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use super::{
    address::Address,
    error::Error,
    query::RunQueryDsl,
    sqlstate::has_timed_out,
    transaction::Db,
    versions::{self, Failed},
};

/// How long a migration waits for a lock.
const LIMIT: Duration = Duration::from_secs(5);
/// How often to look up the lock that a migration waits for.
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

/// Runs the pending migrations on a connection with the lock limit. Returns their versions.
///
/// # Errors
/// [`Error::Address`] with the lock that a migration could not get, and its holder.
pub(super) async fn run(owner: &Address, db: &mut Db) -> Result<Vec<String>, Error> {
    let pid: i32 = diesel::select(pg_backend_pid()).get_result(db).await?;
    let seen = Arc::new(Mutex::new(None));
    let watch = tokio::spawn(watch(owner.clone(), pid, Arc::clone(&seen)));
    let ran = versions::run_pending(db).await;
    watch.abort();
    ran.map_err(|failed| {
        if has_timed_out(&failed.error) {
            too_late(&failed, seen.lock().as_deref())
        } else {
            Error::Internal(format!("a migration failed: {failed}"))
        }
    })
}

fn too_late(failed: &Failed, seen: Option<&str>) -> Error {
    let seen = seen.map(|lock| format!(": {lock}")).unwrap_or_default();
    Error::Address(format!(
        "a migration waited {} s for a lock{seen}; it was cancelled to keep others from waiting behind it: \
         run `agent-authority migrate` again when the lock is free ({failed})",
        LIMIT.as_secs()
    ))
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
