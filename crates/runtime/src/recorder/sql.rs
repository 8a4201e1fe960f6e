//! The recorder's statements. Each takes its rows as columns (`UNNEST`), and is one prepared
//! statement for any batch size. Diesel caches neither `sql_query` nor multi-row `VALUES`.

use authority_model::proto::approval::{ApprovalAuthority, Asker};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Bytea, Integer, Jsonb, Nullable, Text, Timestamptz},
};
use serde_json::Value;

/// Takes the fence, which keeps the tenants' revisions unchanged until the transaction ends.
/// Returns each tenant's current revision and the time.
pub(super) struct Fence<'a> {
    pub(super) tenants: Vec<&'a str>,
}

impl Query for Fence<'_> {
    type SqlType = (Text, BigInt, Timestamptz);
}

impl QueryFragment<Pg> for Fence<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT tenant_id, revision, clock_timestamp() FROM fence(");
        out.push_bind_param::<Array<Text>, _>(&self.tenants)?;
        out.push_sql(")");
        Ok(())
    }
}

/// Stores large facts that are not stored yet.
#[derive(Default)]
pub(super) struct InsertBlobs<'a> {
    pub(super) tenant: Vec<&'a str>,
    pub(super) sha256: Vec<&'a [u8]>,
    pub(super) body: Vec<&'a [u8]>,
}

impl QueryFragment<Pg> for InsertBlobs<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO fact_blobs (tenant_id, sha256, body) SELECT t, s, b FROM UNNEST(",
        );
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bytea>, _>(&self.sha256)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bytea>, _>(&self.body)?;
        out.push_sql(") AS blob (t, s, b) ORDER BY t, s ON CONFLICT DO NOTHING");
        Ok(())
    }
}

/// Opens approval requests. A pending request with the same digest is left unchanged.
#[derive(Default)]
pub(super) struct InsertApprovals<'a> {
    pub(super) id: Vec<&'a str>,
    pub(super) tenant: Vec<&'a str>,
    pub(super) decision: Vec<&'a str>,
    pub(super) subject: Vec<&'a str>,
    pub(super) action: Vec<&'a str>,
    pub(super) reason: Vec<&'a str>,
    pub(super) digest: Vec<&'a [u8]>,
    pub(super) needed: Vec<i32>,
    /// Comma-separated, because Postgres has no arrays of arrays of unequal length.
    pub(super) roles: Vec<String>,
    pub(super) at: Vec<DateTime<Utc>>,
    pub(super) expires: Vec<DateTime<Utc>>,
    pub(super) authority: Vec<Option<&'a ApprovalAuthority>>,
    /// Each value is a JSON array, for the same reason as `roles`.
    pub(super) policies: Vec<&'a Value>,
    pub(super) reality: Vec<&'a Value>,
    pub(super) requested_by: Vec<&'a Asker>,
    pub(super) email: Vec<Option<&'a str>>,
    pub(super) eligible: Vec<Option<&'static str>>,
    pub(super) justification: Vec<Option<&'a str>>,
}

impl QueryFragment<Pg> for InsertApprovals<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO approvals (id, tenant_id, decision_id, subject, action, reason_code, \
             request_digest, needed, roles, created_at, expires_at, authority, policies, \
             reality, requested_by, asker_emails, eligible, justification) \
             SELECT i, t, d, s, a, r, q, n, string_to_array(o, ','), c, e, u, \
             ARRAY(SELECT jsonb_array_elements(p)), ARRAY(SELECT jsonb_array_elements(w)), ARRAY[b], \
             array_remove(ARRAY[m], NULL), l, j FROM UNNEST(",
        );
        let texts =
            [&self.id, &self.tenant, &self.decision, &self.subject, &self.action, &self.reason];
        for column in texts {
            out.push_bind_param::<Array<Text>, _>(column)?;
            out.push_sql(", ");
        }
        out.push_bind_param::<Array<Bytea>, _>(&self.digest)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.needed)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.roles)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Timestamptz>, _>(&self.at)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Timestamptz>, _>(&self.expires)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Jsonb>>, _>(&self.authority)?;
        out.push_sql(", ");
        for column in [&self.policies, &self.reality] {
            out.push_bind_param::<Array<Jsonb>, _>(column)?;
            out.push_sql(", ");
        }
        out.push_bind_param::<Array<Jsonb>, _>(&self.requested_by)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Text>>, _>(&self.email)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Text>>, _>(&self.eligible)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Text>>, _>(&self.justification)?;
        out.push_sql(
            ") AS held (i, t, d, s, a, r, q, n, o, c, e, u, p, w, b, m, l, j) ORDER BY t, q \
             ON CONFLICT DO NOTHING",
        );
        Ok(())
    }
}

/// Returns the pending requests with these digests, new or already open.
#[derive(Default)]
pub(super) struct PendingApprovals<'a> {
    pub(super) tenant: Vec<&'a str>,
    pub(super) digest: Vec<&'a [u8]>,
}

impl Query for PendingApprovals<'_> {
    type SqlType = (Text, Bytea, (Text, Array<Jsonb>, Array<Text>));
}

impl QueryFragment<Pg> for PendingApprovals<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT tenant_id, request_digest, id, requested_by, asker_emails FROM approvals \
             WHERE state = 'pending' AND (tenant_id, request_digest) IN (SELECT * FROM UNNEST(",
        );
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bytea>, _>(&self.digest)?;
        out.push_sql("))");
        Ok(())
    }
}

/// Expires requests that waited too long. A new request with the same digest can then be opened.
#[derive(Default)]
pub(super) struct ExpireApprovals<'a> {
    pub(super) tenant: Vec<&'a str>,
    pub(super) digest: Vec<&'a [u8]>,
    pub(super) now: DateTime<Utc>,
}

impl QueryFragment<Pg> for ExpireApprovals<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "UPDATE approvals SET state = 'expired', updated_at = clock_timestamp() \
             WHERE id IN (SELECT id FROM approvals WHERE state = 'pending' AND expires_at <= ",
        );
        out.push_bind_param::<Timestamptz, _>(&self.now)?;
        out.push_sql(" AND (tenant_id, request_digest) IN (SELECT * FROM UNNEST(");
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bytea>, _>(&self.digest)?;
        // Locks rows in the same order on all nodes, to prevent deadlocks.
        out.push_sql(")) ORDER BY id FOR UPDATE)");
        Ok(())
    }
}

// Written by hand, because the derive requires `'static`. The SQL text does not depend on the bound
// values, and one prepared statement serves every batch.
macro_rules! run_queries {
    ($($statement:ident),*) => { $(
        impl QueryId for $statement<'_> {
            type QueryId = $statement<'static>;
            const HAS_STATIC_QUERY_ID: bool = true;
        }

        impl<Connection> diesel::RunQueryDsl<Connection> for $statement<'_> {}
    )* };
}
pub(super) use run_queries;
run_queries!(Fence, InsertBlobs, InsertApprovals, PendingApprovals, ExpireApprovals);
