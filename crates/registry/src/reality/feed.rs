//! Snapshots that API keys feed. One writer per node batches them: many feeders cost few commits.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use authority_model::{
    proto::reality::{FedSnapshot, FeedRealitySnapshotsResponse, RealitySnapshot},
    validate::Validate,
};
use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Scope, Store};
use futures_util::future::join_all;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, timeout_at},
};
use tonic::Response;

use super::{
    feed_batch::{Fed, Outcome, store_batch},
    feed_pace::{Pace, Pair},
    freshness, snapshot_rules,
};
use crate::flow::{prelude::*, version::tagged};
use authority_api::{
    error::ApiError,
    identity::CallerKind,
    rate_limit::{AppliedLimits, Remaining},
};

/// The maximum number of snapshots in one transaction.
const MOST: usize = 256;
/// How long the first snapshot of a batch waits for others.
const GATHERING: Duration = Duration::from_millis(100);
/// The maximum number of queued snapshots. Beyond it, the service reports that it is overloaded.
const QUEUE: usize = 4096;

/// The operation that a bound key may not perform.
const BRING: &str = "bring snapshots, which concern every agent";

struct Queued {
    fed: Fed,
    done: oneshot::Sender<Outcome>,
}

/// Sends snapshots to the writer. Cheap to clone.
#[derive(Clone)]
pub struct SnapshotFeed(mpsc::Sender<Queued>);

impl SnapshotFeed {
    /// Returns the feed and its writer.
    pub fn new(store: Store) -> (Self, Worker) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        // The queue is created outside the future and therefore survives a panic.
        let waiting = Arc::new(Mutex::new(waiting));
        let writer = Worker::endless("reality_writer", move |context| {
            let (waiting, store) = (Arc::clone(&waiting), store.clone());
            async move {
                write(&mut *waiting.lock().await, &store, &context).await;
                Ok::<_, store::Error>(())
            }
        });
        (Self(queue), writer.outlasting_calls())
    }

    async fn store(&self, fed: Fed) -> Outcome {
        let unavailable = || Outcome::from(Error::Refused(ErrorCode::Unavailable));
        let (done, answer) = oneshot::channel();
        if self.0.try_send(Queued { fed, done }).is_err() {
            return unavailable();
        }
        answer.await.unwrap_or_else(|_| unavailable())
    }
}

/// Writes queued snapshots until the worker is stopped, then the remaining snapshots.
async fn write(waiting: &mut mpsc::Receiver<Queued>, store: &Store, context: &Context) {
    loop {
        let first = tokio::select! {
            biased;
            () = context.stopped(), if !waiting.is_closed() => {
                waiting.close();
                continue;
            }
            first = waiting.recv() => first,
        };
        let Some(first) = first else { return };
        let mut queued = vec![first];
        let until = Instant::now() + GATHERING;
        while queued.len() < MOST {
            match timeout_at(until, waiting.recv()).await {
                Ok(Some(next)) => queued.push(next),
                Ok(None) | Err(_) => break,
            }
        }
        // Snapshots of callers that have disconnected are not stored.
        queued.retain(|queued| !queued.done.is_closed());
        let _ = context.round(commit(store, queued)).await;
    }
}

/// Stores all snapshots in one transaction. If the transaction fails, no snapshot is stored.
async fn commit(store: &Store, queued: Vec<Queued>) -> Result<(), store::Error> {
    let (fed, done): (Vec<_>, Vec<_>) =
        queued.into_iter().map(|queued| (queued.fed, queued.done)).unzip();
    let stored = store.write_tx(&Scope::service(), async move |db| store_batch(db, fed).await);
    let outcomes = match stored.await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            tracing::warn!(%error, "failed to store snapshots");
            done.into_iter().for_each(|done| {
                let _ = done.send(Error::Refused(ErrorCode::Unavailable).into());
            });
            return Err(store::Error::Internal(error.to_string()));
        }
    };
    for (done, outcome) in done.into_iter().zip(outcomes) {
        let _ = done.send(outcome);
    }
    Ok(())
}

/// Returns the snapshot with its tenant and feeder. The feeder is the owner or an API key that is
/// bound to no principal.
fn fed(caller: &Caller, mut row: RealitySnapshot) -> Result<Fed, Error> {
    caller.unbound(BRING)?;
    let feeder = match &caller.kind {
        CallerKind::Key { key_id, .. } => Some(key_id.to_string()),
        CallerKind::Owner { .. } => None,
        _ => return Err(ApiError::plain(ErrorCode::Forbidden).into()),
    };
    references::own_tenant(&mut row.tenant_id, RealitySnapshot::KIND, caller.tenant())?;
    if caller.tenant().is_some_and(|own| row.tenant_id() != own.as_str()) {
        return Err(Error::unknown("reality_snapshot.tenant_id", row.tenant_id()));
    }
    let id = row.new_id("")?;
    row.stamp_created(id, caller.actor.clone());
    row.feeder_key_id.clone_from(&feeder);
    Ok(Fed { row, feeder })
}

impl SnapshotFeed {
    /// Stores one snapshot.
    pub(super) async fn one(
        &self,
        registry: &Registry,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        row: RealitySnapshot,
    ) -> Reply<RealitySnapshot> {
        let fed = fed(caller, row)?;
        let tenant = TenantId::parse(fed.row.tenant_id()).ok();
        let (stored, left) = match key.map(|key| key.within(tenant.as_ref())) {
            None => {
                let Outcome { stored, left } = self.store(fed).await;
                (Response::new(stored?), left)
            }
            // This snapshot is not batched, because its response must be stored in the same
            // transaction.
            key => {
                let pair = fed.pair().into_iter().collect();
                let stored = registry.idempotent(caller, key, async move |db| {
                    let mut outcomes = store_batch(db, vec![fed]).await?;
                    let outcome = outcomes.pop().ok_or(Error::Refused(ErrorCode::Internal))?;
                    outcome.stored
                });
                let stored = stored.await?.reply();
                (stored, least_left(registry, caller, pair).await)
            }
        };
        registry.wait_for_graph::<RealitySnapshot>().await;
        Ok(shown(left, tagged(stored)))
    }

    /// Stores several snapshots, each as if it were sent alone.
    pub(super) async fn several(
        &self,
        registry: &Registry,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        rows: Vec<RealitySnapshot>,
    ) -> Reply<FeedRealitySnapshotsResponse> {
        caller.unbound(BRING)?;
        let checked: Vec<_> = rows.into_iter().map(|row| checked(caller, row)).collect();
        let (answer, left) = match key {
            None => {
                let stored = checked.into_iter().map(|fed| async {
                    match fed {
                        Ok(fed) => self.store(fed).await,
                        Err(error) => error.into(),
                    }
                });
                let outcomes = join_all(stored).await;
                let left = outcomes.iter().filter_map(|outcome| outcome.left).min();
                let results = outcomes.into_iter().map(|outcome| outcome.stored);
                (Response::new(response(results.collect())), left)
            }
            key => {
                let pairs = checked.iter().flatten().filter_map(Fed::pair).collect();
                let stored = registry.idempotent(caller, key, async move |db| {
                    let mut results = Vec::with_capacity(checked.len());
                    let mut fed = Vec::new();
                    for one in checked {
                        results.push(one.map(|one| fed.push(one)));
                    }
                    let mut stored = store_batch(db, fed).await?.into_iter();
                    let missing = || Err(Error::Refused(ErrorCode::Internal));
                    let mut next = || stored.next().map_or_else(missing, |outcome| outcome.stored);
                    let results = results.into_iter().map(|result| result.and_then(|()| next()));
                    Ok::<_, Error>(response(results.collect()))
                });
                let answer = stored.await?.reply();
                (answer, least_left(registry, caller, pairs).await)
            }
        };
        registry.wait_for_graph::<RealitySnapshot>().await;
        Ok(shown(left, answer))
    }
}

/// Returns the lowest number of remaining snapshots among the pairs, or `None` if the database
/// can't be read. The number is read here, because a repeated response counts no snapshots.
async fn least_left(
    registry: &Registry,
    caller: &Caller,
    pairs: BTreeSet<Pair>,
) -> Option<Remaining> {
    if pairs.is_empty() {
        return None;
    }
    let read = registry.store.read_tx(&caller.scope(), async move |db: &mut Db| {
        let now = freshness::moment(freshness::database_now(db).await?);
        Ok::<_, Error>(Pace::read(db, pairs, now, false).await?.least())
    });
    read.await.ok().flatten()
}

fn shown<M>(left: Option<Remaining>, response: Response<M>) -> Response<M> {
    AppliedLimits::new(left, None).shown_in(response)
}

/// Checks one snapshot of a batch against all rules.
fn checked(caller: &Caller, row: RealitySnapshot) -> Result<Fed, Error> {
    let mut found = Violations::default();
    row.validate(&mut found);
    snapshot_rules::fed(&row, &mut found);
    Error::unless_clean(found)?;
    fed(caller, row)
}

fn response(results: Vec<Result<RealitySnapshot, Error>>) -> FeedRealitySnapshotsResponse {
    let one = |(index, result): (usize, Result<_, _>)| match result {
        Ok(row) => FedSnapshot { reality_snapshot: Some(row), ..FedSnapshot::default() },
        Err(error) => {
            let error = ApiError::from(in_batch(index, error));
            let code = Some(error.code.word().to_owned());
            FedSnapshot { reality_snapshot: None, error: code, message: Some(error.message) }
        }
    };
    FeedRealitySnapshotsResponse { results: results.into_iter().enumerate().map(one).collect() }
}

/// Renames the fields in the violations to their paths in the batch.
fn in_batch(index: usize, error: Error) -> Error {
    let Error::Invalid(mut violations) = error else { return error };
    for violation in &mut violations {
        let field = violation.field.strip_prefix("reality_snapshot.");
        let field = field.unwrap_or(&violation.field);
        violation.field = format!("reality_snapshots[{index}].{field}");
    }
    Error::Invalid(violations)
}
