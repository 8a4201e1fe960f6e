//! Reads the decisions that are to be sealed, and builds the leaves of their tenants' logs.

use std::{collections::HashSet, sync::Arc};

use authority_ids::{DecisionId, DecisionRef, TenantId};
use authority_model::schema::decisions;
use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{BigInt, Text},
};

use super::{Error, sealer::Sealer};
use authority_evidence::pack::{self, Sealing};
use authority_ledger::stored_packs::{self, Altered, StoredPack};
use authority_store::{RunQueryDsl, Scope, row_id};

/// The leaf of a decision that is not sealed yet.
pub(super) struct Leaf {
    pub(super) decision_id: DecisionRef,
    pub(super) bytes: Vec<u8>,
}

/// Leaves to seal together, with the same `sealed_at`.
pub(super) struct Leaves {
    pub(super) list: Vec<Leaf>,
    pub(super) sealed_at: DateTime<Utc>,
    /// Whether the leaves are sealed without a request, for example by `auto_seal`.
    pub(super) automatic: bool,
}

/// A requested decision and whether it is sealed.
pub(super) struct RequestedDecision {
    pub(super) decision_id: DecisionId,
    pub(super) tenant_id: TenantId,
    pub(super) state: State,
}

pub(super) enum State {
    Sealed(Result<StoredPack, Altered>),
    Open(Leaf),
}

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = decisions, check_for_backend(diesel::pg::Pg))]
struct Decision {
    id: String,
    tenant_id: String,
    record: Vec<u8>,
    kid: String,
    signature: Vec<u8>,
}

impl Decision {
    fn leaf(&self, issuer: &str, sealed_at: DateTime<Utc>) -> Result<Leaf, Error> {
        let bytes = pack::leaf(&Sealing {
            decision_id: &self.id,
            record: &self.record,
            kid: &self.kid,
            signature: &self.signature,
            sealed_at,
            issuer,
        })?;
        Ok(Leaf { decision_id: self.id.as_str().into(), bytes })
    }
}

impl Sealer {
    /// Returns the wanted decisions that exist. If `wanted` contains a tenant for a decision, the
    /// decision must belong to that tenant.
    pub(super) async fn find(
        self: &Arc<Self>,
        wanted: HashSet<(DecisionId, Option<TenantId>)>,
        sealed_at: DateTime<Utc>,
    ) -> Result<Vec<RequestedDecision>, Error> {
        let this = Arc::clone(self);
        let scope = Scope::service();
        let read = self.store.read_tx(&scope, async move |db| {
            // Many requests are for decisions that are sealed already. Leaves are built only for
            // the others.
            let ids = || wanted.iter().map(|(id, _)| id.as_str());
            let mut known = stored_packs::page(db, &this.keys, None, ids()).await?;
            let found: Vec<Decision> = decisions::table
                .filter(decisions::id.eq_any(ids()))
                .select(Decision::as_select())
                .load(db)
                .await?;
            let mut list = Vec::with_capacity(found.len());
            for decision in found {
                let (decision_id, tenant_id): (DecisionId, TenantId) =
                    (row_id(&decision.id)?, row_id(&decision.tenant_id)?);
                let (of_any, of_tenant) =
                    ((decision_id.clone(), None), (decision_id.clone(), Some(tenant_id.clone())));
                if !wanted.contains(&of_any) && !wanted.contains(&of_tenant) {
                    continue;
                }
                let state = match known.remove(decision.id.as_str()) {
                    Some(pack) => State::Sealed(pack),
                    None => State::Open(decision.leaf(&this.public_url, sealed_at)?),
                };
                list.push(RequestedDecision { decision_id, tenant_id, state });
            }
            Ok(list)
        });
        read.await
    }

    /// Returns the tenant's first `most` unsealed decisions after the id `after`.
    pub(super) async fn open(
        self: &Arc<Self>,
        tenant_id: &TenantId,
        after: String,
        most: i64,
    ) -> Result<Leaves, Error> {
        let (this, sealed_at, tenant_id) = (Arc::clone(self), self.clock.now(), tenant_id.clone());
        let scope = Scope::service();
        let read = self.store.read_tx(&scope, async move |db| {
            let open: Vec<Decision> = diesel::sql_query(
                "SELECT d.id, d.tenant_id, d.record, d.kid, d.signature FROM decisions d \
                 WHERE d.tenant_id = $1 AND d.id > $2 \
                 AND NOT EXISTS (SELECT FROM evidence_packs p \
                     WHERE p.decision_id = d.id AND p.decision_id > $2) \
                 ORDER BY d.id LIMIT $3",
            )
            .bind::<Text, _>(tenant_id.as_str())
            .bind::<Text, _>(after)
            .bind::<BigInt, _>(most)
            .load(db)
            .await?;
            let list = open.iter().map(|decision| decision.leaf(&this.public_url, sealed_at));
            let list = list.collect::<Result<_, _>>()?;
            Ok::<_, Error>(Leaves { list, sealed_at, automatic: true })
        });
        read.await
    }
}
