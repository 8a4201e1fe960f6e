//! The recorder's statements for the keys of a batch of decisions. Their parameters are columns
//! (`UNNEST`): one prepared statement works for any batch size.

use std::collections::HashSet;

use authority_ids::{DecisionId, DecisionRef};
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, Bytea, Text, Timestamptz},
};

use super::key::IdempotencyKey;

/// The columns of keys, in the order of the primary key.
#[derive(Default)]
struct Columns<'a> {
    tenant: Vec<&'a str>,
    scope: Vec<&'a str>,
    key: Vec<&'a str>,
    caller: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn add(&mut self, key: &'a IdempotencyKey) {
        self.tenant.push(key.tenant());
        self.scope.push(key.scope);
        self.key.push(&key.key);
        self.caller.push(&key.caller);
    }

    fn bind<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for column in [&self.tenant, &self.scope, &self.key, &self.caller] {
            out.push_bind_param::<Array<Text>, _>(column)?;
            out.push_sql(", ");
        }
        Ok(())
    }
}

/// Claims the keys of decisions that are about to be stored. The statement does not wait for a key
/// that another transaction is claiming: that transaction may hang, and the whole batch would wait
/// for it.
#[derive(Default)]
pub struct ClaimBatch<'a> {
    keys: Columns<'a>,
    request: Vec<&'a [u8]>,
    decision: Vec<&'a str>,
    at: Vec<DateTime<Utc>>,
}

impl<'a> ClaimBatch<'a> {
    /// Adds a key, with the decision that is made under it and the time.
    pub fn add(&mut self, key: &'a IdempotencyKey, decision_id: &'a DecisionId, at: DateTime<Utc>) {
        self.keys.add(key);
        self.request.push(&key.request_sha256);
        self.decision.push(decision_id.as_str());
        self.at.push(at);
    }

    pub fn is_empty(&self) -> bool {
        self.decision.is_empty()
    }

    /// Claims the keys, and returns the decisions that claimed their key.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn claim(self, db: &mut Db) -> QueryResult<HashSet<DecisionRef>> {
        let won: Vec<String> = self.load(db).await?;
        Ok(won.into_iter().map(DecisionRef::from).collect())
    }
}

impl Query for ClaimBatch<'_> {
    type SqlType = Text;
}

impl QueryFragment<Pg> for ClaimBatch<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO idempotency_keys \
             (tenant_id, scope, key, caller, request_sha256, decision_id, sealed, created_at) \
             SELECT t, s, k, c, r, d, false, a FROM UNNEST(",
        );
        self.keys.bind(&mut out)?;
        out.push_bind_param::<Array<Bytea>, _>(&self.request)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.decision)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Timestamptz>, _>(&self.at)?;
        // Sorted to avoid a deadlock between two nodes that claim the same keys.
        out.push_sql(
            ") AS claim (t, s, k, c, r, d, a) \
             WHERE pg_try_advisory_xact_lock(hashtextextended( \
                 concat_ws(chr(31), 'idempotency_keys', t, s, k, c), 0)) \
             ORDER BY t, s, k, c ON CONFLICT DO NOTHING RETURNING decision_id",
        );
        Ok(())
    }
}

/// Stores the responses of the keys that the same transaction has claimed.
#[derive(Default)]
pub struct KeepBatch<'a> {
    keys: Columns<'a>,
    answer: Vec<Vec<u8>>,
}

impl<'a> KeepBatch<'a> {
    pub fn add(&mut self, key: &'a IdempotencyKey, answer: Vec<u8>) {
        self.keys.add(key);
        self.answer.push(answer);
    }

    pub fn is_empty(&self) -> bool {
        self.answer.is_empty()
    }

    /// # Errors
    /// The database is unavailable.
    pub async fn keep(self, db: &mut Db) -> QueryResult<()> {
        self.execute(db).await.map(drop)
    }
}

impl QueryFragment<Pg> for KeepBatch<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE idempotency_keys SET answer = kept.a FROM UNNEST(");
        self.keys.bind(&mut out)?;
        out.push_bind_param::<Array<Bytea>, _>(&self.answer)?;
        out.push_sql(
            ") AS kept (t, s, k, c, a) WHERE tenant_id = kept.t AND scope = kept.s \
             AND key = kept.k AND caller = kept.c",
        );
        Ok(())
    }
}

// Implemented by hand, because the derive requires `'static`. The statement can be cached: its SQL
// text does not depend on the bound values.
impl QueryId for ClaimBatch<'_> {
    type QueryId = ClaimBatch<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryId for KeepBatch<'_> {
    type QueryId = KeepBatch<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}
