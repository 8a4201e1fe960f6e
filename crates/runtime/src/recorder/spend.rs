//! Spends approvals and counters in the transaction of the decisions.
//!
//! First every row that the batch needs is locked, in the same order on all nodes. Then approvals
//! and remaining limits are assigned in the order of the entries. An entry that does not get all it
//! needs leaves the batch. For the other entries, the used parts are written.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use diesel::QueryResult;

use super::{
    entry::{Entry, InsufficientApproval, Outcome},
    spend_sql::{AddToCounters, CounterHeld, LockApprovals, LockCounters, UseApprovals},
};
use authority_decision::{
    facts::{CounterKey, Counts},
    verdict::Claims,
};
use authority_store::{Db, RunQueryDsl};

/// A counter: its tenant and its key.
type Counter<'e> = (&'e str, &'e CounterKey);

/// Sets the outcome of entries that need more than is left. [`write`] stores the approvals and
/// counters that the other entries use.
pub(super) async fn share_out(
    db: &mut Db,
    entries: &[Entry],
    outcomes: &mut [Option<Outcome>],
    now: DateTime<Utc>,
) -> QueryResult<()> {
    let asking = || entries.iter().zip(outcomes.iter()).filter_map(asks);
    if asking().next().is_none() {
        return Ok(());
    }
    let mut free = approvals(db, asking(), now).await?;
    let mut used = counters(db, asking()).await?;
    for (entry, outcome) in entries.iter().zip(outcomes) {
        let Some(Competing { tenant, claims, ready, .. }) = asks((entry, outcome)) else {
            continue;
        };
        let cited = claims.approval_id.as_deref().map(|id| (tenant, id));
        let mut wanted = cited.iter().chain(&ready);
        let approved = wanted.all(|id| free.contains(id));
        let room = claims.counters.iter().all(|claim| {
            let used = used.get(&(tenant, &claim.key)).copied();
            let after = used.and_then(|used| used.checked_add(claim.add));
            after.is_some_and(|after| after <= claim.limit)
        });
        if !approved || !room {
            *outcome = Some(Outcome::Spent);
            continue;
        }
        cited.map(|cited| free.remove(&cited));
        for claim in &claims.counters {
            if let Some(used) = used.get_mut(&(tenant, &claim.key)) {
                *used += claim.add;
            }
        }
    }
    Ok(())
}

/// An approval: its tenant and its ID.
type ApprovalKey<'e> = (&'e str, &'e str);

/// The approvals and counters that an entry still in the batch depends on.
struct Competing<'e> {
    tenant: &'e str,
    claims: &'e Claims,
    /// The approval that its hold refers to.
    ready: Option<ApprovalKey<'e>>,
    /// The approvals that its hold makes void.
    insufficient: &'e [InsufficientApproval],
}

fn asks<'e>((entry, outcome): (&'e Entry, &Option<Outcome>)) -> Option<Competing<'e>> {
    let tenant = entry.tenant_id.as_str();
    let wants = outcome.is_none() && entry.is_competing();
    wants.then(|| Competing {
        tenant,
        claims: &entry.claims,
        ready: entry.ready.as_deref().map(|id| (tenant, id)),
        insufficient: entry.hold.as_ref().map_or(&[][..], |hold| &hold.insufficient),
    })
}

/// Locks the usable approvals that entries cite, wait for or make void.
async fn approvals<'e>(
    db: &mut Db,
    asking: impl Iterator<Item = Competing<'e>>,
    now: DateTime<Utc>,
) -> QueryResult<HashSet<ApprovalKey<'e>>> {
    let cited: HashSet<ApprovalKey<'_>> = asking
        .flat_map(|Competing { tenant, claims, ready, insufficient }| {
            let cited = claims.approval_id.as_deref();
            let insufficient = insufficient.iter().map(|approval| approval.id.as_str());
            let own = cited.into_iter().chain(insufficient).map(move |id| (tenant, id));
            own.chain(ready)
        })
        .collect();
    if cited.is_empty() {
        return Ok(cited);
    }
    let id = cited.iter().map(|(_, id)| *id).collect();
    let free: Vec<(String, String)> = LockApprovals { id, now }.load(db).await?;
    let free: HashSet<(&str, &str)> =
        free.iter().map(|(tenant, id)| (tenant.as_str(), id.as_str())).collect();
    Ok(cited.into_iter().filter(|cited| free.contains(cited)).collect())
}

/// Locks the needed counters and reads their values.
async fn counters<'e>(
    db: &mut Db,
    asking: impl Iterator<Item = Competing<'e>>,
) -> QueryResult<HashMap<Counter<'e>, i64>> {
    let wanted: HashSet<Counter<'_>> = asking
        .flat_map(|Competing { tenant, claims, .. }| {
            claims.counters.iter().map(move |counter| (tenant, &counter.key))
        })
        .collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let mut lock = LockCounters::default();
    wanted.iter().for_each(|counter| lock.0.push(*counter));
    let mut held: HashMap<String, HashMap<CounterKey, i64>> = HashMap::new();
    let rows: Vec<CounterHeld> = lock.load(db).await?;
    for (tenant, holder_id, counts, window_seconds, window_start, used) in rows {
        if let (Some(counts), Ok(window_seconds)) =
            (Counts::from_word(&counts), u32::try_from(window_seconds))
        {
            let key = CounterKey { holder_id, counts, window_seconds, window_start };
            held.entry(tenant).or_default().insert(key, used);
        }
    }
    // A counter that can't be read has no remaining limit. Its users must be decided again.
    let used = |(tenant, key): &Counter<'_>| held.get(*tenant)?.get(*key).copied();
    Ok(wanted.into_iter().filter_map(|counter| Some((counter, used(&counter)?))).collect())
}

/// Stores the approvals and counters that the remaining entries use.
pub(super) async fn write(db: &mut Db, kept: &[&Entry], now: DateTime<Utc>) -> QueryResult<()> {
    let mut uses = UseApprovals { now, ..UseApprovals::default() };
    let mut added: BTreeMap<Counter<'_>, i64> = BTreeMap::new();
    for entry in kept {
        if let Some(id) = &entry.claims.approval_id {
            uses.id.push(id);
            uses.decision.push(entry.decision_id.as_str());
        }
        for claim in &entry.claims.counters {
            *added.entry((entry.tenant_id.as_str(), &claim.key)).or_default() += claim.add;
        }
    }
    if !uses.id.is_empty() {
        uses.execute(db).await?;
    }
    if added.is_empty() {
        return Ok(());
    }
    let mut add = AddToCounters::default();
    for (counter, by) in added {
        add.counters.push(counter);
        add.by.push(by);
    }
    add.execute(db).await.map(drop)
}
