//! Stores a batch in one transaction. The transaction covers the fence, spending, keys, facts,
//! approval requests and decisions.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    decisions_sql::{DecisionEvents, InsertDecisions, StoreCurrent, Times},
    entry::{Entry, Outcome, Queued},
    health::Health,
    holds::{self, Refused},
    spend,
    sql::{Fence, InsertBlobs},
};
use authority_api::idempotency::{ClaimBatch, KeepBatch};
use authority_evidence::Blob;
use authority_ids::{ApprovalRef, DecisionId, TenantId};
use authority_process::clock::Clock;
use authority_store::{Db, Error, RunQueryDsl, Store, discard};

/// The maximum number of facts remembered as stored. A full set is cleared.
const KNOWN_FACTS: usize = 100_000;

/// The timeout of a batch. After it, callers do not wait for the batch any more. Only a retry with
/// the same idempotency key then shows whether a decision was committed.
const LONGEST: Duration = Duration::from_secs(4);

/// The maximum number of attempts to store a batch. If an attempt finds further decisions that may
/// not open a request, it is not counted.
const TRIES: u32 = 3;

/// A hash of the tenant, and a fact's digest. Each tenant stores its own copy of a fact.
type Fact = (u64, [u8; 32]);

/// Returns the facts that an entry refers to, with their blobs.
fn facts(entry: &Entry) -> impl Iterator<Item = (Fact, &Blob)> {
    let mut hasher = DefaultHasher::new();
    entry.tenant_id.hash(&mut hasher);
    let tenant = hasher.finish();
    entry.gathered.blobs().map(move |blob| ((tenant, blob.sha256), blob))
}

/// Facts to be stored, with their tenant.
type Fresh<'e> = Vec<(&'e TenantId, &'e Blob)>;

pub(super) struct Batches {
    store: Store,
    clock: Clock,
    fenced: bool,
    health: Health,
    /// Wakes the sequencer of events, because the recorder's transactions send no database
    /// notifications.
    outbox: Arc<Notify>,
    /// Facts that this node has committed. They are not sent again.
    known: Mutex<HashSet<Fact>>,
}

impl Batches {
    pub(super) fn new(
        store: Store,
        clock: Clock,
        fenced: bool,
        health: Health,
        outbox: Arc<Notify>,
    ) -> Self {
        Self { store, clock, fenced, health, outbox, known: Mutex::default() }
    }

    /// Commits as many entries as possible and sends all their outcomes. A batch that fails because
    /// of one row is split until that row is alone in its batch. If the database is unavailable,
    /// the batch is not retried.
    ///
    /// # Errors
    /// The reason why some entries were not recorded. Their outcomes were sent.
    pub(super) async fn commit(&self, queued: Vec<Queued>) -> Result<(), Error> {
        let mut parts = vec![queued];
        parts.retain(|part| !part.is_empty());
        let mut committed = Ok(());
        while let Some(part) = parts.pop() {
            let (entries, waiting): (Vec<_>, Vec<_>) =
                part.into_iter().map(|queued| (queued.entry, queued.done)).unzip();
            match self.transact(&entries).await {
                Ok(outcomes) => {
                    self.health.stored();
                    self.remember(&entries, &outcomes);
                    if entries.iter().any(Entry::is_an_event) {
                        self.outbox.notify_one();
                    }
                    for (done, outcome) in waiting.into_iter().zip(outcomes) {
                        let _ = done.send(outcome); // the caller may be gone; the record stays
                    }
                }
                Err(error) if entries.len() == 1 || error.is_passing() => {
                    tracing::error!(
                        %error,
                        decisions = entries.len(),
                        "failed to record decisions"
                    );
                    // A refused row does not mean that other rows can't be stored.
                    if !is_of_a_row(&error) {
                        self.health.failed(&error);
                    }
                    for done in waiting {
                        let _ = done.send(Outcome::Failed);
                    }
                    committed = Err(error);
                }
                Err(error) => {
                    let decisions = entries.len();
                    tracing::warn!(%error, decisions, "failed to record a batch; splitting it");
                    let mut first: Vec<_> = entries
                        .into_iter()
                        .zip(waiting)
                        .map(|(entry, done)| Queued { entry, done })
                        .collect();
                    let second = first.split_off(first.len() / 2);
                    parts.extend([second, first]);
                }
            }
        }
        committed
    }

    async fn transact(&self, entries: &[Entry]) -> Result<Vec<Outcome>, Error> {
        let mut db = self.store.recorder().await?;
        let storing = self.store.within(LONGEST, self.store(&mut db, entries));
        let stored = match AssertUnwindSafe(storing).catch_unwind().await {
            Ok(stored) => stored,
            // The connection is discarded. In the pool, it would keep the fence until its next use.
            Err(panic) => {
                discard(db);
                resume_unwind(panic)
            }
        };
        if stored.as_ref().is_err_and(Error::is_passing) {
            discard(db);
        }
        stored
    }

    async fn store(&self, db: &mut Db, entries: &[Entry]) -> QueryResult<Vec<Outcome>> {
        let fresh = self.unknown_facts(entries);
        let relaxed = entries.iter().all(|entry| entry.relaxed);
        if self.fenced && fresh.is_empty() && entries.iter().all(Entry::has_no_other_rows) {
            return store_current(db, entries, relaxed, &self.clock).await;
        }
        let mut tries = 1;
        let mut refused = Refused::default();
        loop {
            let known = refused.len();
            let stored = self.store_together(db, entries, &fresh, relaxed, &mut refused).await;
            // There are three reasons for a rollback. A decision expired between the fence and the
            // insert: the next fence detects it. An approval request that a decision waits for was
            // decided. Some decisions may not open a request: the next attempt stores the others
            // without them.
            let is_undone = matches!(stored, Err(diesel::result::Error::RollbackTransaction));
            if !is_undone || tries == TRIES {
                return stored;
            }
            tries += u32::from(refused.len() == known);
        }
    }

    async fn store_together(
        &self,
        db: &mut Db,
        entries: &[Entry],
        fresh: &Fresh<'_>,
        relaxed: bool,
        refused: &mut Refused,
    ) -> QueryResult<Vec<Outcome>> {
        // The fence needs this isolation level, regardless of the session's default.
        db.build_transaction()
            .read_committed()
            .run(async move |db| {
                if relaxed {
                    diesel::sql_query("SET LOCAL synchronous_commit = off").execute(db).await?;
                }
                let mut outcomes = fence(db, entries, &self.clock).await?;
                if !self.fenced {
                    outcomes.iter_mut().for_each(|outcome| *outcome = None);
                }
                let now = self.clock.now();
                drop_repeats(entries, &mut outcomes);
                holds::refuse(entries, &mut outcomes, refused);
                spend::share_out(db, entries, &mut outcomes, now).await?;
                claim_keys(db, entries, &mut outcomes).await?;
                if !fresh.is_empty() {
                    insert_blobs(db, fresh).await?;
                }
                let kept: Vec<&Entry> = entries
                    .iter()
                    .zip(&outcomes)
                    .filter(|(_, outcome)| outcome.is_none())
                    .map(|(entry, _)| entry)
                    .collect();
                spend::write(db, &kept, now).await?;
                let approvals = holds::open(db, entries, &kept, refused, now).await?;
                if !kept.is_empty() {
                    let insert = InsertDecisions::new(&kept, &approvals, &self.clock);
                    if insert.execute(db).await? < kept.len() {
                        // Expired decisions were not inserted. The rollback also undoes their
                        // claims, and the other decisions are retried.
                        return Err(diesel::result::Error::RollbackTransaction);
                    }
                    let events = DecisionEvents::of(kept.iter().copied());
                    if !events.is_empty() {
                        events.execute(db).await?;
                    }
                }
                keep_answers(db, &kept, &approvals).await?;
                let approval_id =
                    |entry: &Entry| approvals.get(entry.decision_id.as_str()).cloned();
                Ok(entries
                    .iter()
                    .zip(outcomes)
                    .map(|(entry, outcome)| {
                        outcome
                            .unwrap_or_else(|| Outcome::Stored { approval_id: approval_id(entry) })
                    })
                    .collect())
            })
            .await
    }

    fn unknown_facts<'e>(&self, entries: &'e [Entry]) -> Fresh<'e> {
        let known = self.known.lock();
        let mut seen = HashSet::new();
        let mut fresh = Fresh::new();
        for entry in entries {
            for (fact, blob) in facts(entry) {
                if !known.contains(&fact) && seen.insert(fact) {
                    fresh.push((&entry.tenant_id, blob));
                }
            }
        }
        fresh
    }

    fn remember(&self, entries: &[Entry], outcomes: &[Outcome]) {
        let mut known = self.known.lock();
        if known.len() > KNOWN_FACTS {
            known.clear();
        }
        for (entry, outcome) in entries.iter().zip(outcomes) {
            // A crash of the database may undo a relaxed commit. Its facts therefore do not count
            // as stored.
            if !entry.relaxed && matches!(outcome, Outcome::Stored { .. }) {
                known.extend(facts(entry).map(|(fact, _)| fact));
            }
        }
    }
}

/// Whether a constraint of the tables refused a value.
const fn is_of_a_row(error: &Error) -> bool {
    matches!(error, Error::Conflict(_) | Error::Reference(_) | Error::InUse(_) | Error::Refused(_))
}

/// Stores decisions that write no rows besides the decision, its facts and its event.
async fn store_current(
    db: &mut Db,
    entries: &[Entry],
    relaxed: bool,
    clock: &Clock,
) -> QueryResult<Vec<Outcome>> {
    let tenants = tenants(entries);
    let present = if entries.iter().any(|entry| entry.event.is_some()) {
        StoreCurrent::<true>::new(entries, &tenants, relaxed, clock).load(db).await?
    } else {
        StoreCurrent::<false>::new(entries, &tenants, relaxed, clock).load(db).await?
    };
    let outcomes = outdated(entries, present, clock).into_iter();
    Ok(outcomes.map(|passed| passed.unwrap_or(Outcome::Stored { approval_id: None })).collect())
}

/// Takes the fence. Until the commit, the authority of the entries' tenants can't change.
async fn fence(db: &mut Db, entries: &[Entry], clock: &Clock) -> QueryResult<Vec<Option<Outcome>>> {
    let present = Fence { tenants: tenants(entries) }.load(db).await?;
    Ok(outdated(entries, present, clock))
}

fn tenants(entries: &[Entry]) -> Vec<&str> {
    let tenants: HashSet<&str> = entries.iter().map(|entry| entry.tenant_id.as_str()).collect();
    let mut tenants: Vec<&str> = tenants.into_iter().collect();
    tenants.sort_unstable();
    tenants
}

/// A tenant's current revision, and the database's time when it was read.
type Present = (String, i64, DateTime<Utc>);

/// Returns an outcome for each decision that can't be stored, and `None` for the others. A decision
/// can't be stored if it was made on another revision than the tenant's current one, or if its
/// times are not valid by the database's clock.
fn outdated(entries: &[Entry], present: Vec<Present>, clock: &Clock) -> Vec<Option<Outcome>> {
    let present = present.into_iter().map(|(tenant, revision, now)| (tenant, (revision, now)));
    let present: HashMap<String, (i64, DateTime<Utc>)> = present.collect();
    let passed = entries.iter().map(|entry| match present.get(entry.tenant_id.as_str()) {
        Some((revision, _)) if *revision != entry.revision => {
            Some(Outcome::AuthorityChanged { revision: *revision })
        }
        Some((_, now)) if Times::of(entry, clock).are_good(*now) => None,
        Some(_) => Some(Outcome::Late),
        None => Some(Outcome::AuthorityChanged { revision: 0 }),
    });
    passed.collect()
}

/// Keeps only the first entry with each idempotency key. The others would take the rest of a budget
/// from each other and from other calls.
fn drop_repeats(entries: &[Entry], outcomes: &mut [Option<Outcome>]) {
    let mut seen = HashSet::new();
    for (entry, outcome) in entries.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_none()) {
        if entry.key.as_ref().is_some_and(|keyed| !seen.insert(keyed.key.place())) {
            *outcome = Some(Outcome::KeyTaken);
        }
    }
}

async fn claim_keys(
    db: &mut Db,
    entries: &[Entry],
    outcomes: &mut [Option<Outcome>],
) -> QueryResult<()> {
    let mut claim = ClaimBatch::default();
    for (entry, _) in entries.iter().zip(&*outcomes).filter(|(_, outcome)| outcome.is_none()) {
        let Some(keyed) = &entry.key else { continue };
        claim.add(&keyed.key, &entry.decision_id, entry.evaluated_at);
    }
    if claim.is_empty() {
        return Ok(());
    }
    let won = claim.claim(db).await?;
    for (entry, outcome) in entries.iter().zip(outcomes) {
        if outcome.is_none() && entry.key.is_some() && !won.contains(entry.decision_id.as_str()) {
            *outcome = Some(Outcome::KeyTaken);
        }
    }
    Ok(())
}

async fn insert_blobs(db: &mut Db, fresh: &Fresh<'_>) -> QueryResult<()> {
    let mut insert = InsertBlobs::default();
    for (tenant_id, blob) in fresh {
        insert.tenant.push(tenant_id.as_str());
        insert.sha256.push(&blob.sha256);
        insert.body.push(&blob.body);
    }
    insert.execute(db).await.map(drop)
}

async fn keep_answers(
    db: &mut Db,
    kept: &[&Entry],
    approvals: &HashMap<DecisionId, ApprovalRef>,
) -> QueryResult<()> {
    let mut keep = KeepBatch::default();
    for entry in kept {
        let Some(keyed) = &entry.key else { continue };
        let approval = approvals.get(&entry.decision_id);
        keep.add(&keyed.key, (keyed.answer)(approval));
    }
    if keep.is_empty() {
        return Ok(());
    }
    keep.keep(db).await
}
