//! The statements that lock and spend approvals and counters. They take their rows as columns, as
//! in `sql.rs`.

use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Integer, Text, Timestamptz},
};

use super::sql::run_queries;
use authority_decision::facts::CounterKey;

/// Locks the approvals that can still be used. Returns the tenant and ID of each.
#[derive(Default)]
pub(super) struct LockApprovals<'a> {
    pub(super) id: Vec<&'a str>,
    pub(super) now: DateTime<Utc>,
}

impl Query for LockApprovals<'_> {
    type SqlType = (Text, Text);
}

impl QueryFragment<Pg> for LockApprovals<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT tenant_id, id FROM approvals WHERE id = ANY(");
        out.push_bind_param::<Array<Text>, _>(&self.id)?;
        out.push_sql(") AND state = 'approved' AND expires_at > ");
        out.push_bind_param::<Timestamptz, _>(&self.now)?;
        out.push_sql(" ORDER BY id FOR UPDATE");
        Ok(())
    }
}

/// Spends approvals, each on one decision.
#[derive(Default)]
pub(super) struct UseApprovals<'a> {
    pub(super) id: Vec<&'a str>,
    pub(super) decision: Vec<&'a str>,
    pub(super) now: DateTime<Utc>,
}

impl QueryFragment<Pg> for UseApprovals<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE approvals SET state = 'used', used_by = spent.d, updated_at = ");
        out.push_bind_param::<Timestamptz, _>(&self.now)?;
        out.push_sql(" FROM UNNEST(");
        out.push_bind_param::<Array<Text>, _>(&self.id)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.decision)?;
        out.push_sql(") AS spent (i, d) WHERE id = spent.i");
        Ok(())
    }
}

/// Counters as columns.
#[derive(Default)]
pub(super) struct Counters<'a> {
    tenant: Vec<&'a str>,
    holder: Vec<&'a str>,
    counts: Vec<&'a str>,
    window: Vec<i32>,
    start: Vec<i64>,
}

impl<'a> Counters<'a> {
    pub(super) fn push(&mut self, (tenant, key): (&'a str, &'a CounterKey)) {
        self.tenant.push(tenant);
        self.holder.push(&key.holder_id);
        self.counts.push(key.counts.word());
        self.window.push(i32::try_from(key.window_seconds).unwrap_or(i32::MAX));
        self.start.push(key.window_start);
    }

    fn bind<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for column in [&self.tenant, &self.holder, &self.counts] {
            out.push_bind_param::<Array<Text>, _>(column)?;
            out.push_sql(", ");
        }
        out.push_bind_param::<Array<Integer>, _>(&self.window)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.start)
    }
}

/// A counter's columns and value.
pub(super) type CounterHeld = (String, String, String, i32, i64, i64);

/// Locks counters, creating new ones, and returns their values.
#[derive(Default)]
pub(super) struct LockCounters<'a>(pub(super) Counters<'a>);

impl Query for LockCounters<'_> {
    type SqlType = (Text, Text, Text, Integer, BigInt, BigInt);
}

impl QueryFragment<Pg> for LockCounters<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO counters (tenant_id, holder_id, counts, window_seconds, window_start) \
             SELECT * FROM UNNEST(",
        );
        self.0.bind(&mut out)?;
        // The update keeps the value. It only locks an existing row.
        out.push_sql(
            ") AS wanted (t, h, c, w, s) ORDER BY t, h, c, w, s \
             ON CONFLICT (tenant_id, holder_id, counts, window_seconds, window_start) \
             DO UPDATE SET used = counters.used \
             RETURNING tenant_id, holder_id, counts, window_seconds, window_start, used",
        );
        Ok(())
    }
}

/// Adds the used amounts to locked counters.
#[derive(Default)]
pub(super) struct AddToCounters<'a> {
    pub(super) counters: Counters<'a>,
    pub(super) by: Vec<i64>,
}

impl QueryFragment<Pg> for AddToCounters<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE counters SET used = used + spent.n FROM UNNEST(");
        self.counters.bind(&mut out)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.by)?;
        out.push_sql(
            ") AS spent (t, h, c, w, s, n) WHERE tenant_id = spent.t AND holder_id = spent.h \
             AND counts = spent.c AND window_seconds = spent.w AND window_start = spent.s",
        );
        Ok(())
    }
}

run_queries!(LockApprovals, UseApprovals, LockCounters, AddToCounters);
