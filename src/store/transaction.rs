//! Transactions that know for whom they run.

use diesel::{QueryResult, connection::TransactionManagerStatus};
use diesel_async::{
    AnsiTransactionManager, AsyncPgConnection, SimpleAsyncConnection, TransactionManager,
};

use super::{Error, Pooled, Store};

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
    /// The service's own work, for every tenant.
    pub fn service() -> Self {
        Self { tenant: None, actor: SERVICE.to_owned() }
    }
}

impl Store {
    /// Runs `work` in one transaction, which commits when `work` answers `Ok`. It runs to its end
    /// in a task of its own even when the caller goes away: a dropped query would commit all the
    /// same, and block its connection's next user.
    pub async fn act<T, E, F>(&self, scope: &Scope, work: F) -> Result<T, E>
    where
        for<'c> F: AsyncFnOnce(&'c mut Db) -> Result<T, E>
            + Work<&'c mut Db, Result<T, E>, Fut: Send>
            + Send
            + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.run("BEGIN", scope, work).await
    }

    /// The same for `work` that only reads: Postgres refuses it a write.
    pub async fn read<T, E, F>(&self, scope: &Scope, work: F) -> Result<T, E>
    where
        for<'c> F: AsyncFnOnce(&'c mut Db) -> Result<T, E>
            + Work<&'c mut Db, Result<T, E>, Fut: Send>
            + Send
            + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.run("BEGIN READ ONLY", scope, work).await
    }

    async fn run<T, E, F>(&self, begin: &'static str, scope: &Scope, work: F) -> Result<T, E>
    where
        for<'c> F: AsyncFnOnce(&'c mut Db) -> Result<T, E>
            + Work<&'c mut Db, Result<T, E>, Fut: Send>
            + Send
            + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let opening = opening(begin, scope)?;
        let pool = if scope.tenant.is_some() { self.tenant.clone() } else { self.system.clone() };
        let task = tokio::spawn(async move {
            let db = pool.get().await.map_err(Error::from)?;
            transaction(db, &opening, work).await
        });
        task.await.map_err(|fault| Error::Internal(format!("a transaction crashed: {fault}")))?
    }
}

async fn transaction<T, E, F>(mut db: Pooled, opening: &str, work: F) -> Result<T, E>
where
    for<'c> F:
        AsyncFnOnce(&'c mut Db) -> Result<T, E> + Work<&'c mut Db, Result<T, E>, Fut: Send> + Send,
    E: From<Error>,
{
    if let Err(fault) = AnsiTransactionManager::begin_transaction_sql(&mut *db, opening).await {
        // It may be half open: not for its next user.
        drop(Pooled::take(db));
        return Err(Error::from(fault).into());
    }
    let done = match work(&mut db).await {
        Ok(done) => commit(&mut db).await.map(|()| done).map_err(|fault| Error::from(fault).into()),
        Err(refused) => Err(refused),
    };
    if done.is_err() && AnsiTransactionManager::rollback_transaction(&mut *db).await.is_err() {
        drop(Pooled::take(db));
    }
    done
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
