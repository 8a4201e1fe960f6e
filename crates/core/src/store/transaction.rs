//! Transactions that know for whom they run.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, resume_unwind},
    time::Duration,
};

use diesel::{QueryResult, connection::TransactionManagerStatus};
use diesel_async::{
    AnsiTransactionManager, AsyncPgConnection, SimpleAsyncConnection, TransactionManager,
};
use futures_util::{FutureExt, future::BoxFuture};
use tracing::{Instrument, Span, field::Empty};

use super::{
    Error, Store,
    pool::{Pool, take},
    silence::{Silence, discard},
};

/// A connection inside a transaction; diesel-async's queries run on it.
pub type Db = AsyncPgConnection;

/// For whom a transaction runs. Row-level security and the history triggers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// None: the owner of the installation, who sees every tenant.
    pub tenant: Option<String>,
    /// Who is written into the history.
    pub actor: String,
}

/// Whom the history names where nobody asked.
pub const SERVICE: &str = "agent-authority";

impl Scope {
    /// The API key for which it runs: keys are named by their ids.
    pub fn api_key(&self) -> Option<&str> {
        Some(self.actor.as_str()).filter(|actor| actor.starts_with("svc:api_key:"))
    }

    /// The service's own work, for every tenant.
    pub fn service() -> Self {
        Self { tenant: None, actor: SERVICE.to_owned() }
    }
}

impl Store {
    /// Runs `work` in one transaction, which commits when `work` answers `Ok`. It runs to its end
    /// in a task of its own even when the caller goes away: a dropped query would commit all the
    /// same, and block its connection's next user.
    pub fn write_tx<T, E, F>(
        &self,
        scope: &Scope,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F>
    where
        F: Transact<T, E>,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        run(self.transaction("BEGIN", scope), work)
    }

    /// The same for `work` that only reads: Postgres refuses it a write.
    pub fn read_tx<T, E, F>(
        &self,
        scope: &Scope,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F>
    where
        F: Transact<T, E>,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        run(self.reading(scope), work)
    }

    /// For what is read from memory: whether the scope's API key may still read.
    ///
    /// # Errors
    /// [`Error::KeyEnded`], or the database is away.
    pub async fn confirm(&self, scope: &Scope) -> Result<(), Error> {
        match scope.api_key() {
            Some(_) => self.read_tx(scope, async |_: &mut Db| Ok::<_, Error>(())).await,
            None => Ok(()),
        }
    }

    /// A key's row is looked at in the snapshot of what it reads: whoever has revoked it knows that
    /// it reads nothing from then on, on any node.
    fn reading(&self, scope: &Scope) -> Result<Transaction, Error> {
        let Some(key) = scope.api_key() else {
            return self.transaction("BEGIN READ ONLY", scope);
        };
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut transaction = self.transaction(begin, scope)?;
        let check = format!("; SELECT require_api_key({})", literal(key)?);
        transaction.opening.push_str(&check);
        Ok(transaction)
    }

    fn transaction(&self, begin: &str, scope: &Scope) -> Result<Transaction, Error> {
        let pool = if scope.tenant.is_some() { &self.tenant } else { &self.system };
        // For whom, by tenant alone: an actor may be a person's address.
        let span = tracing::debug_span!(
            "transaction",
            tenant_id = scope.tenant.as_deref(),
            committed = Empty
        );
        Ok(Transaction {
            span,
            opening: opening(begin, scope)?,
            pool: pool.clone(),
            silence: self.silence.clone(),
            limit: self.transaction,
        })
    }
}

/// A transaction that has not begun.
struct Transaction {
    span: Span,
    opening: String,
    pool: Pool,
    silence: Silence,
    limit: Duration,
}

/// What the work came to, whatever its type: a transaction is compiled once, not once for each
/// place that asks the database.
struct Done {
    is_ok: bool,
    result: Box<dyn Any + Send>,
}

type AnyWork = Box<dyn for<'c> FnOnce(&'c mut Db) -> BoxFuture<'c, Done> + Send>;

async fn run<T, E, F>(transaction: Result<Transaction, Error>, work: F) -> Result<T, E>
where
    F: Transact<T, E>,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let work: AnyWork = Box::new(|db| {
        let result = work(db);
        Box::pin(async {
            let result: Result<T, E> = result.await;
            Done { is_ok: result.is_ok(), result: Box::new(result) }
        })
    });
    let transaction = transaction?;
    let span = transaction.span.clone();
    // The task of one transaction: it ends when that does, whoever still waits for it.
    let task = tokio::spawn(transaction.run(work).instrument(span));
    let (result, ended) = task.await.map_err(crashed)??;
    let result: Result<T, E> = *result.downcast().map_err(crashed)?;
    result.and_then(|done| ended.map(|()| done).map_err(E::from))
}

impl Transaction {
    /// What the work answered, and whether it was committed if it was to be.
    async fn run(self, work: AnyWork) -> Result<(Box<dyn Any + Send>, Result<(), Error>), Error> {
        let mut db = take(&self.pool).await?;
        let ran = async {
            begin(&mut db, &self.opening).await?;
            let done = work(&mut db).await;
            let (ended, is_clean) = end(&mut db, done.is_ok).await;
            self.span.record("committed", done.is_ok && ended.is_ok());
            Ok(((done.result, ended), is_clean))
        };
        let bounded = AssertUnwindSafe(self.silence.bound(self.limit, ran)).catch_unwind().await;
        let (done, is_clean) = match bounded.map(Result::flatten) {
            Ok(Ok((done, is_clean))) => (Ok(done), is_clean),
            Ok(Err(fault)) => (Err(fault), false),
            // In the pool it would keep its locks until its next user comes.
            Err(panic) => {
                discard(db);
                resume_unwind(panic)
            }
        };
        if !is_clean {
            // It may be half open, or still busy: not for its next user.
            discard(db);
        }
        done
    }
}

fn crashed<T>(_: T) -> Error {
    Error::Internal("a transaction crashed".to_owned())
}

async fn begin(db: &mut Db, opening: &str) -> Result<(), Error> {
    Ok(AnsiTransactionManager::begin_transaction_sql(db, opening).await?)
}

/// Commits what was done; rolls back what was refused, or could not be committed. And whether the
/// connection can be used again.
async fn end(db: &mut Db, is_done: bool) -> (Result<(), Error>, bool) {
    let ended = if is_done { commit(db).await } else { Ok(()) };
    let failed = !is_done || ended.is_err();
    let is_clean = !failed || AnsiTransactionManager::rollback_transaction(db).await.is_ok();
    (ended.map_err(Error::from), is_clean)
}

/// COMMIT of a transaction in which a statement failed is answered by a quiet ROLLBACK, which
/// diesel takes for success. The statement before it makes that an error.
async fn commit(db: &mut Db) -> QueryResult<()> {
    db.batch_execute("SELECT; COMMIT").await?;
    *AnsiTransactionManager::transaction_manager_status_mut(db) =
        TransactionManagerStatus::default();
    Ok(())
}

/// BEGIN and both settings in one message: a round trip less for every transaction.
fn opening(begin: &str, scope: &Scope) -> Result<String, Error> {
    let tenant = literal(scope.tenant.as_deref().unwrap_or_default())?;
    let actor = literal(&scope.actor)?;
    Ok(format!(
        "{begin}; SET LOCAL authority.tenant = {tenant}; SET LOCAL authority.actor = {actor}"
    ))
}

/// Quoted for SQL; the pool sets `standard_conforming_strings`, so a backslash is itself.
fn literal(text: &str) -> Result<String, Error> {
    if text.contains('\0') {
        return Err(Error::Internal("a scope holds U+0000".to_owned()));
    }
    Ok(format!("'{}'", text.replace('\'', "''")))
}

/// What is done in a transaction: an async closure that takes its connection.
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

/// An `AsyncFnOnce` whose future is `Send`, which stable Rust cannot say otherwise.
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
