//! Runs diesel's queries.
//!
//! diesel-async's own `RunQueryDsl` gives each query its own types of futures and streams, with
//! about a hundred functions for each query. Here a query runs in diesel-async's boxed future, and
//! only decoding is compiled for each type of row. Boxing keeps a query's type out of the futures
//! that wait for it. Checking that those futures are `Send` took most of the compile time.

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
use futures_util::{TryStreamExt, future::BoxFuture};

use super::transaction::Db;

type PgRow = <AsyncPgConnection as AsyncConnectionCore>::Row<'static, 'static>;
/// Rows that are still being received.
type LoadingRows<'c> = <AsyncPgConnection as AsyncConnectionCore>::LoadFuture<'c, 'static>;
type Read<U> = fn(&PgRow) -> QueryResult<U>;

/// Runs a query.
///
/// The name is the same as diesel's, like in diesel-async: importing it hides the trait in
/// `diesel::prelude::*`. With another name, each call of `load` would be ambiguous.
pub trait RunQueryDsl: Sized {
    /// Runs the query. Returns the number of changed rows.
    fn execute(self, db: &mut Db) -> BoxFuture<'_, QueryResult<usize>>
    where
        Self: QueryFragment<Pg> + QueryId + Send,
    {
        db.execute_returning_count(self)
    }

    fn load<'q, 'c, U>(self, db: &'c mut Db) -> BoxFuture<'c, QueryResult<Vec<U>>>
    where
        Self: AsQuery + 'q,
        Self::Query: QueryFragment<Pg> + QueryId + 'q,
        Self::SqlType: CompatibleType<U, Pg>,
        U: FromSqlRow<<Self::SqlType as CompatibleType<U, Pg>>::SqlType, Pg> + Send + 'static,
        Pg: QueryMetadata<Self::SqlType>,
    {
        Box::pin(every(AsyncConnectionCore::load(db, self), read))
    }

    /// Returns the only row; `NotFound` if there is none.
    fn get_result<'q, 'c, U>(self, db: &'c mut Db) -> BoxFuture<'c, QueryResult<U>>
    where
        Self: AsQuery + 'q,
        Self::Query: QueryFragment<Pg> + QueryId + 'q,
        Self::SqlType: CompatibleType<U, Pg>,
        U: FromSqlRow<<Self::SqlType as CompatibleType<U, Pg>>::SqlType, Pg> + Send + 'static,
        Pg: QueryMetadata<Self::SqlType>,
    {
        Box::pin(one(AsyncConnectionCore::load(db, self), read))
    }

    /// Returns the first row; `NotFound` if there is none.
    fn first<'q, 'c, U>(self, db: &'c mut Db) -> BoxFuture<'c, QueryResult<U>>
    where
        Self: LimitDsl,
        Limit<Self>: AsQuery + 'q,
        <Limit<Self> as AsQuery>::Query: QueryFragment<Pg> + QueryId + 'q,
        <Limit<Self> as AsQuery>::SqlType: CompatibleType<U, Pg>,
        U: FromSqlRow<<<Limit<Self> as AsQuery>::SqlType as CompatibleType<U, Pg>>::SqlType, Pg>
            + Send
            + 'static,
        Pg: QueryMetadata<<Limit<Self> as AsQuery>::SqlType>,
    {
        self.limit(1).get_result(db)
    }
}

impl<T> RunQueryDsl for T {}

/// Decodes a row.
///
/// A function, and not a closure in [`RunQueryDsl`], to be compiled per row type and not per query.
fn read<U: FromSqlRow<S, Pg>, S>(row: &PgRow) -> QueryResult<U> {
    U::build_from_row(row).map_err(Error::DeserializationError)
}

async fn every<U>(asked: LoadingRows<'_>, read: Read<U>) -> QueryResult<Vec<U>> {
    rows(asked).await?.iter().map(read).collect()
}

async fn one<U>(asked: LoadingRows<'_>, read: Read<U>) -> QueryResult<U> {
    first(asked).await?.as_ref().map_or(Err(Error::NotFound), read)
}

async fn rows(asked: LoadingRows<'_>) -> QueryResult<Vec<PgRow>> {
    asked.await?.try_collect().await
}

async fn first(asked: LoadingRows<'_>) -> QueryResult<Option<PgRow>> {
    asked.await?.try_next().await
}
