//! A record in the flow, and its queries.
//!
//! The SQL is ordinary diesel on known tables, written out by [`queries!`]; each statement names
//! the caller's tenant, with row-level security behind it.

use authority_model::{
    record::{Listing, Record},
    validate::{Validate, Violations},
};
use chrono::{DateTime, Utc};
use diesel::QueryResult;

use super::{Error, Registry, page::Window, tenant};
use authority_api::{error::ErrorCode, identity::Caller};
use authority_core::store::Db;

/// A record or relationship row, and its place in SQL.
pub(super) trait Row: Record {
    type List: Listing + Validate + Send + Sync + 'static;
    /// The default state of a new record.
    const FIRST_STATE: &'static str = "active";
    /// Final states, in which a record cannot change.
    const FINAL: &'static [&'static str] = &[];
    /// Whether decisions depend on it: a write is then answered once the graph has it.
    const AUTHORITY: bool = false;

    /// Fills what the client may leave out.
    fn defaults(&mut self) {}

    /// Rules that span fields.
    fn validate_record(&self, found: &mut Violations) {
        let _ = found;
    }

    /// Rules that are slow or need the store, checked before the transaction on a new record or a patch of
    /// `patched`. Violations have the record's own member names.
    fn validate_with_store(
        &self,
        registry: &Registry,
        caller: &Caller,
        patched: Option<&str>,
    ) -> impl Future<Output = Result<Violations, Error>> + Send {
        let _ = (registry, caller, patched);
        async { Ok(Violations::default()) }
    }

    /// Finds the tenant of a row whose body does not name it.
    fn resolve_tenant(
        &mut self,
        db: &mut Db,
        within: Option<&str>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (db, within);
        async { Ok(()) }
    }

    /// The slug of its tenant, for ids. An unknown or deleted tenant is an error.
    fn tenant_slug(
        &self,
        db: &mut Db,
        within: Option<&str>,
    ) -> impl Future<Output = Result<String, Error>> + Send {
        tenant::slug(db, within, self.tenant_id())
    }

    /// The id of a new record.
    fn new_id(&self, slug: &str) -> String {
        format!("svc:ent:{slug}:{}:{}", Self::KIND, authority_core::store::new_id())
    }

    /// The record's id for a request's `id`.
    fn address(id: &str) -> String {
        id.to_owned()
    }

    /// Rules that need other rows, just before the write; `was` is the locked row of an update.
    fn before_save(
        &mut self,
        was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (was, tx);
        async { Ok(()) }
    }

    /// Writes related rows, just after a new record was written.
    fn after_insert(
        &self,
        made: &mut Self,
        tx: &mut WriteTx<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (made, tx);
        async { Ok(()) }
    }

    /// Runs before a delete, on the locked row: refuses while others refer to it, ends what depends on it.
    fn before_delete(
        &self,
        tx: &mut WriteTx<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = tx;
        async { Ok(()) }
    }

    /// Fills members that are shown and not stored in the rows.
    fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (registry, caller, rows);
        async { Ok(()) }
    }

    // Written by `queries!`.
    fn list(
        db: &mut Db,
        within: Option<&str>,
        by: &Self::List,
        window: &Window,
    ) -> impl Future<Output = QueryResult<(Vec<Self>, Option<i64>)>> + Send;
    fn insert(db: &mut Db, new: &Self) -> impl Future<Output = QueryResult<Self>> + Send;
    fn find(
        db: &mut Db,
        within: Option<&str>,
        id: &str,
        deleted: bool,
    ) -> impl Future<Output = QueryResult<Self>> + Send;
    fn lock(
        db: &mut Db,
        within: Option<&str>,
        id: &str,
    ) -> impl Future<Output = QueryResult<Self>> + Send;
    fn erase(db: &mut Db, row: &Self) -> impl Future<Output = QueryResult<usize>> + Send;
}

/// A row that can change, and that its record ends in its own way.
pub(super) trait Entity: Row {
    const ON_DELETE: OnDelete;

    fn save(db: &mut Db, row: &Self) -> impl Future<Output = QueryResult<Self>> + Send;
    /// Moves it into this final state; with `hide`, also soft-deletes it.
    fn end(
        db: &mut Db,
        row: &Self,
        state: &'static str,
        hide: bool,
    ) -> impl Future<Output = QueryResult<Self>> + Send;
}

/// A record that suspends authority until it is lifted, which is final.
pub(super) trait Stops: Row {
    fn lift(db: &mut Db, row: &Self, by: &str) -> impl Future<Output = QueryResult<Self>> + Send;
}

/// What deleting a record means.
#[derive(Clone, Copy)]
pub(super) enum OnDelete {
    /// The row is gone; its history stays.
    Erase,
    /// The row stays in this state and is hidden unless requested.
    Hide(&'static str),
    /// The row stays readable in this final state.
    End(&'static str),
    /// It is refused with this code.
    Refuse(ErrorCode),
}

/// The context of a record's rules inside its transaction.
pub(super) struct WriteTx<'a> {
    pub db: &'a mut Db,
    pub caller: &'a Caller,
    pub now: DateTime<Utc>,
}

diesel::define_sql_function! {
    /// The current time, not the transaction's start: each write of a row gets its own.
    fn clock_timestamp() -> Timestamptz;
}

/// The queries of a [`Row`] and, unless `row` is given, of an [`Entity`], on the given table:
/// `queries!(tools)`, `queries!(tenants, hidden)` where rows are soft-deleted,
/// `queries!(member_of, row)` where they have neither state nor changes.
macro_rules! queries {
    (@state row $table:ident $query:ident $page:ident) => { let _ = &mut $query; };
    (@state $any:tt $table:ident $query:ident $page:ident) => {
        if let Some(state) = $page.state {
            $query = $query.filter($table::state.eq(state));
        }
    };
    (@alive hidden $table:ident $query:ident $deleted:expr) => {
        if !$deleted {
            $query = $query.filter($table::deleted_at.is_null());
        }
    };
    (@alive $any:tt $table:ident $query:ident $deleted:expr) => { let _ = $deleted; };
    ($table:ident) => { queries!($table, plain); };
    ($table:ident, $form:tt) => {
        async fn list(
            db: &mut Db,
            within: Option<&str>,
            by: &Self::List,
            window: &Window,
        ) -> QueryResult<(Vec<Self>, Option<i64>)> {
            let page = Listing::page(by);
            let matching = || {
                let mut query = filtered(by);
                for tenant in [page.tenant_id, within].into_iter().flatten() {
                    query = query.filter($table::tenant_id.eq(tenant.to_owned()));
                }
                queries!(@state $form $table query page);
                let deleted = page.deleted || page.state == Some("deleted");
                queries!(@alive $form $table query deleted);
                query
            };
            let total = match page.count {
                true => Some(matching().count().get_result(db).await?),
                false => None,
            };
            let mut query = matching();
            if let Some((at, id)) = &window.after {
                let later = $table::created_at
                    .gt(*at)
                    .or($table::created_at.eq(*at).and($table::id.gt(id.as_str())));
                query = query.filter(later);
            }
            let rows = query
                .order(($table::created_at, $table::id))
                .limit(window.query_limit())
                .select(Self::as_select())
                .load(db)
                .await?;
            Ok((rows, total))
        }

        async fn insert(db: &mut Db, new: &Self) -> QueryResult<Self> {
            diesel::insert_into($table::table)
                .values(new)
                .returning(Self::as_returning())
                .get_result(db)
                .await
        }

        async fn find(
            db: &mut Db,
            within: Option<&str>,
            id: &str,
            deleted: bool,
        ) -> QueryResult<Self> {
            let mut query = $table::table.filter($table::id.eq(id)).into_boxed();
            if let Some(tenant) = within {
                query = query.filter($table::tenant_id.eq(tenant));
            }
            queries!(@alive $form $table query deleted);
            query.select(Self::as_select()).first(db).await
        }

        async fn lock(db: &mut Db, within: Option<&str>, id: &str) -> QueryResult<Self> {
            let row = $table::table
                .filter($table::id.eq(id))
                .filter(
                    $table::tenant_id
                        .eq(within.unwrap_or_default())
                        .or(within.is_none().into_sql::<Bool>()),
                )
                .for_update()
                .select(Self::as_select())
                .first::<Self>(db)
                .await?;
            queries!(@living $form row);
            Ok(row)
        }

        async fn erase(db: &mut Db, row: &Self) -> QueryResult<usize> {
            diesel::delete($table::table.find(&row.id))
                .filter($table::tenant_id.eq(Record::tenant_id(row)))
                .execute(db)
                .await
        }
    };
    (@living hidden $row:ident) => {
        if $row.deleted_at.is_some() {
            return Err(diesel::result::Error::NotFound);
        }
    };
    (@living $any:tt $row:ident) => {};
}
pub(super) use queries;

/// The writes of an [`Entity`] on the given table; `hidden` where rows are soft-deleted, `warnings`
/// where each write lists what it made stricter.
macro_rules! changes {
    ($table:ident) => {
        changes!(@save $table);
        changes!(@end $table);
    };
    (@end $table:ident) => {
        async fn end(
            db: &mut Db,
            row: &Self,
            state: &'static str,
            _hide: bool,
        ) -> QueryResult<Self> {
            diesel::update($table::table.find(&row.id))
                .filter($table::tenant_id.eq(Record::tenant_id(row)))
                .set(($table::state.eq(state), $table::updated_at.eq(clock_timestamp())))
                .returning(Self::as_returning())
                .get_result(db)
                .await
        }
    };
    // With a member that the server rewrites at each change.
    ($table:ident, warnings) => {
        changes!(@save $table warnings);
        changes!(@end $table);
    };
    ($table:ident, hidden) => {
        changes!(@save $table);

        async fn end(
            db: &mut Db,
            row: &Self,
            state: &'static str,
            hide: bool,
        ) -> QueryResult<Self> {
            let at = hide.then(clock_timestamp);
            diesel::update($table::table.find(&row.id))
                .filter($table::tenant_id.eq(Record::tenant_id(row)))
                .set((
                    $table::state.eq(state),
                    $table::updated_at.eq(clock_timestamp()),
                    at.map(|at| $table::deleted_at.eq(at.nullable())),
                ))
                .returning(Self::as_returning())
                .get_result(db)
                .await
        }
    };
    (@save $table:ident $($own:ident)?) => {
        async fn save(db: &mut Db, row: &Self) -> QueryResult<Self> {
            diesel::update($table::table.find(&row.id))
                .filter($table::tenant_id.eq(Record::tenant_id(row)))
                .set((row, $($table::$own.eq(&row.$own),)? $table::updated_at.eq(clock_timestamp())))
                .returning(Self::as_returning())
                .get_result(db)
                .await
        }
    };
}
pub(super) use changes;
