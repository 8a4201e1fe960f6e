//! The sealer: seals queued decisions in batches, with one transaction for each tenant.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    mem,
    sync::Arc,
};

use authority_evidence::log::note::Checkpoint;
use authority_ids::{DecisionId, DecisionRef, TenantId};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::{
    Error, Transparency,
    leaves::{Leaf, Leaves, RequestedDecision, State},
    log::{Log, Signed},
    packs,
    sealer::Sealer,
};
use authority_ledger::stored_packs::{self, Altered, StoredPack};
use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Db, Scope};

/// The most decisions in one transaction.
const MOST: usize = 2048;
/// The most requests in the queue.
const QUEUE: usize = 4096;

/// A decision to seal, and the channel for the result.
pub(super) struct SealRequest {
    pub(super) decision_id: DecisionId,
    /// The tenant that the decision must belong to; `None` for any tenant.
    pub(super) within: Option<TenantId>,
    pub(super) done: oneshot::Sender<Result<String, Refused>>,
}

/// The reason why a decision was not sealed. Every request of a batch gets a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Unknown,
    /// The database is unavailable.
    Away,
    /// The log cannot be continued.
    Broken,
    /// The decision was sealed before, and its stored data was altered since then.
    Altered,
    /// The data folder cannot be written.
    NoRoom,
}

impl From<&Error> for Refused {
    fn from(error: &Error) -> Self {
        match error {
            Error::Log(..) => Self::Broken,
            Error::NoRoom(_) => Self::NoRoom,
            Error::Altered(_) | Error::Evidence(_) => Self::Altered,
            _ => Self::Away,
        }
    }
}

impl Transparency {
    /// Returns the pack of a decision, and seals it if it is not sealed yet.
    pub(super) async fn seal(
        &self,
        decision_id: DecisionId,
        within: Option<TenantId>,
    ) -> Result<String, Error> {
        let (done, sealed) = oneshot::channel();
        let away = || Error::Store(store::Error::Unavailable("the sealer does not answer".into()));
        let asked = SealRequest { decision_id: decision_id.clone(), within, done };
        self.0.sealer.try_send(asked).map_err(|_| away())?;
        match sealed.await.unwrap_or(Err(Refused::Away)) {
            Ok(pack) => Ok(pack),
            Err(Refused::Unknown) => Err(Error::NotFound("decision", decision_id.into())),
            Err(Refused::Away) => Err(away()),
            Err(Refused::NoRoom) => Err(Error::NoRoom("see the service's log".to_owned())),
            Err(Refused::Altered) => Err(Error::Unreadable(format!("the pack of {decision_id}"))),
            Err(Refused::Broken) => Err(Error::Unreadable(format!(
                "the log of {decision_id} cannot be continued; see the service's log"
            ))),
        }
    }
}

impl Sealer {
    /// Returns the queue and its worker.
    pub(super) fn queue(sealer: Arc<Self>) -> (mpsc::Sender<SealRequest>, Worker) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        // Created outside the future: if the worker panics, the restarted worker uses the same
        // queue.
        let waiting = Arc::new(Mutex::new(waiting));
        let worker = Worker::endless("sealer", move |context| {
            let (sealer, waiting) = (Arc::clone(&sealer), Arc::clone(&waiting));
            async move {
                sealer.answer_all(&mut *waiting.lock().await, &context).await;
                Ok::<_, Error>(())
            }
        });
        (queue, worker.outlasting_calls())
    }

    /// Seals queued decisions until the worker is stopped.
    ///
    /// Requests that are still in the queue then get [`Refused::Away`].
    async fn answer_all(
        self: &Arc<Self>,
        waiting: &mut mpsc::Receiver<SealRequest>,
        context: &Context,
    ) {
        let mut asked = Vec::with_capacity(MOST);
        loop {
            tokio::select! {
                biased;
                () = context.stopped() => return,
                _ = waiting.recv_many(&mut asked, MOST) => {}
            }
            if asked.is_empty() {
                return;
            }
            let answered = context.round(async {
                Self::answer(self, mem::take(&mut asked)).await;
                Ok::<_, Infallible>(())
            });
            let _ = answered.await;
        }
    }

    async fn answer(this: &Arc<Self>, asked: Vec<SealRequest>) {
        let sealed_at = this.clock.now();
        let wanted = asked.iter().map(|one| (one.decision_id.clone(), one.within.clone()));
        let found = this.find(wanted.collect(), sealed_at).await;
        if let Err(error) = &found {
            tracing::error!(
                %error,
                decisions = asked.len(),
                "failed to read the decisions to seal"
            );
        }
        let unknown = if found.is_ok() { Refused::Unknown } else { Refused::Away };
        let mut results: HashMap<DecisionRef, SealResult> = HashMap::new();
        let mut open: BTreeMap<TenantId, Vec<Leaf>> = BTreeMap::new();
        for RequestedDecision { decision_id, tenant_id, state } in found.unwrap_or_default() {
            match state {
                State::Sealed(pack) => {
                    results.insert(decision_id.into(), SealResult { tenant_id, pack: text(pack) });
                }
                State::Open(leaf) => open.entry(tenant_id).or_default().push(leaf),
            }
        }
        for (tenant_id, list) in open {
            let ids: Vec<DecisionRef> = list.iter().map(|leaf| leaf.decision_id.clone()).collect();
            // If one tenant's log cannot be continued, the other tenants' decisions are still
            // sealed.
            let leaves = Leaves { list, sealed_at, automatic: false };
            let mut sealed = this.seal_leaves(&tenant_id, leaves).await;
            if let Err(error) = &sealed {
                tracing::error!(%error, tenant.id = %tenant_id, "failed to seal decisions");
            }
            for id in ids {
                let pack = match &mut sealed {
                    Ok(packs) => packs.remove(&id).map_or(Err(Refused::Away), text),
                    Err(error) => Err(Refused::from(&*error)),
                };
                results.insert(id, SealResult { tenant_id: tenant_id.clone(), pack });
            }
        }
        for one in asked {
            let own =
                |result: &&SealResult| one.within.as_ref().is_none_or(|id| *id == result.tenant_id);
            let result = results.get(one.decision_id.as_str()).filter(own);
            // Sending fails if the caller has disconnected. The pack is stored anyway.
            let _ = one.done.send(result.map_or(Err(unknown), |result| result.pack.clone()));
        }
    }

    /// Appends the leaves that are not in the tenant's log yet. Returns the packs of all leaves, by
    /// decision.
    pub(super) async fn seal_leaves(
        self: &Arc<Self>,
        tenant_id: &TenantId,
        leaves: Leaves,
    ) -> Result<Packs, Error> {
        let scope = Scope::service();
        let seen = self.elsewhere.last(tenant_id).await?;
        let (sealer, tenant_id) = (Arc::clone(self), tenant_id.clone());
        let done = self
            .store
            .write_tx(&scope, async move |db| sealer.transact(db, &tenant_id, &seen, leaves).await);
        let (packs, signed) = done.await?;
        self.remember(signed);
        Ok(packs)
    }

    /// Remembers the signed checkpoint, if any.
    ///
    /// Call it after the commit and before a caller gets a response. An error is only logged: the
    /// checkpoint is committed, and `follow.rs` will remember it.
    pub(super) fn remember(&self, signed: Option<Signed>) {
        let Some(signed) = signed else { return };
        signed.log_new_epoch();
        let kept = self.witness.remember(&signed.slug, &signed.checkpoint, &signed.prepared);
        if let Err(error) = kept {
            let lacks = self.room.lacks(&error);
            tracing::error!(
                error = %lacks,
                tenant.slug = signed.slug,
                "failed to store a checkpoint"
            );
        }
    }

    /// Seals leaves in this transaction. `seen` contains checkpoints that the log must continue.
    pub(super) async fn transact(
        &self,
        db: &mut Db,
        tenant_id: &TenantId,
        seen: &[Checkpoint],
        leaves: Leaves,
    ) -> Result<(Packs, Option<Signed>), Error> {
        let Leaves { mut list, sealed_at, automatic } = leaves;
        let mut log = Log::lock(db, self, tenant_id, seen, sealed_at).await?;
        // Another node may have sealed some of the decisions since they were read.
        let ids = list.iter().map(|leaf| leaf.decision_id.as_str());
        let mut sealed = stored_packs::page(db, &self.keys, Some(tenant_id), ids).await?;
        list.retain(|leaf| !sealed.contains_key(&leaf.decision_id));
        let mut new = Vec::with_capacity(list.len());
        for leaf in list {
            let index = log.add(&leaf.bytes)?;
            new.push(StoredPack {
                decision_id: leaf.decision_id,
                origin: log.origin.clone(),
                index: i64::try_from(index).unwrap_or(i64::MAX),
                leaf: leaf.bytes,
                proof: String::new(),
            });
        }
        if !log.has_grown() {
            return Ok((sealed, None));
        }
        let last = new.last().map(|pack| pack.decision_id.as_str());
        let signed = log.sign(db, sealed_at, last).await?;
        for pack in &mut new {
            pack.proof = log.proof(pack.index, &signed.note)?;
        }
        packs::insert(db, &log, &new, sealed_at, automatic).await?;
        sealed.extend(new.into_iter().map(|pack| (pack.decision_id.clone(), Ok(pack))));
        Ok((sealed, Some(signed)))
    }
}

/// Packs by the id of their decision.
pub(super) type Packs = HashMap<DecisionRef, Result<StoredPack, Altered>>;

/// The result for a decision, with the tenant that it belongs to.
struct SealResult {
    tenant_id: TenantId,
    pack: Result<String, Refused>,
}

fn text(pack: Result<StoredPack, Altered>) -> Result<String, Refused> {
    let text = pack.map_err(Error::from).and_then(|pack| Ok(pack.text()?));
    text.map_err(|error| Refused::from(&error))
}
