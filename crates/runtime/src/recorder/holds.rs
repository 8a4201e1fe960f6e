//! The approval requests of held decisions.
//!
//! A decision may not open an approval request if the same request was approved or declined since
//! the look-up, or if its agent already has the maximum number of pending requests. The check runs
//! after the insert: by then, earlier pending requests with the same digest have ended and
//! committed, and are visible. If decisions are refused, the transaction is rolled back, and the
//! others are stored without them.

use std::collections::HashMap;

use authority_ids::{ApprovalRef, DecisionId};
use chrono::{DateTime, Utc};
use diesel::QueryResult;

use super::{
    super::requester::NOBODY,
    askers::{self, Open},
    entry::{Entry, Hold, Outcome},
    holds_sql::{Answered, CountPending, InsertFacts, LockSubjects, NotifyOfLimit, VoidApprovals},
    sql::{ExpireApprovals, InsertApprovals, PendingApprovals},
};
use authority_store::{Db, RunQueryDsl};

/// The decisions that may not open a request, with the reason.
pub(super) type Refused = HashMap<String, Refusal>;

/// The reason why a decision may not open a request.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    /// The request has been answered since the look-up.
    Answered,
    /// The subject has this many pending requests.
    Full { pending: u32 },
}

/// Sets the outcomes of the refused decisions.
pub(super) fn refuse(entries: &[Entry], outcomes: &mut [Option<Outcome>], refused: &Refused) {
    if refused.is_empty() {
        return;
    }
    for (entry, outcome) in entries.iter().zip(outcomes) {
        match refused.get(entry.decision_id.as_str()) {
            Some(Refusal::Answered) => *outcome = Some(Outcome::Spent),
            Some(Refusal::Full { pending }) => {
                *outcome = Some(Outcome::Full { pending: *pending });
            }
            None => {}
        }
    }
}

/// Opens requests for the held decisions. Returns the request that each decision waits for.
///
/// # Errors
/// [`diesel::result::Error::RollbackTransaction`] if some decisions may not open a request. These
/// are then in `refused`. Also if a pending request is decided at the same time.
pub(super) async fn open(
    db: &mut Db,
    entries: &[Entry],
    kept: &[&Entry],
    refused: &mut Refused,
    now: DateTime<Utc>,
) -> QueryResult<HashMap<DecisionId, ApprovalRef>> {
    let id = |entry: &Entry| entry.decision_id.clone();
    let ready = kept.iter().filter_map(|entry| Some((id(entry), entry.ready.clone()?)));
    let mut waiting: HashMap<DecisionId, ApprovalRef> = ready.collect();
    let holds: Vec<(&Entry, &Hold)> =
        kept.iter().filter_map(|entry| Some((*entry, entry.hold.as_ref()?))).collect();
    if holds.is_empty() && refused.is_empty() {
        return Ok(waiting);
    }
    // All nodes lock approvals and counters first, then subjects, then pending requests.
    lock_subjects(db, entries.iter().filter(|entry| entry.hold.is_some())).await?;
    notify_of_limits(db, entries, refused).await?;
    if holds.is_empty() {
        return Ok(waiting);
    }
    let pending = insert(db, &holds, now).await?;
    let held: QueryResult<Vec<_>> = holds
        .iter()
        .map(|(entry, hold)| {
            let found =
                pending.get(&(String::from(&entry.tenant_id), hold.request_digest.to_vec()));
            // If the request was decided between the two statements, the batch is retried and finds
            // the answer.
            Ok((*entry, found.ok_or(diesel::result::Error::RollbackTransaction)?))
        })
        .collect();
    let held = held?;
    let is_new = |(entry, open): &&(&Entry, &Open)| {
        entry.hold.as_ref().is_some_and(|hold| hold.approval_id.as_str() == open.id)
    };
    let opened: Vec<(&Entry, &Hold)> = held
        .iter()
        .filter(is_new)
        .filter_map(|(entry, _)| Some((*entry, entry.hold.as_ref()?)))
        .collect();
    check(db, &opened, refused, now).await?;
    void_insufficient(db, &opened).await?;
    insert_facts(db, &opened).await?;
    askers::add(db, &held).await?;
    waiting.extend(held.into_iter().map(|(entry, open)| (id(entry), open.id.as_str().into())));
    Ok(waiting)
}

/// Locks subjects. Only one decision at a time can then open requests for each subject.
///
/// Otherwise another request could open between the count of pending requests and the commit.
async fn lock_subjects<'e>(
    db: &mut Db,
    entries: impl Iterator<Item = &'e Entry>,
) -> QueryResult<()> {
    let (tenant, subject) =
        entries.map(|entry| (entry.tenant_id.as_str(), entry.subject.as_str())).unzip();
    LockSubjects { tenant, subject }.execute(db).await.map(drop)
}

/// Notifies admins about agents that have reached their limit of pending requests.
async fn notify_of_limits(db: &mut Db, entries: &[Entry], refused: &Refused) -> QueryResult<()> {
    let mut notify = NotifyOfLimit::default();
    for entry in entries {
        if let Some(Refusal::Full { pending }) = refused.get(entry.decision_id.as_str()) {
            notify.tenant.push(entry.tenant_id.as_str());
            notify.subject.push(&entry.subject);
            notify.pending.push(i32::try_from(*pending).unwrap_or(i32::MAX));
        }
    }
    if notify.tenant.is_empty() {
        return Ok(());
    }
    notify.execute(db).await.map(drop)
}

/// Inserts approval requests where none with the same digest is pending.
///
/// Returns the pending requests, by tenant and digest.
async fn insert(
    db: &mut Db,
    holds: &[(&Entry, &Hold)],
    now: DateTime<Utc>,
) -> QueryResult<HashMap<(String, Vec<u8>), Open>> {
    let mut insert = InsertApprovals::default();
    for (entry, hold) in holds {
        insert.id.push(hold.approval_id.as_str());
        insert.tenant.push(entry.tenant_id.as_str());
        insert.decision.push(entry.decision_id.as_str());
        insert.subject.push(&entry.subject);
        insert.action.push(&entry.action);
        insert.reason.push(entry.reason_code.word());
        insert.digest.push(&hold.request_digest);
        insert.needed.push(hold.needed);
        insert.roles.push(hold.roles.join(","));
        insert.at.push(entry.evaluated_at);
        insert.expires.push(hold.expires_at);
        insert.authority.push(hold.authority.as_ref());
        insert.policies.push(&hold.policies);
        insert.reality.push(&hold.reality);
        insert.requested_by.push(&hold.asker);
        insert.email.push(hold.asker_email.as_deref());
        insert.eligible.push(hold.nobody_eligible.then_some(NOBODY));
        insert.justification.push(hold.justification.as_deref());
    }
    let (tenant, digest) = (insert.tenant.clone(), insert.digest.clone());
    ExpireApprovals { tenant: tenant.clone(), digest: digest.clone(), now }.execute(db).await?;
    insert.execute(db).await?;
    let pending: Vec<(String, Vec<u8>, Open)> =
        PendingApprovals { tenant, digest }.load(db).await?;
    Ok(pending.into_iter().map(|(tenant, digest, open)| ((tenant, digest), open)).collect())
}

/// Refuses decisions that may not open a request. Their request was answered, or their subject has
/// more pending requests than the limit permits.
async fn check(
    db: &mut Db,
    opened: &[(&Entry, &Hold)],
    refused: &mut Refused,
    now: DateTime<Utc>,
) -> QueryResult<()> {
    if opened.is_empty() {
        return Ok(());
    }
    let mut answered = Answered { now, ..Answered::default() };
    let mut count = CountPending { now, ..CountPending::default() };
    for (entry, hold) in opened {
        let insufficient: Vec<&str> =
            hold.insufficient.iter().map(|approval| approval.id.as_str()).collect();
        answered.decision.push(entry.decision_id.as_str());
        answered.tenant.push(entry.tenant_id.as_str());
        answered.digest.push(&hold.request_digest);
        answered.kind.push(&hold.asker.kind);
        answered.asker.push(&hold.asker.id);
        answered.insufficient.push(insufficient.join(","));
        answered
            .declined_for
            .push(hold.declined_for.map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX)));
        count.tenant.push(entry.tenant_id.as_str());
        count.subject.push(&entry.subject);
    }
    let before = refused.len();
    let found: Vec<String> = answered.load(db).await?;
    refused.extend(found.into_iter().map(|decision| (decision, Refusal::Answered)));
    let pending: Vec<(String, String, i64)> = count.load(db).await?;
    for (tenant, subject, pending) in pending {
        refuse_surplus(opened, (&tenant, &subject, pending), refused);
    }
    if refused.len() > before { Err(diesel::result::Error::RollbackTransaction) } else { Ok(()) }
}

/// Refuses the last of a subject's new requests, as many as exceed the limit. `pending` is the
/// number of the subject's pending requests, including the new ones.
fn refuse_surplus(
    opened: &[(&Entry, &Hold)],
    (tenant, subject, pending): (&str, &str, i64),
    refused: &mut Refused,
) {
    let own = opened.iter().filter(|(entry, _)| {
        entry.tenant_id.as_str() == tenant
            && entry.subject == *subject
            && !refused.contains_key(entry.decision_id.as_str())
    });
    let own: Vec<_> = own.collect();
    let Some(limit) = own.iter().map(|(_, hold)| hold.limit).min() else { return };
    let surplus = usize::try_from(pending - i64::from(limit)).unwrap_or_default();
    let count = surplus.min(own.len());
    let left = u32::try_from(pending).unwrap_or(u32::MAX);
    let left = left.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    for (entry, _) in own.into_iter().rev().take(count) {
        refused.insert(String::from(&entry.decision_id), Refusal::Full { pending: left });
    }
}

/// Stores the values by which new requests are compared with others.
async fn insert_facts(db: &mut Db, opened: &[(&Entry, &Hold)]) -> QueryResult<()> {
    let mut insert = InsertFacts::default();
    for (entry, hold) in opened {
        for fact in &hold.facts {
            insert.tenant.push(entry.tenant_id.as_str());
            insert.role.push(&fact.role);
            insert.value.push(&fact.code);
            insert.at.push(entry.evaluated_at);
            insert.approval.push(hold.approval_id.as_str());
            insert.decision.push(entry.decision_id.as_str());
        }
    }
    if insert.value.is_empty() {
        return Ok(());
    }
    insert.execute(db).await.map(drop)
}

/// Makes earlier approvals void if they did not suffice and a new request was opened.
async fn void_insufficient(db: &mut Db, opened: &[(&Entry, &Hold)]) -> QueryResult<()> {
    let mut void = VoidApprovals::default();
    for (entry, hold) in opened {
        for approval in &hold.insufficient {
            void.tenant.push(entry.tenant_id.as_str());
            void.id.push(&approval.id);
            void.reason.push(&approval.reason);
        }
    }
    if void.id.is_empty() {
        return Ok(());
    }
    void.execute(db).await.map(drop)
}
