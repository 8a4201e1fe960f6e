//! The resources that an allow spends: the approval that it cites, and a part of each limit on uses
//! or amounts.
//!
//! Approvals and the used parts of limits change from call to call and are not part of the graph.
//! They are read from the database before deciding, and claimed in the transaction that stores the
//! decision (`crates/runtime/src/recorder/spend.rs`). The claim is authoritative: the values read before are only an estimate. An approval
//! or the rest of a budget is spent once, however many requests compete for it.

mod forget;

use std::collections::{BTreeMap, HashMap};

use authority_ids::{ApprovalRef, PrincipalRef, TenantId};
use authority_model::{
    proto::approval::{ApprovalAct, Asker},
    schema::{approvals, counters},
    wire::Time,
};
use chrono::{DateTime, Utc};
use diesel::{QueryResult, prelude::*};

pub use forget::forget;

use authority_crypto::sha256;
use authority_decision::{
    Gathered, Request, counters_needed,
    facts::{Approval, CounterKey, Counts, Signature, Spent},
    levels::ApprovalState,
};
use authority_store::{Db, RunQueryDsl};

/// The `verdict` of an approving act.
pub const APPROVE: &str = "approve";
/// The `verdict` of an act that declines.
pub const DECLINE: &str = "decline";
/// The `verdict` of an act that withdraws an approval.
pub const WITHDRAW: &str = "withdraw";

/// Returns the digest of the exact request that an approval is for.
///
/// # Errors
/// The request does not serialise, which is a bug.
pub fn question(request: &Request) -> Result<[u8; 32], serde_json::Error> {
    Ok(sha256(&serde_json_canonicalizer::to_vec(&request.question())?))
}

/// Returns the approvals among the acts.
pub fn approving_signatures(acts: &[ApprovalAct]) -> Vec<Signature> {
    let approving = acts.iter().filter(|act| act.verdict == APPROVE);
    let signed = approving.map(|act| Signature {
        by: act.by.clone(),
        role: act.role.clone(),
        own_interest: act.self_,
        at: act.at.and_then(Time::moment),
    });
    signed.collect()
}

/// A cited approval, and the data to determine which of its acts count.
#[derive(Clone, Debug)]
pub struct Cited {
    pub approval: Approval,
    pub acts: Vec<ApprovalAct>,
    pub requested_by: Vec<Asker>,
    /// E-mail addresses of the people among the requesters.
    pub asker_emails: Vec<String>,
}

/// Returns the approvals that these decisions spent, each with its acts, by decision.
pub async fn spent_on(
    db: &mut Db,
    tenant_id: &TenantId,
    decisions: &[String],
) -> QueryResult<HashMap<String, Cited>> {
    let rows: Vec<(Option<String>, String, ApprovalRow)> = approvals::table
        .filter(approvals::tenant_id.eq(tenant_id.as_str()))
        .filter(approvals::used_by.eq_any(decisions))
        .select((approvals::used_by, approvals::id, ApprovalRow::as_select()))
        .load(db)
        .await?;
    let spent = rows.into_iter().filter_map(|(decision, id, row)| {
        // The decision has changed the approval's state to used. The state before that was approved,
        // and the approval was for this request.
        let approval = Approval {
            id: id.into(),
            state: ApprovalState::Approved,
            same_question: true,
            same_subject: true,
            given: approving_signatures(&row.acts),
            expires_at: row.expires_at.moment()?,
        };
        Some((decision?, row.cited(approval)))
    });
    Ok(spent.collect())
}

/// The counters and the approval to read before a request can be decided.
#[derive(Clone, Debug)]
pub struct CounterQuery {
    tenant_id: TenantId,
    subject: PrincipalRef,
    counters: Vec<CounterKey>,
    /// The cited approval's id, and the digest of the request that it must be for.
    approval: Option<(ApprovalRef, [u8; 32])>,
}

impl CounterQuery {
    /// Returns `None` for most requests: they have no counters and do not cite an approval.
    ///
    /// # Errors
    /// The request does not serialise.
    pub fn of(
        request: &Request,
        gathered: &Gathered,
        at: DateTime<Utc>,
    ) -> Result<Option<Self>, serde_json::Error> {
        let counters = counters_needed(gathered, at);
        let approval = match &request.approval_id {
            Some(id) => Some((id.clone(), question(request)?)),
            None => None,
        };
        let nothing = counters.is_empty() && approval.is_none();
        let (tenant_id, subject) = (request.tenant().clone(), request.subject.clone());
        Ok((!nothing).then_some(Self { tenant_id, subject, counters, approval }))
    }

    /// Reads the counters' values, and the approval if it exists in the tenant.
    pub async fn read(&self, db: &mut Db) -> QueryResult<(Spent, Option<Cited>)> {
        let spent = read_counters(db, &self.tenant_id, &self.counters).await?;
        let Some((id, question)) = &self.approval else { return Ok((spent, None)) };
        let row: Option<ApprovalRow> = approvals::table
            .filter(
                approvals::tenant_id.eq(self.tenant_id.as_str()).and(approvals::id.eq(id.as_str())),
            )
            .select(ApprovalRow::as_select())
            .first(db)
            .await
            .optional()?;
        let cited = row.and_then(|row| {
            let approval = Approval {
                id: id.clone(),
                state: ApprovalState::from_word(&row.state)?,
                same_question: row.request_digest == question,
                same_subject: self.subject == *row.subject,
                given: approving_signatures(&row.acts),
                expires_at: row.expires_at.moment()?,
            };
            Some(row.cited(approval))
        });
        Ok((spent, cited))
    }
}

/// Reads the values of a tenant's counters. A counter without a stored value is zero.
pub async fn read_counters(
    db: &mut Db,
    tenant_id: &TenantId,
    wanted: &[CounterKey],
) -> QueryResult<Spent> {
    let mut used: BTreeMap<CounterKey, i64> = wanted.iter().map(|key| (key.clone(), 0)).collect();
    if used.is_empty() {
        return Ok(Spent(used));
    }
    let holders: Vec<&str> = wanted.iter().map(|key| key.holder_id.as_str()).collect();
    let starts: Vec<i64> = wanted.iter().map(|key| key.window_start).collect();
    let rows: Vec<(String, String, i32, i64, i64)> = counters::table
        .filter(counters::tenant_id.eq(tenant_id.as_str()))
        .filter(counters::holder_id.eq_any(holders))
        .filter(counters::window_start.eq_any(starts))
        .select((
            counters::holder_id,
            counters::counts,
            counters::window_seconds,
            counters::window_start,
            counters::used,
        ))
        .load(db)
        .await?;
    for (holder_id, counts, window, window_start, count) in rows {
        let counts = Counts::from_word(&counts);
        let window = u32::try_from(window).ok();
        let key = counts.zip(window).map(|(counts, window_seconds)| CounterKey {
            holder_id,
            counts,
            window_seconds,
            window_start,
        });
        if let Some(place) = key.and_then(|key| used.get_mut(&key)) {
            *place = count;
        }
    }
    Ok(Spent(used))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = approvals, check_for_backend(diesel::pg::Pg))]
struct ApprovalRow {
    state: String,
    subject: String,
    request_digest: Vec<u8>,
    acts: Vec<ApprovalAct>,
    expires_at: Time,
    requested_by: Vec<Asker>,
    asker_emails: Vec<String>,
}

impl ApprovalRow {
    fn cited(self, approval: Approval) -> Cited {
        let Self { acts, requested_by, asker_emails, .. } = self;
        Cited { approval, acts, requested_by, asker_emails }
    }
}
