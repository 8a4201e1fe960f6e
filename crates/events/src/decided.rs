//! Reads the decisions for events if the outbox has only the decisions' ids.
//!
//! The outbox has only the id if the decision waits for approval, or if the recorder did not find the
//! subject.

use std::collections::HashMap;

use authority_ledger::decision_event::DecisionEvent;
use authority_model::stored_record::StoredRecord;
use authority_store::{Db, RunQueryDsl, prepared};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, Nullable, Text, Timestamptz},
};
use serde::Deserialize;

use crate::outbox::{About, Waiting, is_decision};

const HELD: &str = "svc.decision.requires_approval";

/// Joins the subject's principal. A subject that is not a principal of the tenant is a text that
/// the caller chose, and events leave it out.
const RECORDS: &str = "SELECT d.id, d.record, d.decision, d.reason_code, d.evaluated_at, d.approval_id, \
            p.id AS principal_id \
     FROM unnest($1, $2) AS named (tenant_id, id) \
     JOIN decisions d ON d.tenant_id = named.tenant_id AND d.id = named.id \
     LEFT JOIN principals p ON p.tenant_id = d.tenant_id AND p.id = d.subject";

/// The columns of a decision that its event needs.
#[derive(QueryableByName)]
pub(crate) struct Decided {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = StoredRecord)]
    record: Vec<u8>,
    #[diesel(sql_type = Text)]
    decision: String,
    #[diesel(sql_type = Text)]
    reason_code: String,
    #[diesel(sql_type = Timestamptz)]
    evaluated_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Text>)]
    approval_id: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) principal_id: Option<String>,
}

/// The fields of a decision's record that events contain.
#[derive(Default, Deserialize)]
struct Record {
    #[serde(default)]
    valid_until: Option<String>,
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

impl Decided {
    /// Returns the event that the recorder would have written.
    pub(crate) fn event(&self) -> DecisionEvent<'_> {
        let Record { valid_until, verdict } =
            serde_json::from_slice(&self.record).unwrap_or_default();
        let (kind, id) = verdict.authority.map(|used| (used.kind, used.id)).unzip();
        let by_delegation = kind.as_deref() == Some("delegation");
        DecisionEvent {
            decision_id: self.id.as_str().into(),
            decision: self.decision.as_str().into(),
            reason_code: self.reason_code.as_str().into(),
            evaluated_at: self.evaluated_at,
            principal_id: self.principal_id.as_deref().map(Into::into),
            tool_id: verdict.tool_id.map(Into::into),
            authority_kind: kind.map(Into::into),
            delegation_id: id.filter(|_| by_delegation).map(Into::into),
            approval_id: self.approval_id.as_deref().map(Into::into),
            valid_until: valid_until.map(Into::into),
        }
    }
}

/// Looks up the decisions that these events need. The map's keys are the decisions' ids.
pub(crate) async fn records(
    db: &mut Db,
    events: &[Waiting<'_>],
) -> QueryResult<HashMap<String, Decided>> {
    let named = events.iter().filter_map(|event| Some((event.tenant_id, named(&event.about)?)));
    let (tenants, ids): (Vec<&str>, Vec<&str>) = named.unzip();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let query = prepared(RECORDS).bind::<Array<Text>, _>(tenants);
    let found: Vec<Decided> = query.bind::<Array<Text>, _>(ids).load(db).await?;
    Ok(found.into_iter().map(|decided| (decided.id.clone(), decided)).collect())
}

/// Returns the id of the decision that must be looked up for an event.
pub(crate) fn named<'e>(about: &'e About<'_>) -> Option<&'e str> {
    match about {
        About::Decision { event, .. } => {
            event.principal_id.is_none().then_some(&*event.decision_id)
        }
        About::Change { event_type, subject_ref, row } => {
            let is_named = is_decision(event_type) || event_type.name() == HELD;
            is_named.then(|| row.correlation_id.as_deref().unwrap_or(subject_ref))
        }
    }
}
