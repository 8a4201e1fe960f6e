//! Rows of the outbox, and the events that they become.

use authority_decision::Reason;
use authority_webhook::{envelope::Event, event_types::EventType};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Integer, Jsonb, Nullable, Text, Timestamptz},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use authority_core::store::{Db, RunQueryDsl};

/// The tenants of the outbox, by a loose index scan: their rows are not all read.
const TENANTS: &str = "WITH RECURSIVE tenants (id) AS ( \
         (SELECT tenant_id FROM event_outbox ORDER BY tenant_id LIMIT 1) \
         UNION ALL \
         SELECT (SELECT tenant_id FROM event_outbox WHERE tenant_id > tenants.id \
                 ORDER BY tenant_id LIMIT 1) FROM tenants WHERE id IS NOT NULL) ";

const SHARDS: &str = "SELECT DISTINCT (hashtextextended(id, 0) & 63)::integer AS shard FROM tenants \
     WHERE id IS NOT NULL";

/// The oldest rows of each of a shard's tenants, in turn, and the decisions that they are about. A subject
/// that is no principal of the tenant is a text that the caller chose, and stays out.
const PENDING: &str = "SELECT o.*, d.record AS decided, d.decision, d.reason_code AS decided_reason, \
            d.evaluated_at, d.approval_id, p.id AS subject \
     FROM tenants CROSS JOIN LATERAL ( \
         SELECT *, row_number() OVER (ORDER BY number) AS turn FROM ( \
             SELECT * FROM event_outbox WHERE tenant_id = tenants.id ORDER BY number LIMIT $2 \
         ) AS oldest) AS o \
     LEFT JOIN decisions d ON d.tenant_id = o.tenant_id \
         AND d.id = CASE WHEN o.event_type = ANY ($4) THEN coalesce(o.correlation_id, o.subject_ref) END \
     LEFT JOIN principals p ON p.tenant_id = o.tenant_id AND p.id = d.subject \
     WHERE tenants.id IS NOT NULL AND hashtextextended(tenants.id, 0) & 63 = $1 \
     ORDER BY o.turn, o.number LIMIT $3";

const ALLOWED: &str = "svc.decision.allowed";
const DENIED: &str = "svc.decision.denied";
const HELD: &str = "svc.decision.requires_approval";
/// Events of which the decision's record has a part.
const OF_RECORDS: [&str; 3] = [ALLOWED, DENIED, HELD];
const PACKS: &str = "svc.evidence_pack.";

/// The shards with rows.
pub(crate) async fn shards(db: &mut Db) -> QueryResult<Vec<i32>> {
    let shards: Vec<Shard> = diesel::sql_query([TENANTS, SHARDS].concat()).load(db).await?;
    Ok(shards.into_iter().map(|row| row.shard).collect())
}

/// A shard's oldest rows: at most `turn` of each tenant, and `most` in all.
pub(crate) async fn pending(
    db: &mut Db,
    shard: i32,
    turn: i64,
    most: i64,
) -> QueryResult<Vec<Pending>> {
    diesel::sql_query([TENANTS, PENDING].concat())
        .bind::<Integer, _>(shard)
        .bind::<BigInt, _>(turn)
        .bind::<BigInt, _>(most)
        .bind::<Array<Text>, _>(OF_RECORDS.as_slice())
        .load(db)
        .await
}

#[derive(QueryableByName)]
struct Shard {
    #[diesel(sql_type = Integer)]
    shard: i32,
}

/// A row of the outbox, with its decision where it is about one.
#[derive(QueryableByName)]
pub(crate) struct Pending {
    #[diesel(sql_type = BigInt)]
    pub(crate) number: i64,
    #[diesel(sql_type = Text)]
    pub(crate) tenant_id: String,
    #[diesel(sql_type = Text)]
    pub(crate) event_type: String,
    #[diesel(sql_type = Text)]
    subject_ref: String,
    #[diesel(sql_type = Nullable<Text>)]
    correlation_id: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    actor_entity_id: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    principal_entity_id: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    reason_code: Option<String>,
    #[diesel(sql_type = Timestamptz)]
    occurred_at: DateTime<Utc>,
    #[diesel(sql_type = Jsonb)]
    data: Value,
    #[diesel(sql_type = Nullable<diesel::sql_types::Bytea>)]
    decided: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Text>)]
    decision: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    decided_reason: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    evaluated_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Text>)]
    approval_id: Option<String>,
    /// Who asked for the decision, if that is a principal.
    #[diesel(sql_type = Nullable<Text>)]
    subject: Option<String>,
}

/// The members of a decision's record that events have.
#[derive(Default, Deserialize)]
struct Decided {
    #[serde(default)]
    valid_until: Option<Value>,
    #[serde(default)]
    verdict: Verdict,
}

#[derive(Default, Deserialize)]
struct Verdict {
    #[serde(default)]
    authority: Option<Authority>,
    #[serde(default)]
    tool_id: Option<String>,
}

#[derive(Deserialize)]
struct Authority {
    id: String,
    kind: String,
}

impl Pending {
    /// When it happened.
    pub(crate) fn occurred_at(&self) -> DateTime<Utc> {
        self.evaluated_at.filter(|_| self.is_decision()).unwrap_or(self.occurred_at)
    }

    /// The principal that it is about.
    pub(crate) fn principal(&self) -> Option<&str> {
        let named = if self.is_decision() { &self.subject } else { &self.principal_entity_id };
        named.as_deref()
    }

    /// Its canonical bytes. An event that has none of the length allowed loses its data and not its
    /// number: receivers would wait for that forever. `None` if its type is unknown: of a newer version.
    pub(crate) fn bytes(&self, event_id: &str, sequence: i64) -> Option<Vec<u8>> {
        let event_type = EventType::named(&self.event_type)?;
        let refs =
            Vec::from_iter(self.event_type.starts_with(PACKS).then(|| self.subject_ref.clone()));
        let (data, none) = (self.data(), Map::new());
        let event = Event {
            event_id,
            event_type,
            occurred_at: self.occurred_at(),
            tenant_id: &self.tenant_id,
            sequence: u64::try_from(sequence).ok(),
            subject_ref: &self.subject_ref,
            actor_entity_id: self.actor_entity_id.as_deref(),
            principal_entity_id: self.principal(),
            reason_code: self.reason(),
            correlation_id: self.correlation_id.as_deref(),
            causation_id: None,
            data: &data,
            evidence_refs: &refs,
        };
        let written = event.canonical().or_else(|error| {
            tracing::error!(%error, event_type = self.event_type, "an event loses its data");
            Event { data: &none, evidence_refs: &[], ..event }.canonical()
        });
        written.inspect_err(|error| tracing::error!(%error, "an event cannot be written")).ok()
    }

    fn reason(&self) -> Option<&str> {
        let reason = if self.is_decision() { &self.decided_reason } else { &self.reason_code };
        reason.as_deref()
    }

    /// Whether it is a decision of its own, of which the outbox has the name alone.
    fn is_decision(&self) -> bool {
        [ALLOWED, DENIED].contains(&self.event_type.as_str())
    }

    fn data(&self) -> Map<String, Value> {
        let mut data = match &self.data {
            Value::Object(members) => members.clone(),
            _ => Map::new(),
        };
        let Some(record) = &self.decided else { return data };
        let Decided { valid_until, verdict } = serde_json::from_slice(record).unwrap_or_default();
        let mut add = |name: &str, value: Option<Value>| {
            data.extend(value.map(|value| (name.to_owned(), value)));
        };
        add("tool_id", verdict.tool_id.map(Value::from));
        let kind = verdict.authority.as_ref().map(|used| used.kind.as_str());
        add("delegation_id", by_delegation(verdict.authority.as_ref()));
        match self.event_type.as_str() {
            ALLOWED => {
                add("decision_id", Some(self.subject_ref.as_str().into()));
                add("decision", self.decision.as_deref().map(Value::from));
                add("authority_kind", kind.map(Value::from));
                add("approval_id", self.approval_id.as_deref().map(Value::from));
                add("valid_until", valid_until);
            }
            DENIED => {
                let reason = self.decided_reason.as_deref().and_then(Reason::from_word);
                add("decision_id", Some(self.subject_ref.as_str().into()));
                add("stage", reason.map(|reason| reason.stage().word().into()));
            }
            _ => {}
        }
        data
    }
}

fn by_delegation(used: Option<&Authority>) -> Option<Value> {
    used.filter(|used| used.kind == "delegation").map(|used| used.id.as_str().into())
}
