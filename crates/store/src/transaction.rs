//! Transactions, each in the scope of a tenant and an actor.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, resume_unwind},
    time::Duration,
};

use authority_ids::{ApiKeyId, TenantId};
use diesel::{QueryResult, connection::TransactionManagerStatus};
use diesel_async::{
    AnsiTransactionManager, AsyncPgConnection, SimpleAsyncConnection, TransactionManager,
};
use futures_util::{FutureExt, future::BoxFuture};
use tracing::{Instrument, Span, field::Empty};

use super::{
    bounded::discard,
    error::Error,
    pool::{Pool, Store, take},
    silence::Silence,
};

/// A connection inside a transaction. diesel-async's queries run on it.
pub type Db = AsyncPgConnection;

/// Begins a transaction that writes.
///
/// Sets the isolation level regardless of the database's default. The change log and the fence must
/// see the newest commits.
const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// Ends a write.
///
/// A change that authority depends on must raise a revision. Otherwise the whole transaction is
/// rolled back.
const END_OF_WRITE: &str = "SELECT public.require_revisions(); COMMIT";
/// Ends a read.
///
/// Postgres answers COMMIT of a failed transaction with a silent ROLLBACK, which diesel treats as a
/// success. The empty statement before COMMIT then fails.
const END_OF_READ: &str = "SELECT; COMMIT";

/// The tenant and actor of a transaction, for row-level security and the history triggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The tenant; `None` for the owner of the installation, who sees all tenants.
    pub tenant: Option<TenantId>,
    /// The actor in the history.
    pub actor: String,
    /// The API key of this work. Each read checks the key's row. It is never inferred from the
    /// actor, which may be a text from a person's token.
    pub api_key: Option<ApiKeyId>,
}

/// The actor in the history if no caller made the change.
pub const SERVICE: &str = "agent-authority";

impl Scope {
    /// Returns the scope of the service's own work, for all tenants.
    pub fn service() -> Self {
        Self { tenant: None, actor: SERVICE.to_owned(), api_key: None }
    }
}

impl Store {
    /// Runs `work` in a transaction, which commits if `work` returns `Ok`.
    ///
    /// The transaction runs to completion in its own task even if the caller is dropped. Otherwise
    /// a dropped query might still commit, and would block the next user of its connection.
    pub fn write_tx<T, E, F>(&self, scope: &Scope, work: F) -> BoxFuture<'static, Result<T, E>>
    where
        F: Transact<T, E>,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        run(self.transaction(WRITE, END_OF_WRITE, scope), work)
    }

    /// Does the same as [`Self::write_tx`] for `work` that may take up to `limit`.
    ///
    /// `limit` also applies to each statement. Use it for work on whole tables that no caller
    /// waits for.
    pub fn long_write_tx<T, E, F>(
        &self,
        limit: Duration,
        scope: &Scope,
        work: F,
    ) -> BoxFuture<'static, Result<T, E>>
    where
        F: Transact<T, E>,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let begin = format!("{WRITE}; SET LOCAL statement_timeout = {}", limit.as_millis());
        let transaction = self.transaction(&begin, END_OF_WRITE, scope);
        run(transaction.map(|transaction| Transaction { limit, ..transaction }), work)
    }

    /// Does the same as [`Self::write_tx`] for `work` that only reads. Postgres refuses writes.
    pub fn read_tx<T, E, F>(&self, scope: &Scope, work: F) -> BoxFuture<'static, Result<T, E>>
    where
        F: Transact<T, E>,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        run(self.reading(scope), work)
    }

    /// Checks that the scope's API key may still read. Call it before a read from memory.
    ///
    /// # Errors
    /// [`Error::KeyEnded`], or the database is unavailable.
    pub async fn confirm(&self, scope: &Scope) -> Result<(), Error> {
        match scope.api_key {
            Some(_) => self.read_tx(scope, async |_: &mut Db| Ok::<_, Error>(())).await,
            None => Ok(()),
        }
    }

    /// Prepares a read. The key's row is checked in the same snapshot as the data.
    ///
    /// Once a revocation is committed, the key cannot read any data on any node.
    fn reading(&self, scope: &Scope) -> Result<Transaction, Error> {
        let Some(key) = &scope.api_key else {
            let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";
            return self.transaction(begin, END_OF_READ, scope);
        };
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut transaction = self.transaction(begin, END_OF_READ, scope)?;
        let check = format!("; SELECT require_api_key({})", literal(key.as_str())?);
        transaction.opening.push_str(&check);
        Ok(transaction)
    }

    fn transaction(
        &self,
        begin: &str,
        end: &'static str,
        scope: &Scope,
    ) -> Result<Transaction, Error> {
        let pool = if scope.tenant.is_some() { &self.tenant } else { &self.system };
        // Only the tenant is recorded: the actor may be a person's address.
        let span = tracing::debug_span!(
            "transaction",
            tenant.id = scope.tenant.as_ref().map(TenantId::as_str),
            committed = Empty
        );
        Ok(Transaction {
            span,
            opening: opening(begin, scope)?,
            end,
            pool: pool.clone(),
            silence: self.silence.clone(),
            limit: self.transaction,
        })
    }
}

/// A transaction that has not started.
struct Transaction {
    span: Span,
    opening: String,
    /// The statements that commit the transaction.
    end: &'static str,
    pool: Pool,
    silence: Silence,
    limit: Duration,
}

/// Work on a connection. Its result is type-erased to compile transactions only once.
type ErasedWork = Box<dyn for<'c> FnOnce(&'c mut Db) -> BoxFuture<'c, Worked> + Send>;

/// The outcome of the work.
struct Worked {
    is_ok: bool,
    result: Box<dyn Any + Send>,
}

fn run<T, E, F>(
    transaction: Result<Transaction, Error>,
    work: F,
) -> BoxFuture<'static, Result<T, E>>
where
    F: Transact<T, E>,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let work: ErasedWork = Box::new(|db| {
        let worked =
            |result: Result<T, E>| Worked { is_ok: result.is_ok(), result: Box::new(result) };
        work(db).map(worked).boxed()
    });
    let result = |ran: Result<Box<dyn Any + Send>, Error>| match ran?.downcast::<Result<T, E>>() {
        Ok(result) => *result,
        Err(other) => Err(crashed(other).into()),
    };
    spawn(transaction, work).map(result).boxed()
}

/// Runs a transaction in its own task, which ends with the transaction even if its caller is gone.
async fn spawn(
    transaction: Result<Transaction, Error>,
    work: ErasedWork,
) -> Result<Box<dyn Any + Send>, Error> {
    let transaction = transaction?;
    let span = transaction.span.clone();
    tokio::spawn(transaction.run(work).instrument(span)).await.map_err(crashed)?
}

impl Transaction {
    /// Runs the work, and commits it if it succeeded. Returns its result.
    ///
    /// The returned error is the transaction's. The work's own error is part of its result.
    async fn run(self, work: ErasedWork) -> Result<Box<dyn Any + Send>, Error> {
        let mut db = take(&self.pool).await?;
        let ran = async {
            begin(&mut db, &self.opening).await?;
            let Worked { is_ok, result } = work(&mut db).await;
            let (ended, is_clean) = end(&mut db, self.end, is_ok).await;
            self.span.record("committed", is_ok && ended.is_ok());
            Ok((ended.map(|()| result), is_clean))
        };
        let bounded = AssertUnwindSafe(self.silence.bound(self.limit, ran)).catch_unwind().await;
        let (ended, is_clean) = match bounded.map(Result::flatten) {
            Ok(Ok(ended)) => ended,
            Ok(Err(fault)) => (Err(fault), false),
            // If the connection returned to the pool, it would keep its locks until its next use.
            Err(panic) => {
                discard(db);
                resume_unwind(panic)
            }
        };
        if !is_clean {
            // The connection may be in a transaction or still busy, and cannot be reused.
            discard(db);
        }
        ended
    }
}

fn crashed<T>(_: T) -> Error {
    Error::Internal("a transaction crashed".to_owned())
}

async fn begin(db: &mut Db, opening: &str) -> Result<(), Error> {
    Ok(AnsiTransactionManager::begin_transaction_sql(db, opening).await?)
}

/// Commits. Rolls back if the work or the commit failed.
///
/// Also returns whether the connection can be used again.
async fn end(db: &mut Db, end: &str, is_done: bool) -> (Result<(), Error>, bool) {
    let ended = if is_done { commit(db, end).await } else { Ok(()) };
    let failed = !is_done || ended.is_err();
    let is_clean = !failed || AnsiTransactionManager::rollback_transaction(db).await.is_ok();
    (ended.map_err(Error::from), is_clean)
}

async fn commit(db: &mut Db, end: &str) -> QueryResult<()> {
    db.batch_execute(end).await?;
    *AnsiTransactionManager::transaction_manager_status_mut(db) =
        TransactionManagerStatus::default();
    Ok(())
}

/// Returns BEGIN and both settings in one message, which saves a round trip.
fn opening(begin: &str, scope: &Scope) -> Result<String, Error> {
    let tenant = literal(scope.tenant.as_ref().map_or("", TenantId::as_str))?;
    let actor = literal(&scope.actor)?;
    Ok(format!(
        "{begin}; SET LOCAL authority.tenant = {tenant}; SET LOCAL authority.actor = {actor}"
    ))
}

/// Quotes a text for SQL. The pool sets `standard_conforming_strings`, which makes a backslash
/// literal.
fn literal(text: &str) -> Result<String, Error> {
    if text.contains('\0') {
        return Err(Error::Internal("a scope contains U+0000".to_owned()));
    }
    Ok(format!("'{}'", text.replace('\'', "''")))
}

/// The work of a transaction: an async closure that takes its connection.
pub trait Transact<T, E>:
    for<'c> AsyncFnOnce(&'c mut Db) -> Result<T, E>
    + for<'c> Work<&'c mut Db, Result<T, E>, Fut: Send>
    + Send
    + 'static
{
}

impl<T, E, F> Transact<T, E> for F where
    F: for<'c> AsyncFnOnce(&'c mut Db) -> Result<T, E>
        + for<'c> Work<&'c mut Db, Result<T, E>, Fut: Send>
        + Send
        + 'static
{
}

/// An `AsyncFnOnce` with a `Send` future, which stable Rust cannot express otherwise.
pub trait Work<T, R>: AsyncFnOnce(T) -> R + FnOnce(T) -> <Self as Work<T, R>>::Fut {
    type Fut: Future<Output = R>;
}

impl<F, T, Fut, R> Work<T, R> for F
where
    F: AsyncFnOnce(T) -> R + FnOnce(T) -> Fut,
    Fut: Future<Output = R>,
{
    type Fut = Fut;
}
