//! Later additions to decisions: the reported outcome, and proofs of replays.

use std::collections::HashMap;

use authority_ids::DecisionRef;
use authority_model::schema::{decision_reports, replay_proofs};
use authority_store::{RunQueryDsl, Scope, Store};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde_json::value::RawValue;

use super::Subject;
use crate::{Error, Evidence, format};

#[derive(Queryable, Selectable)]
#[diesel(table_name = decision_reports, check_for_backend(diesel::pg::Pg))]
struct Report {
    #[diesel(deserialize_as = String)]
    decision_id: DecisionRef,
    outcome: String,
    at: DateTime<Utc>,
    detail: Option<String>,
    reported_by: String,
    record: String,
    kid: String,
    signature: Vec<u8>,
    created_at: DateTime<Utc>,
}

impl From<Report> for format::entry::Report {
    fn from(row: Report) -> Self {
        Self {
            at: row.at,
            created_at: row.created_at,
            detail: row.detail,
            kid: row.kid,
            outcome: row.outcome,
            record: row.record,
            reported_by: row.reported_by,
            signature: hex::encode(row.signature),
        }
    }
}

/// The additions to a page of decisions, by the decision's id.
pub(super) struct Addenda {
    reports: HashMap<DecisionRef, format::entry::Report>,
    replays: HashMap<DecisionRef, Vec<Vec<u8>>>,
}

impl Addenda {
    pub(super) async fn read(
        store: &Store,
        subject: &Subject,
        list: &[Evidence],
    ) -> Result<Self, Error> {
        let ids: Vec<String> = list.iter().map(|one| String::from(&one.decision_id)).collect();
        let tenant_id = subject.tenant_id.clone();
        let read = store.read_tx(&Scope::service(), async move |db| {
            let reports: Vec<Report> = decision_reports::table
                .filter(decision_reports::tenant_id.eq(tenant_id.as_str()))
                .filter(decision_reports::decision_id.eq_any(&ids))
                .select(Report::as_select())
                .load(db)
                .await?;
            let replays: Vec<(String, Vec<u8>)> = replay_proofs::table
                .filter(replay_proofs::tenant_id.eq(tenant_id.as_str()))
                .filter(replay_proofs::decision_id.eq_any(&ids))
                .order((replay_proofs::created_at, replay_proofs::id))
                .select((replay_proofs::decision_id, replay_proofs::body))
                .load(db)
                .await?;
            Ok::<_, Error>((reports, replays))
        });
        let (reports, proofs) = read.await?;
        let reports = reports.into_iter().map(|row| (row.decision_id.clone(), row.into()));
        let mut replays: HashMap<DecisionRef, Vec<Vec<u8>>> = HashMap::new();
        for (decision_id, body) in proofs {
            replays.entry(decision_id.into()).or_default().push(body);
        }
        Ok(Self { reports: reports.collect(), replays })
    }

    /// Removes and returns the additions to a decision.
    pub(super) fn take(
        &mut self,
        decision_id: &DecisionRef,
    ) -> Result<(Option<format::entry::Report>, Vec<Box<RawValue>>), Error> {
        let replays = self.replays.remove(decision_id).unwrap_or_default();
        let replays = replays.iter().map(|body| serde_json::from_slice(body));
        let replays = replays.collect::<Result<_, _>>().map_err(format::Error::from)?;
        Ok((self.reports.remove(decision_id), replays))
    }
}
