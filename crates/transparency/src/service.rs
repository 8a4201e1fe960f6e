//! Implements the evidence API.

use authority_ids::{DecisionId, TenantId};
use authority_model::proto::evidence::{
    ConsistencyProof, EvidenceDocument, GetCheckpointRequest, GetConsistencyProofRequest,
    GetEvidenceRequest, GetInclusionProofRequest, GetLogKeyRequest, LogText,
    MintReplayProofRequest, SealDecisionRequest,
};
use authority_model::{schema::decisions, service::EvidenceService};
use base64::{Engine, engine::general_purpose::STANDARD};
use diesel::prelude::*;
use tonic::{Request, Response, Status};

use super::{
    Error, Transparency,
    log::{self, LogHead},
};
use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{Done, IdempotencyKey},
    identity::{Caller, CallerKind, Role, admitted},
};
use authority_evidence::{
    bundle::bundle,
    log::{note::SignedCheckpoint, proof::InclusionProof, tree},
    pack::decision_of,
};
use authority_keys::Keys;
use authority_ledger::{
    log_nodes,
    stored_decisions::{self, Stored},
    stored_packs,
};
use authority_store::{Db, RunQueryDsl, Scope};

type Reply<T> = Result<Response<T>, Status>;

/// Whether the decision exists and, if a tenant is given, belongs to it.
async fn is_there(
    db: &mut Db,
    within: Option<&TenantId>,
    decision_id: &DecisionId,
) -> Result<bool, Error> {
    let mut query = decisions::table.filter(decisions::id.eq(decision_id.as_str())).into_boxed();
    if let Some(tenant) = within {
        query = query.filter(decisions::tenant_id.eq(tenant.as_str()));
    }
    let found: Option<String> = query.select(decisions::id).first(db).await.optional()?;
    Ok(found.is_some())
}

/// Whether the caller may see the decision's context and facts in addition to its record.
fn sees_all(caller: &Caller) -> bool {
    match &caller.kind {
        CallerKind::Owner { .. } => true,
        CallerKind::Member { role, .. } => matches!(role, Role::Admin | Role::Auditor),
        CallerKind::Key { principal_ids, .. } => principal_ids.is_empty(),
        CallerKind::Anonymous => false,
    }
}

fn document(document: String) -> Response<EvidenceDocument> {
    Response::new(EvidenceDocument { document })
}

#[tonic::async_trait]
impl EvidenceService for Transparency {
    async fn seal_decision(&self, call: Request<SealDecisionRequest>) -> Reply<EvidenceDocument> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, asked) = admitted(call)?;
        let id = DecisionId::parse(&asked.decision_id)
            .map_err(|_| ApiError::not_found("decision", &asked.decision_id))?;
        match self.seal_stored(&caller, key, id.clone()).await {
            // An archived decision is sealed already. Its pack is returned.
            Err(Error::NotFound(..)) => match self.archived_pack(&caller, &id).await {
                Ok(Some(pack)) => Ok(document(pack)),
                Ok(None) => Err(ApiError::not_found("decision", id.as_str()).into()),
                Err(error) => Err(ApiError::from(error).into()),
            },
            sealed => Ok(sealed.map_err(ApiError::from)?.reply()),
        }
    }

    async fn get_evidence(&self, call: Request<GetEvidenceRequest>) -> Reply<EvidenceDocument> {
        let (caller, asked) = admitted(call)?;
        if asked.bundle && !sees_all(&caller) {
            let text = "a bundle holds context, facts and policies: it is for the owner, the roles \
                        `admin` and `auditor`, and API keys bound to no principals";
            return Err(ApiError::new(ErrorCode::Forbidden, text).into());
        }
        Ok(document(self.evidence(&caller, asked).await.map_err(ApiError::from)?))
    }

    async fn mint_replay_proof(
        &self,
        call: Request<MintReplayProofRequest>,
    ) -> Reply<EvidenceDocument> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, asked) = admitted(call)?;
        Ok(self.replay(&caller, key, asked).await.map_err(ApiError::from)?.reply())
    }

    async fn get_checkpoint(&self, call: Request<GetCheckpointRequest>) -> Reply<LogText> {
        let (caller, asked) = admitted(call)?;
        let (_, head) =
            self.head(&caller.scope(), asked.tenant_slug).await.map_err(ApiError::from)?;
        Ok(Response::new(LogText { text: head.checkpoint }))
    }

    async fn get_log_key(&self, call: Request<GetLogKeyRequest>) -> Reply<LogText> {
        let (caller, asked) = admitted(call)?;
        let head = self.head(&caller.scope(), asked.tenant_slug).await.map_err(ApiError::from)?.1;
        let text = signer(&self.0.keys, &head.checkpoint).map_err(ApiError::from)?;
        Ok(Response::new(LogText { text }))
    }

    async fn get_inclusion_proof(&self, call: Request<GetInclusionProofRequest>) -> Reply<LogText> {
        let (caller, asked) = admitted(call)?;
        let text = self.inclusion(&caller.scope(), asked).await.map_err(ApiError::from)?;
        Ok(Response::new(LogText { text }))
    }

    async fn get_consistency_proof(
        &self,
        call: Request<GetConsistencyProofRequest>,
    ) -> Reply<ConsistencyProof> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.consistency(&caller.scope(), asked).await.map_err(ApiError::from)?))
    }
}

impl Transparency {
    /// Whether the caller may see a decision.
    ///
    /// A bound API key sees only the decisions of its own principals. Other decisions are reported
    /// to it as not found.
    pub(super) async fn is_shown(
        &self,
        caller: &Caller,
        decision_id: &DecisionId,
    ) -> Result<bool, Error> {
        let Some(own) = caller.bound_to() else { return Ok(true) };
        let (id, tenant) = (decision_id.clone(), caller.tenant().cloned());
        let read = self.0.store.read_tx(&caller.scope(), async move |db| {
            let found: Option<String> = decisions::table
                .filter(decisions::id.eq(id.as_str()))
                .filter(decisions::tenant_id.eq(tenant.as_ref().map_or("", TenantId::as_str)))
                .select(decisions::subject)
                .first(db)
                .await
                .optional()?;
            Ok::<_, Error>(found)
        });
        Ok(read.await?.is_some_and(|subject| own.iter().any(|own| *own == subject.as_str())))
    }

    async fn evidence(&self, caller: &Caller, asked: GetEvidenceRequest) -> Result<String, Error> {
        let missing = || Error::NotFound("evidence", asked.entity_id.clone());
        let id = decision_of(&asked.entity_id).ok_or_else(missing)?;
        if self.is_shown(caller, &id).await?
            && let Some(text) = self.in_tables(caller, id.clone(), asked.bundle).await?
        {
            return Ok(text);
        }
        let archived = self.archived(caller, &id).await?.ok_or_else(missing)?;
        if asked.bundle {
            return Ok(archived.entry()?.bundle.ok_or(Error::Erased)?.get().to_owned());
        }
        Ok(archived.pack()?.to_owned())
    }

    async fn seal_stored(
        &self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        id: DecisionId,
    ) -> Result<Done<EvidenceDocument>, Error> {
        if !self.is_shown(caller, &id).await? {
            return Err(Error::NotFound("decision", id.into()));
        }
        let within = caller.scope().tenant;
        match key {
            Some(key) => self.seal_once(key, id, within).await,
            None => Ok(Done::now(EvidenceDocument { document: self.seal(id, within).await? })),
        }
    }

    /// Returns the pack or the bundle of a decision that is in the tables.
    async fn in_tables(
        &self,
        caller: &Caller,
        decision_id: DecisionId,
        bundle: bool,
    ) -> Result<Option<String>, Error> {
        let scope = caller.scope();
        let (within, keys) = (scope.tenant.clone(), self.0.keys.clone());
        let read = self.0.store.read_tx(&scope, async move |db| {
            let Some(pack) = stored_packs::one(db, &keys, within.as_ref(), &decision_id).await?
            else {
                let is_there = is_there(db, within.as_ref(), &decision_id).await?;
                return if is_there {
                    Err(Error::NoEvidenceYet(decision_id.into()))
                } else {
                    Ok(None)
                };
            };
            let pack = pack?;
            let pack = pack.text()?;
            let stored =
                if bundle { Some(stored(db, within.as_ref(), &decision_id).await?) } else { None };
            Ok::<_, Error>(Some((pack, stored)))
        });
        let Some((pack, stored)) = read.await? else { return Ok(None) };
        let Some(stored) = stored else { return Ok(Some(pack)) };
        if !stored.sealed.is_whole() {
            return Err(Error::Erased);
        }
        whole(&self.0.keys, &pack, &stored).map(Some)
    }

    /// Returns the tenant and the newest head of its log, if the caller may see that tenant.
    async fn head(&self, scope: &Scope, slug: String) -> Result<(TenantId, LogHead), Error> {
        let tenant_id = TenantId::from_slug(&slug);
        let missing = Error::NotFound("log", slug);
        let Ok(tenant_id) = tenant_id else { return Err(missing) };
        if scope.tenant.as_ref().is_some_and(|within| *within != tenant_id) {
            return Err(missing);
        }
        let of = tenant_id.clone();
        let read =
            self.0.store.read_tx(scope, async move |db| Ok::<_, Error>(log::head(db, &of).await?));
        let head = read.await?.filter(|head| !head.checkpoint.is_empty());
        Ok((tenant_id, head.ok_or(missing)?))
    }

    async fn inclusion(
        &self,
        scope: &Scope,
        asked: GetInclusionProofRequest,
    ) -> Result<String, Error> {
        let (tenant_id, head) = self.head(scope, asked.tenant_slug).await?;
        let (index, size) = (u64::from(asked.index), u64::try_from(head.size).unwrap_or_default());
        if index >= size {
            return Err(Error::Field("index", format!("the log has {size} leaves, from 0")));
        }
        let wanted = tree::inclusion_nodes(index, size);
        let nodes = self.0.store.read_tx(scope, async move |db| {
            Ok::<_, Error>(log_nodes::of_log(db, &tenant_id, head.epoch, &wanted).await?)
        });
        let nodes = nodes.await?;
        let path = tree::inclusion_path(index, size, |id| nodes.get(&id).copied());
        let path = path.ok_or_else(|| Error::Unreadable("a subtree is missing".to_owned()))?;
        Ok(InclusionProof { index, path, checkpoint_note: head.checkpoint }.write())
    }

    async fn consistency(
        &self,
        scope: &Scope,
        asked: GetConsistencyProofRequest,
    ) -> Result<ConsistencyProof, Error> {
        let (tenant_id, head) = self.head(scope, asked.tenant_slug).await?;
        let size = u32::try_from(head.size).unwrap_or(u32::MAX);
        let (from, to) = (asked.from, asked.to.unwrap_or(size));
        if to > size {
            return Err(Error::Field("to", format!("the log has {size} leaves")));
        }
        if from > to {
            return Err(Error::Field("from", "is more than `to`".to_owned()));
        }
        let wanted = tree::consistency_nodes(from.into(), to.into());
        let nodes = self.0.store.read_tx(scope, async move |db| {
            Ok::<_, Error>(log_nodes::of_log(db, &tenant_id, head.epoch, &wanted).await?)
        });
        let nodes = nodes.await?;
        let lookup = |id| nodes.get(&id).copied();
        let path = tree::consistency_path(from.into(), to.into(), lookup);
        let path = path.ok_or_else(|| Error::Unreadable("a subtree is missing".to_owned()))?;
        let path = path.iter().map(|hash| STANDARD.encode(hash)).collect();
        Ok(ConsistencyProof { origin: head.origin, from, to, path })
    }
}

/// Reads a decision with all of its stored input.
pub(super) async fn stored(
    db: &mut Db,
    within: Option<&TenantId>,
    id: &DecisionId,
) -> Result<Stored, Error> {
    let found = stored_decisions::one(db, within, id).await?;
    found.ok_or_else(|| Error::NotFound("decision", id.into()))
}

/// Returns the bundle of a decision without erased parts.
pub(super) fn whole(keys: &Keys, pack: &str, stored: &Stored) -> Result<String, Error> {
    let key = keys.public(&stored.kid).map(|key| key.published());
    let key = key.ok_or_else(|| Error::Unreadable(format!("no key {}", stored.kid)))?;
    let log_key = log_key(keys, pack)?;
    Ok(bundle(pack, &stored.sealed, &key, &log_key)?)
}

/// Returns the verifier key for the checkpoint in a pack.
fn log_key(keys: &Keys, pack: &str) -> Result<String, Error> {
    let broken = |why: String| Error::Unreadable(format!("the pack's proof: {why}"));
    let pack: serde_json::Value = serde_json::from_str(pack)?;
    let proof = pack["log"]["proof"].as_str().unwrap_or_default();
    let proof = InclusionProof::parse(proof).map_err(|why| broken(why.to_string()))?;
    signer(keys, &proof.checkpoint_note)
}

/// Returns the verifier key for a checkpoint. A log key of this service must have signed it.
fn signer(keys: &Keys, note: &str) -> Result<String, Error> {
    let broken = |why: String| Error::Unreadable(format!("the checkpoint: {why}"));
    let note = SignedCheckpoint::parse(note).map_err(|why| broken(why.to_string()))?;
    let key = keys.log_key(&note);
    key.map(|key| key.vkey()).ok_or_else(|| broken("no key of this service signed it".to_owned()))
}
