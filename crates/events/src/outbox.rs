//! Reads the outbox: the tenants with rows, and the oldest rows of each tenant.
//!
//! These statements run very often. Each is therefore prepared once on a connection.

use std::collections::HashSet;

use authority_decision::Decision;
use authority_graph::{DECISION_ALLOWED, DECISION_DENIED};
use authority_ledger::decision_event::DecisionEvent;
use authority_store::locks;
use authority_webhook::event_types::EventType;
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, Queryable,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Bool, Integer, Jsonb, Nullable, Text, Timestamptz},
};
use serde_json::Value;

/// The number of shards that tenants are spread over. One node at a time numbers a shard.
pub(crate) const SHARDS: i32 = 64;

/// The tenants with rows in the outbox. The loose index scan reads one row of each tenant.
const TENANTS: &str = "WITH RECURSIVE tenants (id) AS ( \
         (SELECT tenant_id FROM event_outbox ORDER BY tenant_id LIMIT 1) \
         UNION ALL \
         SELECT (SELECT tenant_id FROM event_outbox WHERE tenant_id > tenants.id \
                 ORDER BY tenant_id LIMIT 1) FROM tenants WHERE id IS NOT NULL) ";

/// Locks one shard, or all shards with rows, until the end of the transaction.
///
/// Returns each tenant with rows, and whether another node has locked its shard.
pub(crate) struct LockTenants {
    pub(crate) shard: Option<i32>,
}

impl Query for LockTenants {
    type SqlType = (Text, Bool);
}

impl QueryId for LockTenants {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for LockTenants {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(TENANTS);
        out.push_sql("SELECT id, NOT pg_try_advisory_xact_lock(");
        out.push_bind_param::<Integer, _>(&locks::EVENTS)?;
        out.push_sql(", shard) FROM (SELECT id, (hashtextextended(id, 0) & ");
        out.push_bind_param::<Integer, _>(&(SHARDS - 1))?;
        out.push_sql(")::integer AS shard FROM tenants WHERE id IS NOT NULL) AS each WHERE coalesce(shard = ");
        out.push_bind_param::<Nullable<Integer>, _>(&self.shard)?;
        out.push_sql(", true)");
        Ok(())
    }
}

/// The oldest rows of each tenant, with tenants taking turns.
///
/// It returns about `turn` events of each tenant, and about `most` in total. The numbers can be
/// exceeded, because all events of a row are returned together.
pub(crate) struct OldestRows<'a> {
    pub(crate) tenants: Vec<&'a str>,
    pub(crate) turn: i64,
    pub(crate) most: i64,
}

impl Query for OldestRows<'_> {
    type SqlType = (
        BigInt,
        Text,
        Nullable<Text>,
        Nullable<Text>,
        Nullable<Text>,
        Nullable<Text>,
        Nullable<Text>,
        Nullable<Text>,
        Timestamptz,
        Jsonb,
        Nullable<Array<Text>>,
    );
}

impl QueryId for OldestRows<'_> {
    type QueryId = OldestRows<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for OldestRows<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "WITH turns AS ( \
                 SELECT oldest.*, \
                        sum(size) OVER (PARTITION BY tenant_id ORDER BY number) - size AS before \
                 FROM unnest(",
        );
        out.push_bind_param::<Array<Text>, _>(&self.tenants)?;
        out.push_sql(
            ") AS tenants (id) CROSS JOIN LATERAL ( \
                 SELECT * FROM event_outbox WHERE tenant_id = tenants.id ORDER BY number LIMIT ",
        );
        out.push_bind_param::<BigInt, _>(&self.turn)?;
        out.push_sql(
            ") AS oldest), batch AS ( \
                 SELECT *, sum(size) OVER (ORDER BY before, number) - size AS taken \
                 FROM turns WHERE before < ",
        );
        out.push_bind_param::<BigInt, _>(&self.turn)?;
        out.push_sql(
            ") SELECT number, tenant_id, event_type, subject_ref, correlation_id, actor_entity_id, \
                      principal_entity_id, reason_code, occurred_at, data, decisions \
             FROM batch WHERE taken < ",
        );
        out.push_bind_param::<BigInt, _>(&self.most)?;
        out.push_sql(" ORDER BY before, number");
        Ok(())
    }
}

/// A row of the outbox: one change, or decisions of one tenant.
#[derive(Queryable)]
pub(crate) struct OutboxRow {
    pub(crate) number: i64,
    pub(crate) tenant_id: String,
    event_type: Option<String>,
    subject_ref: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) actor_entity_id: Option<String>,
    pub(crate) principal_entity_id: Option<String>,
    pub(crate) reason_code: Option<String>,
    pub(crate) occurred_at: DateTime<Utc>,
    pub(crate) data: Value,
    decisions: Option<Vec<String>>,
}

/// The subject of an event.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
pub(crate) enum About<'a> {
    Change { event_type: &'static EventType, subject_ref: &'a str, row: &'a OutboxRow },
    Decision { event_type: &'static EventType, event: DecisionEvent<'a> },
}

/// An event that waits for its number.
pub(crate) struct Waiting<'a> {
    pub(crate) tenant_id: &'a str,
    pub(crate) about: About<'a>,
}

/// The events that can be numbered, in order, from some rows of the outbox.
#[derive(Default)]
pub(crate) struct Ready<'a> {
    pub(crate) events: Vec<Waiting<'a>>,
    /// The numbers of the rows that contain these events.
    pub(crate) numbers: Vec<i64>,
    /// Whether the next event of a tenant cannot be written.
    ///
    /// The event then waits for a node with a newer version of the service.
    pub(crate) is_stuck: bool,
}

impl<'a> Ready<'a> {
    pub(crate) fn of(rows: &'a [OutboxRow]) -> Self {
        let (mut ready, mut stuck) = (Self::default(), HashSet::new());
        for row in rows {
            if stuck.contains(&row.tenant_id) {
                continue;
            }
            match row.events() {
                Ok(events) => {
                    ready.events.extend(events);
                    ready.numbers.push(row.number);
                }
                Err(error) => {
                    let (number, tenant_id) = (row.number, &row.tenant_id);
                    tracing::error!(
                        %error,
                        number,
                        tenant.id = tenant_id,
                        "failed to write an event"
                    );
                    stuck.insert(tenant_id);
                }
            }
        }
        ready.is_stuck = !stuck.is_empty();
        ready
    }
}

#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("its type `{0:?}` is unknown")]
    Type(Option<String>),
    #[error("it has no subject")]
    Subject,
    #[error("a decision cannot be read: {0}")]
    Decision(#[from] serde_json::Error),
}

impl OutboxRow {
    fn events(&self) -> Result<Vec<Waiting<'_>>, Unreadable> {
        let tenant_id = self.tenant_id.as_str();
        if let Some(decisions) = &self.decisions {
            let about = decisions.iter().map(|text| decision(text));
            return about.map(|about| Ok(Waiting { tenant_id, about: about? })).collect();
        }
        let event_type = self.event_type.as_deref().and_then(EventType::named);
        let event_type = event_type.ok_or_else(|| Unreadable::Type(self.event_type.clone()))?;
        let subject_ref = self.subject_ref.as_deref().ok_or(Unreadable::Subject)?;
        let about = About::Change { event_type, subject_ref, row: self };
        Ok(vec![Waiting { tenant_id, about }])
    }
}

/// Whether the event type is an allowed or denied decision, for which the row has only the id.
pub(crate) fn is_decision(event_type: &EventType) -> bool {
    [DECISION_ALLOWED, DECISION_DENIED].contains(&event_type.name())
}

fn decision(text: &str) -> Result<About<'_>, Unreadable> {
    let event: DecisionEvent<'_> = serde_json::from_str(text)?;
    let name =
        if event.decision == Decision::Deny.word() { DECISION_DENIED } else { DECISION_ALLOWED };
    let event_type = EventType::named(name).ok_or(Unreadable::Type(Some(name.to_owned())))?;
    Ok(About::Decision { event_type, event })
}
