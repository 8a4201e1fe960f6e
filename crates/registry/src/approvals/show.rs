//! Computed fields of approvals: the exact request, and earlier requests with the same digest.

use std::collections::{HashMap, HashSet};

use authority_model::{
    proto::approval::{Approval, ApprovalAct, ApprovalPolicy, EarlierApproval},
    schema::{approvals, decisions, policies},
    state::ApprovalState,
    wire::Time,
};
use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, Bytea, Jsonb, Text, Timestamptz};

use super::{
    named, question, reality,
    similar::{Comparisons, compared},
};
use crate::flow::prelude::*;
use authority_api::page;
use authority_evidence::digest_text;
use authority_ledger::spending::DECLINE;
use authority_store as store;

diesel::define_sql_function! {
    fn octet_length(bytes: Bytea) -> Integer;
}

/// Fills in the fields that the rows lack.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn fill_computed(
    registry: &Registry,
    caller: &Caller,
    rows: &mut [Approval],
) -> Result<(), Error> {
    let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let decisions = rows.iter().map(|row| row.decision_id.clone()).collect();
    let policies = rows.iter().flat_map(|row| &row.policies).map(|policy| policy.id.clone());
    let policies = policies.collect();
    let now = registry.clock.now();
    let pending = compared(rows);
    let any_declined = rows.iter().any(|row| row.known_state() == Some(ApprovalState::Declined));
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let (held, described) = (held(db, decisions).await?, described(db, policies).await?);
        let (digests, earlier) = (digests(db, &ids).await?, earlier(db, &ids).await?);
        let declined = if any_declined { declined(db, &ids, now).await? } else { HashMap::new() };
        let comparisons = Comparisons::of(db, &pending).await?;
        Ok::<_, store::Error>((digests, held, described, earlier, declined, comparisons))
    });
    let (mut digests, held, described, mut earlier, declined, mut comparisons) = read.await?;
    for row in &mut *rows {
        row.declined_until = declined.get(&row.id).copied();
        comparisons.put(row);
        let Some((digest, justification)) = digests.remove(&row.id) else { continue };
        let asked = held.get(&row.decision_id);
        row.request = asked.and_then(|(record, context)| question::read(record, context, &digest));
        row.request_digest = digest_text(&digest);
        row.justification = justification;
        row.earlier = earlier.remove(&row.id).unwrap_or_default();
        name(&mut row.policies, &described);
    }
    named::fill(registry, caller, rows).await?;
    reality::fill(registry, caller, rows).await
}

/// Fills in the fields of one approval.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn one(
    registry: &Registry,
    caller: &Caller,
    row: &mut Approval,
) -> Result<(), Error> {
    fill_computed(registry, caller, std::slice::from_mut(row)).await
}

/// Shortens a page so that its contexts fit in a response. Runs before the contexts are read.
///
/// Returns whether it removed some requests.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn cut(
    registry: &Registry,
    caller: &Caller,
    rows: &mut Vec<Approval>,
) -> Result<bool, Error> {
    let ids: Vec<String> = rows.iter().map(|row| row.decision_id.clone()).collect();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let sizes: Vec<(String, i32)> = decisions::table
            .filter(decisions::id.eq_any(ids))
            .select((decisions::id, octet_length(decisions::context)))
            .load(db)
            .await?;
        Ok::<_, store::Error>(sizes)
    });
    let sizes: HashMap<String, i32> = read.await?.into_iter().collect();
    // A context is shown as it is, and as people see it.
    let size = |row: &Approval| {
        let bytes = sizes.get(&row.decision_id).copied().unwrap_or_default();
        usize::try_from(bytes).unwrap_or_default().saturating_mul(2)
    };
    let all = rows.len();
    Ok(page::cut_by(rows, all, size))
}

/// The digest of a request, and the requester's own reason.
type Asked = ([u8; 32], Option<String>);

/// Returns the digest of each approval's request, and the reason of its requester.
async fn digests(db: &mut Db, ids: &[String]) -> QueryResult<HashMap<String, Asked>> {
    let rows: Vec<(String, Vec<u8>, Option<String>)> = approvals::table
        .filter(approvals::id.eq_any(ids))
        .select((approvals::id, approvals::request_digest, approvals::justification))
        .load(db)
        .await?;
    let asked = |(id, digest, justification): (String, Vec<u8>, Option<String>)| {
        Some((id, (digest.try_into().ok()?, justification)))
    };
    Ok(rows.into_iter().filter_map(asked).collect())
}

/// Records and contexts of decisions.
type DecisionTexts = HashMap<String, (Vec<u8>, Vec<u8>)>;

async fn held(db: &mut Db, ids: Vec<String>) -> QueryResult<DecisionTexts> {
    let rows: Vec<(String, Vec<u8>, Vec<u8>)> = decisions::table
        .filter(decisions::id.eq_any(ids))
        .select((decisions::id, decisions::record, decisions::context))
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|(id, record, context)| (id, (record, context))).collect())
}

/// Fills in the names and descriptions of policies.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn describe(
    registry: &Registry,
    caller: &Caller,
    policies: &mut [ApprovalPolicy],
) -> Result<(), Error> {
    if policies.is_empty() {
        return Ok(());
    }
    let ids = policies.iter().map(|policy| policy.id.clone()).collect();
    let read = registry
        .store
        .read_tx(&caller.scope(), async move |db| Ok::<_, store::Error>(described(db, ids).await?));
    let described = read.await?;
    name(policies, &described);
    Ok(())
}

fn name(policies: &mut [ApprovalPolicy], described: &Described) {
    for policy in policies {
        (policy.name, policy.description) = described.get(&policy.id).cloned().unwrap_or_default();
    }
}

/// Names and descriptions of policies.
type Described = HashMap<String, (Option<String>, Option<String>)>;

async fn described(db: &mut Db, ids: HashSet<String>) -> QueryResult<Described> {
    if ids.is_empty() {
        return Ok(Described::new());
    }
    let rows: Vec<(String, Option<String>, Option<String>)> = policies::table
        .filter(policies::id.eq_any(ids))
        .select((policies::id, policies::name, policies::description))
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|(id, name, description)| (id, (name, description))).collect())
}

#[derive(QueryableByName)]
struct Before {
    #[diesel(sql_type = Text)]
    later: String,
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Timestamptz)]
    at: Time,
    #[diesel(sql_type = Array<Jsonb>)]
    acts: Vec<ApprovalAct>,
}

/// Returns earlier requests with the same digest, newest first. They have ended or were approved.
async fn earlier(
    db: &mut Db,
    ids: &[String],
) -> QueryResult<HashMap<String, Vec<EarlierApproval>>> {
    let rows: Vec<Before> = diesel::sql_query(
        "SELECT shown.id AS later, before.* FROM approvals shown CROSS JOIN LATERAL ( \
             SELECT id, state, acts, \
                 CASE state WHEN 'declined' THEN declined_at ELSE updated_at END AS at \
             FROM approvals \
             WHERE tenant_id = shown.tenant_id AND request_digest = shown.request_digest \
                 AND state IN ('declined', 'expired', 'approved', 'used') \
                 AND created_at < shown.created_at \
             ORDER BY created_at DESC LIMIT 20 \
         ) before WHERE shown.id = ANY($1) ORDER BY shown.id, before.at DESC",
    )
    .bind::<Array<Text>, _>(ids)
    .load(db)
    .await?;
    let mut earlier: HashMap<String, Vec<EarlierApproval>> = HashMap::new();
    for row in rows {
        earlier.entry(row.later.clone()).or_default().push(row.into());
    }
    Ok(earlier)
}

impl From<Before> for EarlierApproval {
    fn from(row: Before) -> Self {
        let declined = row.acts.into_iter().find(|act| act.verdict == DECLINE);
        Self {
            id: row.id,
            state: row.state,
            at: Some(row.at),
            reason: declined.and_then(|act| act.comment),
        }
    }
}

/// Declined requests of the same subject and action, newest first. Their digest differs.
const DECLINED_BEFORE: &str = "
    SELECT shown.id AS later, before.id, before.state, before.acts,
           before.declined_at AS at
    FROM approvals shown JOIN approvals before
        ON before.tenant_id = shown.tenant_id AND before.subject = shown.subject
        AND before.action = shown.action AND before.state = 'declined'
        AND before.request_digest <> shown.request_digest AND before.created_at < shown.created_at
    WHERE shown.id = $1 ORDER BY before.created_at DESC LIMIT 20";

/// Returns requests of the same agent for the same action that were declined before.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn declined_before(
    registry: &Registry,
    caller: &Caller,
    row: &Approval,
) -> Result<Vec<EarlierApproval>, Error> {
    let id = row.id.clone();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let rows: Vec<Before> =
            diesel::sql_query(DECLINED_BEFORE).bind::<Text, _>(id).load(db).await?;
        Ok::<_, store::Error>(rows)
    });
    Ok(read.await?.into_iter().map(EarlierApproval::from).collect())
}

/// Finds the time until which each request's decline is valid, by the tenant's current setting.
///
/// Only the newest decline of a request is valid.
const DECLINED: &str = "
    SELECT a.id, u.until
    FROM approvals a JOIN tenants t ON t.id = a.tenant_id CROSS JOIN LATERAL declined_until(
        a.declined_at, a.created_at, a.expires_at, a.declined_for_seconds,
        t.declined_for_seconds) AS u (until)
    WHERE a.id = ANY ($1) AND a.state = 'declined' AND a.reopened_at IS NULL AND u.until > $2
      AND NOT EXISTS (
        SELECT FROM approvals later
        WHERE later.tenant_id = a.tenant_id AND later.request_digest = a.request_digest
          AND later.state = 'declined' AND later.declined_at > a.declined_at)";

#[derive(QueryableByName)]
struct Until {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Timestamptz)]
    until: Time,
}

async fn declined(
    db: &mut Db,
    ids: &[String],
    now: DateTime<Utc>,
) -> QueryResult<HashMap<String, Time>> {
    let rows: Vec<Until> = diesel::sql_query(DECLINED)
        .bind::<Array<Text>, _>(ids)
        .bind::<Timestamptz, _>(now)
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.until)).collect())
}
