//! Spends approvals and counters in the transaction of the decisions.
//!
//! First every row that the batch needs is locked, in the same order on all nodes. Then the
//! remainders are assigned in the order of the entries, and the spending of those that stay in the
//! batch is written.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use diesel::QueryResult;

use super::{
    entry::{Entry, Outcome},
    spend_sql::{AddToCounters, CounterHeld, LockApprovals, LockCounters, UseApprovals},
};
use authority_core::store::{Db, RunQueryDsl};
use authority_decision::{
    facts::{CounterKey, Counts},
    verdict::Claims,
};

/// A counter: its tenant, and its key.
type Counter<'e> = (&'e str, &'e CounterKey);

/// Removes the entries that want more than is left. The others' spending is stored by [`write`].
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
        let Some((tenant, claims)) = asks((entry, outcome)) else { continue };
        let cited = claims.approval_id.as_deref().map(|id| (tenant, id));
        let approved = cited.is_none_or(|cited| free.contains(&cited));
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

/// What an entry that is still in the batch spends.
fn asks<'e>((entry, outcome): (&'e Entry, &Option<Outcome>)) -> Option<(&'e str, &'e Claims)> {
    let wants = outcome.is_none() && !entry.claims.is_empty();
    wants.then_some((entry.tenant_id.as_str(), &entry.claims))
}

/// Locks the cited approvals that can still be used.
async fn approvals<'e>(
    db: &mut Db,
    asking: impl Iterator<Item = (&'e str, &'e Claims)>,
    now: DateTime<Utc>,
) -> QueryResult<HashSet<(&'e str, &'e str)>> {
    let cited: HashSet<(&str, &str)> = asking
        .filter_map(|(tenant, claims)| Some((tenant, claims.approval_id.as_deref()?)))
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
    asking: impl Iterator<Item = (&'e str, &'e Claims)>,
) -> QueryResult<HashMap<Counter<'e>, i64>> {
    let wanted: HashSet<Counter<'_>> = asking
        .flat_map(|(tenant, claims)| claims.counters.iter().map(move |c| (tenant, &c.key)))
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
    // A counter that is missing here has nothing left: its entries must read it again.
    let used = |(tenant, key): &Counter<'_>| held.get(*tenant)?.get(*key).copied();
    Ok(wanted.into_iter().filter_map(|counter| Some((counter, used(&counter)?))).collect())
}

/// Writes the spending of the remaining entries.
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
