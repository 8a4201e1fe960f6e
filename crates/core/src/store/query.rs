//! Runs diesel's queries.
//!
//! diesel-async's own `RunQueryDsl` gives each query its own types of futures and streams, about a hundred
//! functions for each. Here a query runs in diesel-async's boxed future, and only decoding is compiled for
//! each type of row.

use diesel::{
    QueryResult,
    deserialize::FromSqlRow,
    dsl::Limit,
    expression::QueryMetadata,
    pg::Pg,
    query_builder::{AsQuery, QueryFragment, QueryId},
    query_dsl::{CompatibleType, methods::LimitDsl},
    result::Error,
};
use diesel_async::{AsyncConnectionCore, AsyncPgConnection};
use futures_util::TryStreamExt;

use super::Db;

type Row = <AsyncPgConnection as AsyncConnectionCore>::Row<'static, 'static>;
/// Rows on their way from the database.
type Asked<'c> = <AsyncPgConnection as AsyncConnectionCore>::LoadFuture<'c, 'static>;
type Read<U> = fn(&Row) -> QueryResult<U>;

/// Runs a query. Like diesel-async's trait it has the name of diesel's, so that an import of it hides the one in
/// `diesel::prelude::*`: with another name, each call of `load` would be ambiguous.
pub trait RunQueryDsl: Sized {
    /// Runs it; returns the number of changed rows.
    fn execute(self, db: &mut Db) -> impl Future<Output = QueryResult<usize>> + Send
    where
        Self: QueryFragment<Pg> + QueryId + Send,
    {
        db.execute_returning_count(self)
    }

    fn load<'q, U>(self, db: &mut Db) -> impl Future<Output = QueryResult<Vec<U>>> + Send
    where
        Self: LoadQuery<'q, U>,
        U: Send,
    {
        every(self.ask(db), Self::READ)
    }

    /// The only row; `NotFound` if there is none.
    fn get_result<'q, U>(self, db: &mut Db) -> impl Future<Output = QueryResult<U>> + Send
    where
        Self: LoadQuery<'q, U>,
        U: Send,
    {
        one(self.ask(db), Self::READ)
    }

    /// The first of the rows; `NotFound` if there is none.
    fn first<'q, U>(self, db: &mut Db) -> impl Future<Output = QueryResult<U>> + Send
    where
        Self: LimitDsl,
        Limit<Self>: LoadQuery<'q, U>,
        U: Send,
    {
        one(self.limit(1).ask(db), Limit::<Self>::READ)
    }
}

impl<T> RunQueryDsl for T {}

/// A query whose rows are read as `U`.
pub trait LoadQuery<'q, U> {
    const READ: Read<U>;

    fn ask(self, db: &mut Db) -> Asked<'_>;
}

impl<'q, T, U, S> LoadQuery<'q, U> for T
where
    T: AsQuery + 'q,
    T::Query: QueryFragment<Pg> + QueryId + 'q,
    T::SqlType: CompatibleType<U, Pg, SqlType = S>,
    U: FromSqlRow<S, Pg>,
    Pg: QueryMetadata<T::SqlType>,
{
    const READ: Read<U> = |row| U::build_from_row(row).map_err(Error::DeserializationError);

    fn ask(self, db: &mut Db) -> Asked<'_> {
        AsyncConnectionCore::load(db, self)
    }
}

async fn every<U>(asked: Asked<'_>, read: Read<U>) -> QueryResult<Vec<U>> {
    rows(asked).await?.iter().map(read).collect()
}

async fn one<U>(asked: Asked<'_>, read: Read<U>) -> QueryResult<U> {
    first(asked).await?.as_ref().map_or(Err(Error::NotFound), read)
}

async fn rows(asked: Asked<'_>) -> QueryResult<Vec<Row>> {
    asked.await?.try_collect().await
}

async fn first(asked: Asked<'_>) -> QueryResult<Option<Row>> {
    asked.await?.try_next().await
}
