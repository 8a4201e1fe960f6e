//! The statements that number events.
//!
//! They take one array for each column (`UNNEST`). A connection therefore prepares each statement
//! once, for any number of events.

use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Bytea, Integer, Text},
};

use crate::{feed, log_row::NewRow};

/// Raises tenants' sequences and returns them.
pub(crate) struct RaiseHeads<'a> {
    pub(crate) tenants: Vec<&'a str>,
    pub(crate) raised: Vec<i64>,
}

impl Query for RaiseHeads<'_> {
    type SqlType = (Text, BigInt);
}

impl QueryId for RaiseHeads<'_> {
    type QueryId = RaiseHeads<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for RaiseHeads<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("INSERT INTO event_heads (tenant_id, sequence) SELECT * FROM unnest(");
        out.push_bind_param::<Array<Text>, _>(&self.tenants)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.raised)?;
        out.push_sql(
            ") AS raised (tenant_id, sequence) ON CONFLICT (tenant_id) DO UPDATE \
             SET sequence = event_heads.sequence + EXCLUDED.sequence \
             RETURNING tenant_id, sequence",
        );
        Ok(())
    }
}

/// Writes events, deletes their rows from the outbox, and notifies readers of the logs.
#[derive(Default)]
pub(crate) struct WriteEvents<'a> {
    id: Vec<String>,
    tenant: Vec<&'a str>,
    last_sequence: Vec<i64>,
    size: Vec<i32>,
    event_types: Vec<String>,
    bodies: Vec<Vec<u8>>,
    rows: Vec<i64>,
    grown: Vec<&'a str>,
}

impl<'a> WriteEvents<'a> {
    /// Creates a statement without events for these rows of the outbox and these tenants.
    pub(crate) fn of(rows: Vec<i64>, grown: Vec<&'a str>) -> Self {
        Self { rows, grown, ..Self::default() }
    }

    pub(crate) fn push(&mut self, tenant_id: &'a str, row: NewRow) {
        self.event_types.push(row.event_types());
        self.id.push(row.id.into());
        self.tenant.push(tenant_id);
        self.last_sequence.push(row.last_sequence);
        self.size.push(i32::try_from(row.size).unwrap_or(i32::MAX));
        self.bodies.push(row.bodies);
    }
}

impl QueryId for WriteEvents<'_> {
    type QueryId = WriteEvents<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for WriteEvents<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "WITH numbered AS (INSERT INTO events \
                 (id, tenant_id, last_sequence, size, event_types, bodies) SELECT * FROM unnest(",
        );
        out.push_bind_param::<Array<Text>, _>(&self.id)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.last_sequence)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.size)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.event_types)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bytea>, _>(&self.bodies)?;
        out.push_sql(")), taken AS (DELETE FROM event_outbox WHERE number = ANY (");
        out.push_bind_param::<Array<BigInt>, _>(&self.rows)?;
        out.push_sql(")) SELECT pg_notify(");
        out.push_bind_param::<Text, _>(feed::CHANNEL)?;
        out.push_sql(", tenant_id) FROM unnest(");
        out.push_bind_param::<Array<Text>, _>(&self.grown)?;
        out.push_sql(") AS grown (tenant_id)");
        Ok(())
    }
}
