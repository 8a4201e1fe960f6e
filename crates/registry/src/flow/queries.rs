//! The queries of a record's table.
//!
//! A query names the columns of one table, and diesel gives each table its own column types. The
//! macros in this file therefore write the same queries for each record, one trait per macro. The
//! code that uses the queries is ordinary code over these traits, in `entity.rs`.

use authority_model::record::Record;
use diesel::QueryResult;
use futures_util::future::BoxFuture;

use super::page::Window;
use authority_ids::TenantId;
use authority_store::Db;

/// A running query. It is boxed, because a type for each query doubled the compile time.
pub(crate) type QueryFuture<'c, T> = BoxFuture<'c, QueryResult<T>>;

/// Reads, inserts and deletes a record's rows. `within` limits the rows to one tenant, and `None`
/// finds the rows of every tenant. Row-level security also applies.
pub(crate) trait Queries: Sized {
    /// A query on the table, with any filters.
    type BoxedQuery<'a>: Send;

    fn in_tenant<'a>(query: Self::BoxedQuery<'a>, tenant_id: &str) -> Self::BoxedQuery<'a>;

    fn count<'c>(db: &'c mut Db, query: Self::BoxedQuery<'_>) -> QueryFuture<'c, i64>;

    fn load_page<'a, 'c>(
        db: &'c mut Db,
        query: Self::BoxedQuery<'a>,
        window: &'a Window,
    ) -> QueryFuture<'c, Vec<Self>>;

    fn by_id<'c>(db: &'c mut Db, within: Option<&TenantId>, id: &str) -> QueryFuture<'c, Self>;

    /// Returns the same row, locked until the transaction ends.
    fn by_id_for_update<'c>(
        db: &'c mut Db,
        within: Option<&TenantId>,
        id: &str,
    ) -> QueryFuture<'c, Self>;

    fn insert<'c>(db: &'c mut Db, new: &Self) -> QueryFuture<'c, Self>;

    fn erase<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, usize>;
}

/// Writes a changed record.
pub(crate) trait Save: Sized {
    fn save<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self>;
}

/// Moves a record into the final state of a delete.
pub(crate) trait End: Record {
    fn end<'c>(db: &'c mut Db, row: &'c Self, state: Self::State) -> QueryFuture<'c, Self>;
}

/// Finds which IDs exist in a table, for records that others refer to.
pub(crate) trait Referenced {
    /// Returns the `ids` that exist in the tenant. Their rows are locked against deletion.
    fn present<'c>(
        db: &'c mut Db,
        tenant: &TenantId,
        ids: &[String],
    ) -> QueryFuture<'c, Vec<String>>;
}

diesel::define_sql_function! {
    /// The current time, not the start of the transaction. Each write of a row gets its own time.
    fn clock_timestamp() -> Timestamptz;
}

/// Implements [`Queries`] for a record on its table. Lists are oldest first by default, or
/// `newest first`.
macro_rules! impl_queries {
    ($record:ident, $table:ident) => {
        impl_queries!($record, $table, gt, asc);
    };
    ($record:ident, $table:ident, newest first) => {
        impl_queries!($record, $table, lt, desc);
    };
    ($record:ident, $table:ident, $is_past:ident, $order:ident) => {
        impl Queries for $record {
            type BoxedQuery<'a> = $table::BoxedQuery<'a, Pg>;

            fn in_tenant<'a>(query: Self::BoxedQuery<'a>, tenant_id: &str) -> Self::BoxedQuery<'a> {
                query.filter($table::tenant_id.eq(tenant_id.to_owned()))
            }

            fn count<'c>(db: &'c mut Db, query: Self::BoxedQuery<'_>) -> QueryFuture<'c, i64> {
                query.count().get_result(db)
            }

            fn load_page<'a, 'c>(
                db: &'c mut Db,
                mut query: Self::BoxedQuery<'a>,
                window: &'a Window,
            ) -> QueryFuture<'c, Vec<Self>> {
                if let Some((at, id)) = &window.after {
                    let past = $table::created_at
                        .$is_past(*at)
                        .or($table::created_at.eq(*at).and($table::id.$is_past(id.as_str())));
                    query = query.filter(past);
                }
                query
                    .order(($table::created_at.$order(), $table::id.$order()))
                    .limit(window.query_limit())
                    .select(Self::as_select())
                    .load(db)
            }

            fn by_id<'c>(
                db: &'c mut Db,
                within: Option<&TenantId>,
                id: &str,
            ) -> QueryFuture<'c, Self> {
                let mut query = $table::table.filter($table::id.eq(id)).into_boxed();
                if let Some(tenant_id) = within {
                    query = query.filter($table::tenant_id.eq(tenant_id.as_str()));
                }
                query.select(Self::as_select()).first(db)
            }

            fn by_id_for_update<'c>(
                db: &'c mut Db,
                within: Option<&TenantId>,
                id: &str,
            ) -> QueryFuture<'c, Self> {
                $table::table
                    .filter($table::id.eq(id))
                    .filter(
                        $table::tenant_id
                            .eq(within.map_or("", TenantId::as_str))
                            .or(within.is_none().into_sql::<Bool>()),
                    )
                    .for_update()
                    .select(Self::as_select())
                    .first(db)
            }

            fn insert<'c>(db: &'c mut Db, new: &Self) -> QueryFuture<'c, Self> {
                diesel::insert_into($table::table)
                    .values(new)
                    .returning(Self::as_returning())
                    .get_result(db)
            }

            fn erase<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, usize> {
                diesel::delete($table::table.find(&row.id))
                    .filter($table::tenant_id.eq(Record::tenant_id(row)))
                    .execute(db)
            }
        }
    };
}
pub(crate) use impl_queries;

/// Implements [`Save`] for a record on its table.
macro_rules! impl_save {
    ($record:ident, $table:ident) => {
        impl Save for $record {
            fn save<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self> {
                diesel::update($table::table.find(&row.id))
                    .filter($table::tenant_id.eq(Record::tenant_id(row)))
                    .set((row, $table::updated_at.eq(clock_timestamp())))
                    .returning(Self::as_returning())
                    .get_result(db)
            }
        }
    };
}
pub(crate) use impl_save;

/// Implements [`End`] for a record on its table.
macro_rules! impl_end {
    ($record:ident, $table:ident) => {
        impl End for $record {
            fn end<'c>(db: &'c mut Db, row: &'c Self, state: Self::State) -> QueryFuture<'c, Self> {
                diesel::update($table::table.find(&row.id))
                    .filter($table::tenant_id.eq(Record::tenant_id(row)))
                    .set(($table::state.eq(state), $table::updated_at.eq(clock_timestamp())))
                    .returning(Self::as_returning())
                    .get_result(db)
            }
        }
    };
}
pub(crate) use impl_end;

/// Implements [`Referenced`] for a record on its table.
macro_rules! impl_referenced {
    ($record:ident, $table:ident) => {
        impl Referenced for $record {
            fn present<'c>(
                db: &'c mut Db,
                tenant: &TenantId,
                ids: &[String],
            ) -> QueryFuture<'c, Vec<String>> {
                $table::table
                    .filter($table::tenant_id.eq(tenant.as_str()))
                    .filter($table::id.eq_any(ids))
                    .for_key_share()
                    .select($table::id)
                    .load(db)
            }
        }
    };
}
pub(crate) use impl_referenced;

/// Implements `SoftDelete` for a record on its table.
macro_rules! impl_soft_delete {
    ($record:ident, $table:ident) => {
        impl SoftDelete for $record {
            fn soft_delete<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self> {
                diesel::update($table::table.find(&row.id))
                    .set((
                        $table::deleted_at.eq(clock_timestamp().nullable()),
                        $table::updated_at.eq(clock_timestamp()),
                    ))
                    .returning(Self::as_returning())
                    .get_result(db)
            }
        }
    };
}
pub(crate) use impl_soft_delete;
