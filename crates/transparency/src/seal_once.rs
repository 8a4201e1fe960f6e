//! Seals a decision under an idempotency key.
//!
//! The decision's place in the log and the response stored for the key are committed together. The
//! sealer (`seal.rs`) works in batches and has no idempotency keys. Here each decision has its own
//! transaction. A node runs one at a time: no more than one connection waits for a log.

use std::{collections::HashSet, sync::Arc};

use authority_ids::{DecisionId, TenantId};
use authority_model::proto::evidence::EvidenceDocument;

use super::{
    Error, Transparency,
    leaves::{Leaves, RequestedDecision, State},
};
use authority_api::idempotency::{Done, IdempotencyKey};
use authority_store::Scope;

impl Transparency {
    /// Returns the pack of a decision, and seals it if it is not sealed yet.
    ///
    /// If `within` is given, the decision must belong to that tenant.
    pub(super) async fn seal_once(
        &self,
        key: IdempotencyKey,
        decision_id: DecisionId,
        within: Option<TenantId>,
    ) -> Result<Done<EvidenceDocument>, Error> {
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        let (logs, now) = (Arc::clone(&self.0.logs), self.0.clock.now());
        let wanted = HashSet::from([(decision_id.clone(), within)]);
        let found = logs.find(wanted, now).await?.pop();
        let missing = Error::NotFound("decision", decision_id.into());
        let RequestedDecision { decision_id, tenant_id, state } = found.ok_or(missing)?;
        let key = key.within(Some(&tenant_id));
        let seen = logs.elsewhere.last(&tenant_id).await?;
        let scope = Scope::service();
        let sealing = self.0.store.write_tx(&scope, async move |db| {
            // The lock is kept until the transaction ends, even if the caller disconnects.
            let _turn = turn;
            if let Some(first) = key.claim(db, now).await? {
                return Ok::<_, Error>((Done::before(&first)?, None));
            }
            let (pack, signed) = match state {
                State::Sealed(pack) => (Some(pack), None),
                State::Open(leaf) => {
                    let leaves = Leaves { list: vec![leaf], sealed_at: now, automatic: false };
                    let (mut packs, signed) = logs.transact(db, &tenant_id, &seen, leaves).await?;
                    (packs.remove(decision_id.as_str()), signed)
                }
            };
            let pack = pack.ok_or_else(|| Error::Unreadable("no pack was made".to_owned()))?;
            let answer = EvidenceDocument { document: pack?.text()? };
            key.keep(db, &answer).await?;
            Ok((Done::now(answer), signed))
        });
        let (done, signed) = sealing.await?;
        self.0.logs.remember(signed);
        Ok(done)
    }
}
