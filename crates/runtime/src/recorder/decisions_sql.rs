//! The statements that store decisions. They take the fence or run after it was taken.

use std::collections::HashMap;

use authority_ids::{ApprovalRef, DecisionId};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Bool, Bytea, Nullable, Text, Timestamptz},
};

use super::{
    column::{Bytes, Texts},
    entry::Entry,
    sql::run_queries,
};
use authority_process::clock::Clock;

const COLUMNS: &str = "id, tenant_id, subject, action, decision, reason_code, evaluated_at, \
     record, kid, signature, context, context_salt, facts, facts_salt, approval_id";

/// The maximum difference between a decision's time and the database's time, in either direction.
/// It is a request's time limit (2 s) plus the allowed difference of the clocks (5 s).
pub(super) const APART_SECONDS: i64 = 7;

/// SQL condition: the decision's time is within 7 s of `{now}`, and its permission, if any, has not
/// expired.
const IN_TIME: &str = "dated BETWEEN {now} - interval '7 s' AND {now} + interval '7 s' \
     AND (ends IS NULL OR ends > {now})";

/// The columns of the decisions to insert.
struct Columns<'a> {
    id: Texts,
    tenant: Texts,
    subject: Texts,
    action: Texts,
    decision: Texts,
    reason: Texts,
    at: Vec<DateTime<Utc>>,
    record: Bytes,
    kid: Texts,
    signature: Bytes,
    context: Bytes,
    context_salt: Bytes,
    facts: Bytes,
    facts_salt: Bytes,
    approval: Vec<Option<&'a str>>,
    /// When each decision was made and expires, by the database's clock.
    dated: Vec<DateTime<Utc>>,
    ends: Vec<Option<DateTime<Utc>>>,
}

impl<'a> Columns<'a> {
    fn of(
        entries: &(impl Iterator<Item = &'a Entry> + Clone),
        approval: Vec<Option<&'a str>>,
        clock: &Clock,
    ) -> Self {
        let texts = |of: fn(&Entry) -> &str| Texts::of(entries.clone().map(|e| of(e).as_bytes()));
        let bytes = |of: fn(&Entry) -> &[u8]| Bytes::of(entries.clone().map(of));
        let times = entries.clone().map(|entry| Times::of(entry, clock));
        let (dated, ends) = times.map(|times| (times.dated, times.ends)).unzip();
        Self {
            id: texts(|entry| entry.decision_id.as_str()),
            tenant: texts(|entry| entry.tenant_id.as_str()),
            subject: texts(|entry| &entry.subject),
            action: texts(|entry| &entry.action),
            decision: texts(|entry| entry.decision),
            reason: texts(|entry| entry.reason_code.word()),
            at: entries.clone().map(|entry| entry.evaluated_at).collect(),
            record: Bytes::of_records(entries.clone().map(|entry| &*entry.record)),
            kid: texts(|entry| &entry.kid),
            signature: bytes(|entry| &entry.signature),
            context: bytes(|entry| &entry.context),
            context_salt: bytes(|entry| &entry.context_salt),
            facts: bytes(|entry| &entry.facts),
            facts_salt: bytes(|entry| &entry.facts_salt),
            approval,
            dated,
            ends,
        }
    }

    /// Writes the arrays, in the order of [`COLUMNS`], then `dated` and `ends`.
    fn walk<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let texts =
            [&self.id, &self.tenant, &self.subject, &self.action, &self.decision, &self.reason];
        for column in texts {
            out.push_bind_param::<Array<Text>, _>(column)?;
            out.push_sql(", ");
        }
        out.push_bind_param::<Array<Timestamptz>, _>(&self.at)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bytea>, _>(&self.record)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.kid)?;
        for column in
            [&self.signature, &self.context, &self.context_salt, &self.facts, &self.facts_salt]
        {
            out.push_sql(", ");
            out.push_bind_param::<Array<Bytea>, _>(column)?;
        }
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Text>>, _>(&self.approval)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Timestamptz>, _>(&self.dated)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Timestamptz>>, _>(&self.ends)
    }
}

/// When a decision was made and expires, by the database's clock.
pub(super) struct Times {
    dated: DateTime<Utc>,
    ends: Option<DateTime<Utc>>,
}

impl Times {
    pub(super) fn of(entry: &Entry, clock: &Clock) -> Self {
        Self {
            dated: clock.by_database(entry.evaluated_at),
            ends: entry.valid_until.map(|until| clock.by_database(until)),
        }
    }

    /// Whether the decision can be stored now. The same rule as [`IN_TIME`].
    pub(super) fn are_good(&self, now: DateTime<Utc>) -> bool {
        let apart = TimeDelta::seconds(APART_SECONDS);
        (now - self.dated).abs() <= apart && self.ends.is_none_or(|ends| now < ends)
    }
}

/// Stores decisions in a transaction that has taken the fence. Decisions that have expired by the
/// database's clock are left out.
pub(super) struct InsertDecisions<'a>(Columns<'a>);

impl<'a> InsertDecisions<'a> {
    /// Adds the decisions. Each row refers to the approval request that the decision waits for, or
    /// to the approval that it spends.
    pub(super) fn new(
        entries: &[&'a Entry],
        approvals: &'a HashMap<DecisionId, ApprovalRef>,
        clock: &Clock,
    ) -> Self {
        let approval = |entry: &&'a Entry| -> Option<&'a str> {
            let opened = approvals.get(entry.decision_id.as_str());
            opened.or(entry.claims.approval_id.as_ref()).map(ApprovalRef::as_str)
        };
        let approval = entries.iter().map(approval).collect();
        Self(Columns::of(&entries.iter().copied(), approval, clock))
    }
}

impl QueryFragment<Pg> for InsertDecisions<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for part in ["INSERT INTO decisions (", COLUMNS, ") SELECT ", COLUMNS, " FROM UNNEST("] {
            out.push_sql(part);
        }
        self.0.walk(&mut out)?;
        for part in [") AS decided (", COLUMNS, ", dated, ends) WHERE "] {
            out.push_sql(part);
        }
        in_time(&mut out, "clock_timestamp()");
        Ok(())
    }
}

/// Writes the condition for storing a row. `now` is the SQL expression of the clock.
fn in_time(out: &mut AstPass<'_, '_, Pg>, now: &str) {
    for (place, part) in IN_TIME.split("{now}").enumerate() {
        if place > 0 {
            out.push_sql(now);
        }
        out.push_sql(part);
    }
}

/// Takes the fence and stores decisions in one statement. Only decisions made on current authority
/// and in time are stored. Returns each tenant's current revision and the time. The statement is
/// its own transaction: one round trip instead of four. With `EVENTS`, it also writes the
/// decisions' events.
pub(super) struct StoreCurrent<'a, const EVENTS: bool> {
    tenants: &'a [&'a str],
    columns: Columns<'a>,
    revision: Vec<i64>,
    events: DecisionEvents<'a>,
    relaxed: bool,
}

impl<'a, const EVENTS: bool> StoreCurrent<'a, EVENTS> {
    /// Creates the statement. `relaxed` commits without waiting for the disk.
    pub(super) fn new(
        entries: &'a [Entry],
        tenants: &'a [&'a str],
        relaxed: bool,
        clock: &Clock,
    ) -> Self {
        let columns = Columns::of(&entries.iter(), vec![None; entries.len()], clock);
        let revision = entries.iter().map(|entry| entry.revision).collect();
        Self { tenants, columns, revision, events: DecisionEvents::of(entries), relaxed }
    }
}

impl<const EVENTS: bool> Query for StoreCurrent<'_, EVENTS> {
    type SqlType = (Text, BigInt, Timestamptz);
}

impl<const EVENTS: bool> QueryId for StoreCurrent<'_, EVENTS> {
    type QueryId = StoreCurrent<'static, EVENTS>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<Connection, const EVENTS: bool> diesel::RunQueryDsl<Connection> for StoreCurrent<'_, EVENTS> {}

impl<const EVENTS: bool> QueryFragment<Pg> for StoreCurrent<'_, EVENTS> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // The insert joins the decisions with the fence's result. Decisions are therefore stored
        // only after the fence is taken, and their times are compared with a clock read after it.
        out.push_sql(
            "WITH present AS MATERIALIZED \
             (SELECT tenant_id, revision, clock_timestamp() AS fenced_at FROM fence(",
        );
        out.push_bind_param::<Array<Text>, _>(self.tenants)?;
        for part in [
            ")), stored AS (INSERT INTO decisions (",
            COLUMNS,
            ") SELECT ",
            COLUMNS,
            " FROM UNNEST(",
        ] {
            out.push_sql(part);
        }
        self.columns.walk(&mut out)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.revision)?;
        for part in [
            ") AS decided (",
            COLUMNS,
            ", dated, ends, revision) JOIN present USING (tenant_id, revision) WHERE ",
        ] {
            out.push_sql(part);
        }
        in_time(&mut out, "fenced_at");
        if EVENTS {
            out.push_sql(" RETURNING id, tenant_id), announced AS (");
            self.events.insert(&mut out, "JOIN stored USING (id, tenant_id)")?;
        }
        // The setting is only turned off, never set to `on`, because the server's own setting may
        // be stronger than `on`.
        out.push_sql(") SELECT tenant_id, revision, fenced_at FROM present WHERE CASE WHEN ");
        out.push_bind_param::<Bool, _>(&self.relaxed)?;
        out.push_sql(" THEN set_config('synchronous_commit', 'off', true) ELSE '' END IS NOT NULL");
        Ok(())
    }
}

/// The events of decisions: one row of the outbox for each tenant.
#[derive(Default)]
pub(super) struct DecisionEvents<'a> {
    tenant: Vec<&'a str>,
    id: Vec<&'a str>,
    event: Vec<&'a str>,
}

impl<'a> DecisionEvents<'a> {
    pub(super) fn of(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut events = Self::default();
        for entry in entries {
            let Some(event) = &entry.event else { continue };
            events.tenant.push(entry.tenant_id.as_str());
            events.id.push(entry.decision_id.as_str());
            events.event.push(event);
        }
        events
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Inserts the events. `joined` selects some of them by `id` and `tenant_id`.
    fn insert<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>, joined: &str) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO event_outbox (tenant_id, size, decisions) \
             SELECT tenant_id, count(*), array_agg(event ORDER BY place) FROM UNNEST(",
        );
        out.push_bind_param::<Array<Text>, _>(&self.tenant)?;
        for column in [&self.id, &self.event] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Text>, _>(column)?;
        }
        out.push_sql(") WITH ORDINALITY AS decided (tenant_id, id, event, place) ");
        out.push_sql(joined);
        out.push_sql(" GROUP BY tenant_id");
        Ok(())
    }
}

impl QueryFragment<Pg> for DecisionEvents<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.insert(&mut out, "")
    }
}

run_queries!(InsertDecisions, DecisionEvents);
