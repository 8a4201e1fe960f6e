//! The statements that open approval requests. They take their rows as columns, as in `sql.rs`.

use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Bytea, Integer, Nullable, Text, Timestamptz},
};

use super::sql::run_queries;
use authority_store::locks::OPEN_REQUESTS;

/// Locks subjects until the transaction ends, in the same order on all nodes.
pub(super) struct LockSubjects<'a> {
    pub(super) tenant: Vec<&'a str>,
    pub(super) subject: Vec<&'a str>,
}

impl QueryFragment<Pg> for LockSubjects<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT pg_advisory_xact_lock(");
        out.push_bind_param::<Integer, _>(&OPEN_REQUESTS)?;
        out.push_sql(", hash) FROM (SELECT DISTINCT hashtext(t || ' ' || s) AS hash FROM UNNEST(");
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.subject)?;
        out.push_sql(") AS subject (t, s) ORDER BY hash) AS ordered");
        Ok(())
    }
}

/// Finds decisions with a request that was answered: it was declined, or approved for the same
/// requester and not used yet.
#[derive(Default)]
pub(super) struct Answered<'a> {
    pub(super) decision: Vec<&'a str>,
    pub(super) tenant: Vec<&'a str>,
    pub(super) digest: Vec<&'a [u8]>,
    pub(super) kind: Vec<&'a str>,
    pub(super) asker: Vec<&'a str>,
    /// The IDs of approvals that are known not to suffice, comma-separated.
    pub(super) insufficient: Vec<String>,
    pub(super) declined_for: Vec<Option<i32>>,
    pub(super) now: DateTime<Utc>,
}

impl Query for Answered<'_> {
    type SqlType = Text;
}

impl QueryFragment<Pg> for Answered<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT d FROM UNNEST(");
        out.push_bind_param::<Array<Text>, _>(&self.decision)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bytea>, _>(&self.digest)?;
        for column in [&self.kind, &self.asker] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Text>, _>(column)?;
        }
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.insufficient)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Integer>>, _>(&self.declined_for)?;
        out.push_sql(
            ") AS asked (d, t, q, k, a, x, f) WHERE EXISTS ( \
                SELECT FROM approvals WHERE tenant_id = t AND request_digest = q \
                    AND state = 'approved' AND id <> ALL (string_to_array(x, ',')) AND EXISTS ( \
                        SELECT FROM unnest(requested_by) AS asker \
                        WHERE asker ->> 'kind' = k AND asker ->> 'id' = a) \
                    AND expires_at > ",
        );
        out.push_bind_param::<Timestamptz, _>(&self.now)?;
        out.push_sql(
            ") OR EXISTS (SELECT FROM ( \
                SELECT reopened_at, declined_until(declined_at, created_at, \
                    expires_at, declined_for_seconds, f) AS until \
                FROM approvals WHERE tenant_id = t AND request_digest = q AND state = 'declined' \
                ORDER BY declined_at DESC LIMIT 1 \
            ) AS newest WHERE reopened_at IS NULL AND until > ",
        );
        out.push_bind_param::<Timestamptz, _>(&self.now)?;
        out.push_sql(")");
        Ok(())
    }
}

/// Counts the pending requests of subjects.
#[derive(Default)]
pub(super) struct CountPending<'a> {
    pub(super) tenant: Vec<&'a str>,
    pub(super) subject: Vec<&'a str>,
    pub(super) now: DateTime<Utc>,
}

impl Query for CountPending<'_> {
    type SqlType = (Text, Text, BigInt);
}

impl QueryFragment<Pg> for CountPending<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT tenant_id, subject, count(*) FROM approvals \
             WHERE state = 'pending' AND (tenant_id, subject) IN (SELECT * FROM UNNEST(",
        );
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.subject)?;
        out.push_sql(")) AND expires_at > ");
        out.push_bind_param::<Timestamptz, _>(&self.now)?;
        out.push_sql(" GROUP BY tenant_id, subject");
        Ok(())
    }
}

/// Stores the values by which requests are compared.
#[derive(Default)]
pub(super) struct InsertFacts<'a> {
    pub(super) tenant: Vec<&'a str>,
    pub(super) role: Vec<&'a str>,
    pub(super) value: Vec<&'a [u8]>,
    pub(super) at: Vec<DateTime<Utc>>,
    pub(super) approval: Vec<&'a str>,
    pub(super) decision: Vec<&'a str>,
}

impl QueryFragment<Pg> for InsertFacts<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO approval_facts (tenant_id, role, value, created_at, approval_id, decision_id) \
             SELECT t, r, v, c, a, d FROM UNNEST(",
        );
        for column in [&self.tenant, &self.role] {
            out.push_bind_param::<Array<Text>, _>(column)?;
            out.push_sql(", ");
        }
        out.push_bind_param::<Array<Bytea>, _>(&self.value)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Timestamptz>, _>(&self.at)?;
        for column in [&self.approval, &self.decision] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Text>, _>(column)?;
        }
        out.push_sql(") AS fact (t, r, v, c, a, d)");
        Ok(())
    }
}

/// Makes locked approvals void.
#[derive(Default)]
pub(super) struct VoidApprovals<'a> {
    pub(super) tenant: Vec<&'a str>,
    pub(super) id: Vec<&'a str>,
    pub(super) reason: Vec<&'a str>,
}

impl QueryFragment<Pg> for VoidApprovals<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "UPDATE approvals SET state = 'void', void_reason = r, updated_at = clock_timestamp() \
             FROM (SELECT DISTINCT ON (i) t, i, r FROM UNNEST(",
        );
        for (place, column) in [&self.tenant, &self.id, &self.reason].into_iter().enumerate() {
            if place > 0 {
                out.push_sql(", ");
            }
            out.push_bind_param::<Array<Text>, _>(column)?;
        }
        out.push_sql(
            ") AS each (t, i, r) ORDER BY i) AS stale \
             WHERE id = i AND tenant_id = t AND state = 'approved'",
        );
        Ok(())
    }
}

/// Notifies admins about agents that have reached their limit of pending requests.
#[derive(Default)]
pub(super) struct NotifyOfLimit<'a> {
    pub(super) tenant: Vec<&'a str>,
    pub(super) subject: Vec<&'a str>,
    pub(super) pending: Vec<i32>,
}

impl QueryFragment<Pg> for NotifyOfLimit<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT notify_of_open_requests(t, s, p) \
             FROM (SELECT DISTINCT ON (t, s) t, s, p FROM UNNEST(",
        );
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.subject)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.pending)?;
        out.push_sql(") AS each (t, s, p) ORDER BY t, s) AS subject");
        Ok(())
    }
}

run_queries!(LockSubjects, Answered, CountPending, InsertFacts, VoidApprovals, NotifyOfLimit);
