//! Replays a sealed decision and signs the result.

use std::{ops::ControlFlow, sync::Arc};

use authority_ids::{DecisionId, EvidenceId, RecordId};
use authority_model::{
    proto::evidence::{EvidenceDocument, MintReplayProofRequest},
    schema::{approvals, policy_versions, replay_proofs},
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde_json::{Value, json};

use super::{
    Error, Transparency,
    archived::Pack,
    replay_request::{decision, mode},
};
use authority_api::{
    idempotency::{self, Done, IdempotencyKey},
    identity::Caller,
};
use authority_crypto::sha256;
use authority_decision::{
    CompiledPolicy, Facts, PolicyReference, SEMANTICS, Verdict, levels::ApprovalState,
};
use authority_evidence::{
    Sealed, digest_text,
    replay::{Difference, Mode, Outcome, PinnedPolicy, Replay, differences, proof},
    salted_digest,
    verify::{Trust, key_set, verify},
};
use authority_graph::{self as graph, GivenActs, Graph, time_zones};
use authority_keys::Purpose;
use authority_ledger::{spending::CounterQuery, stored_decisions::Stored};
use authority_store::{Db, RunQueryDsl, new_id};

/// The result of a replay, to be signed.
struct ReplayResult {
    outcome: Outcome,
    recomputed: Option<String>,
    diff: Vec<Difference>,
    detail: Option<String>,
    policy: Option<PinnedPolicy>,
}

/// The data on which a replay decides, or the reason why it cannot decide.
enum Ground {
    /// The stored data differs from the sealed data in this field.
    Altered(String),
    /// The context or the facts were erased.
    Erased,
    Sealed,
    /// Facts of current authority, and the id of the approval that the decision used.
    Present(Box<Facts>, Option<String>),
    /// The sealed facts with the text of this policy version.
    Pinned(PinnedPolicy, String),
}

impl Transparency {
    pub(super) async fn replay(
        &self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        asked: MintReplayProofRequest,
    ) -> Result<Done<EvidenceDocument>, Error> {
        let (mode, decision_id) = (mode(&asked)?, decision(&asked)?);
        let (stored, pack) = self.basis(caller, &decision_id).await?;
        let scope = caller.scope();
        let (this, id) = (self.clone(), decision_id.clone());
        let now = self.0.clock.now();
        let read = self.0.store.read_tx(&scope, async move |db| {
            let key = key.map(|key| key.within(Some(&stored.tenant_id)));
            if let Some(key) = &key
                && let Some(first) = key.find(db, now).await?
            {
                return Ok(ControlFlow::Break(first.read()?));
            }
            let ground = match (mode, this.altered(pack, &stored)?) {
                (_, Some(why)) => Ground::Altered(why),
                (_, None) if stored.sealed.is_erased() => Ground::Erased,
                (Mode::HistoricalStateSnapshot, None) => Ground::Sealed,
                (Mode::CurrentState, None) => present(db, &this.0.graph, &stored, &id, now).await?,
                (Mode::PolicyPin, None) => pinned_text(db, &stored, &asked).await?,
            };
            Ok::<_, Error>(ControlFlow::Continue((stored, ground, key)))
        });
        let (stored, ground, key) = match read.await? {
            ControlFlow::Break(first) => return Ok(first),
            ControlFlow::Continue(read) => read,
        };
        let (tenant_id, id) = (stored.tenant_id.clone(), decision_id.clone());
        // Compiling and deciding take a while. They run outside a transaction, which would keep a
        // connection busy.
        let deciding = self.0.pool.run(tenant_id.as_str(), move |_| {
            let found = match ground {
                Ground::Altered(why) => Ok(altered_found(&why)),
                Ground::Erased => Ok(indeterminate(ERASED.to_owned())),
                Ground::Sealed => snapshot(&id, &stored),
                Ground::Present(facts, used) => current(&stored, *facts, used.as_deref(), now),
                Ground::Pinned(policy, text) => pinned(&stored, policy, &text),
            };
            found.map(|found| (stored, found))
        });
        let (stored, found) = deciding.await??;
        let this = self.clone();
        let keep = async move |db: &mut Db| {
            let document = this.keep(db, &stored, &decision_id, mode, &found, now).await?;
            Ok::<_, Error>(EvidenceDocument { document })
        };
        idempotency::execute(&self.0.store, &scope, now, key, keep).await
    }

    /// Returns the altered part of a sealed decision, if any.
    ///
    /// Checks the pack with its signature and its place in the log, compares the stored record with
    /// the pack's, and compares the context and the facts with their digests in the record.
    fn altered(&self, pack: Pack, stored: &Stored) -> Result<Option<String>, Error> {
        let pack = match pack {
            Ok(pack) => pack,
            Err(altered) => return Ok(Some(altered.part.to_owned())),
        };
        let keys = key_set(self.0.keys.jwks().as_bytes());
        let trust = Trust { keys: keys.ok(), log_key: None };
        if let Err(why) = verify(pack.as_bytes(), &trust) {
            return Ok(Some(format!("pack: {why}")));
        }
        let pack: Value = serde_json::from_str(&pack)?;
        if serde_json_canonicalizer::to_vec(&pack["record"])? != stored.sealed.record {
            return Ok(Some("record".to_owned()));
        }
        let Sealed { context, facts, salts, .. } = &stored.sealed;
        let record = &pack["record"];
        let holds = |named: &Value, salt, content: &[u8]| {
            *named == digest_text(&salted_digest(salt, content)).as_str()
        };
        // Erased parts cannot be compared.
        if !context.is_empty()
            && !holds(&record["request"]["context_digest"], &salts.context, context)
        {
            return Ok(Some("request.context_digest".to_owned()));
        }
        if !facts.is_empty() && !holds(&record["facts_digest"], &salts.facts, facts) {
            return Ok(Some("facts_digest".to_owned()));
        }
        Ok(None)
    }

    async fn keep(
        &self,
        db: &mut Db,
        stored: &Stored,
        decision_id: &DecisionId,
        mode: Mode,
        found: &ReplayResult,
        now: DateTime<Utc>,
    ) -> Result<String, Error> {
        let (id, evidence_id) = (RecordId::new("replay", new_id()), EvidenceId::of(decision_id));
        let replay = Replay {
            id: &id,
            decision_id,
            evidence_id: &evidence_id,
            mode,
            semantics: SEMANTICS,
            policy: found.policy.clone(),
            outcome: found.outcome,
            recomputed_decision_id: found.recomputed.as_deref(),
            diff: &found.diff,
            detail: found.detail.as_deref(),
            replayed_at: now,
            issuer: &self.0.public_url,
        };
        let text = proof(&replay, &self.0.keys.signer(Purpose::Replay))?;
        diesel::insert_into(replay_proofs::table)
            .values((
                replay_proofs::id.eq(id.as_str()),
                replay_proofs::tenant_id.eq(stored.tenant_id.as_str()),
                replay_proofs::decision_id.eq(decision_id.as_str()),
                replay_proofs::mode.eq(json!(mode).as_str().unwrap_or_default()),
                replay_proofs::result.eq(found.outcome.word()),
                replay_proofs::body.eq(text.as_bytes()),
                replay_proofs::created_at.eq(now),
            ))
            .execute(db)
            .await?;
        Ok(text)
    }
}

/// The detail of the result if a part was erased: neither a match nor a mismatch can be determined.
const ERASED: &str = "the decision's context or facts were erased";

/// Returns the result for altered data. Deciding again on altered data would be meaningless.
fn altered_found(member: &str) -> ReplayResult {
    let one = |text: &str| Value::from(text);
    let diff = vec![Difference {
        member: member.to_owned(),
        recomputed: one("of what is stored now"),
        sealed: one("of what was sealed"),
    }];
    ReplayResult {
        outcome: Outcome::Mismatch,
        recomputed: None,
        diff,
        detail: Some("the stored decision was altered after it was sealed".to_owned()),
        policy: None,
    }
}

/// Decides again on the sealed request and facts, and compares the record byte for byte.
fn snapshot(decision_id: &DecisionId, stored: &Stored) -> Result<ReplayResult, Error> {
    let again = match stored.sealed.decide_again() {
        Ok(again) => again,
        Err(why) => return Ok(indeterminate(why.to_string())),
    };
    let sealed: Value = serde_json::from_slice(&stored.sealed.record)?;
    let recomputed: Value = serde_json::from_slice(&again.written.record)?;
    let mut diff = differences(&sealed, &recomputed);
    let same =
        again.written.record == stored.sealed.record && again.written.decision_id == *decision_id;
    if !same && diff.is_empty() {
        // The records are equal as JSON but differ in bytes. Because the bytes are signed, this is
        // a mismatch.
        diff = differences(
            &json!({"decision_id": decision_id}),
            &json!({"decision_id": again.written.decision_id}),
        );
    }
    Ok(ReplayResult {
        outcome: if same { Outcome::Match } else { Outcome::Mismatch },
        recomputed: Some(again.written.decision_id.into()),
        diff,
        detail: None,
        policy: None,
    })
}

/// Reads the facts of current authority for the sealed request.
async fn present(
    db: &mut Db,
    graph: &Graph,
    stored: &Stored,
    decision_id: &DecisionId,
    now: DateTime<Utc>,
) -> Result<Ground, Error> {
    let request = stored.sealed.request()?;
    let mut facts = Facts::new(Arc::new(graph.present(db, &request).await?));
    time_zones::complete(&request.action, &mut facts, now);
    let mut used = None;
    if let Some(wanted) = CounterQuery::of(&request, &facts.gathered, now)? {
        let (spent, cited) = wanted.read(db).await?;
        facts.spent = spent;
        if let Some(cited) = cited {
            let requesters = graph.persons(&cited.requested_by, &cited.asker_emails);
            let given = GivenActs { acts: &cited.acts, requesters };
            facts.approval = Some(cited.approval);
            let handle = graph.tenant(request.tenant())?;
            graph::decide_on(handle.as_ref(), &request, &mut facts, &given, now);
        }
        used = approvals::table
            .filter(approvals::used_by.eq(decision_id.as_str()))
            .select(approvals::id)
            .first(db)
            .await
            .optional()?;
    }
    Ok(Ground::Present(Box::new(facts), used))
}

/// Decides the sealed request on current authority.
fn current(
    stored: &Stored,
    mut facts: Facts,
    used: Option<&str>,
    now: DateTime<Utc>,
) -> Result<ReplayResult, Error> {
    let request = stored.sealed.request()?;
    unspend(stored, used, &mut facts);
    compared(stored, &authority_decision::decide(&request, &facts, now), None)
}

/// Undoes the decision's own use of counters and of its approval. The facts are then as if the
/// decision had not been made yet.
fn unspend(stored: &Stored, used: Option<&str>, facts: &mut Facts) {
    if let Some(approval) = facts.approval.as_mut().filter(|one| Some(one.id.as_str()) == used) {
        approval.state = ApprovalState::Approved;
    }
    if facts.spent.0.is_empty() {
        return;
    }
    if let Ok(again) = stored.sealed.decide_again() {
        for claim in again.verdict.claims.counters {
            if let Some(used) = facts.spent.0.get_mut(&claim.key) {
                *used = used.saturating_sub(claim.add).max(0);
            }
        }
    }
}

/// Reads the text of the requested version of a policy.
async fn pinned_text(
    db: &mut Db,
    stored: &Stored,
    asked: &MintReplayProofRequest,
) -> Result<Ground, Error> {
    let id = asked.policy_id.clone().unwrap_or_default();
    let version = asked.policy_version.unwrap_or_default();
    let text: Option<String> = policy_versions::table
        .find((&id, version))
        .filter(policy_versions::tenant_id.eq(stored.tenant_id.as_str()))
        .select(policy_versions::cedar)
        .first(db)
        .await
        .optional()?;
    let text = text
        .ok_or_else(|| Error::Field("policy_version", format!("{version} of `{id}` is unknown")))?;
    let sha256 = format!("sha256:{}", hex::encode(sha256(text.as_bytes())));
    Ok(Ground::Pinned(PinnedPolicy { id, version, sha256 }, text))
}

/// Decides on the sealed facts with a given version of a policy.
fn pinned(stored: &Stored, policy: PinnedPolicy, text: &str) -> Result<ReplayResult, Error> {
    let facts = match stored.sealed.facts() {
        Ok(facts) => facts,
        Err(why) => return Ok(indeterminate(why.to_string())),
    };
    let id = &policy.id;
    let mut gathered = (*facts.gathered).clone();
    let place = gathered.policies.iter_mut().find(|policy| policy.reference.id == **id);
    let Some(place) = place else {
        let why = format!("the sealed facts were read without `{id}`: it could not apply then");
        return Ok(ReplayResult { policy: Some(policy), ..indeterminate(why) });
    };
    let sha256 = policy.sha256.trim_start_matches("sha256:").to_owned();
    let version = policy.version.into();
    let reference = PolicyReference { sha256, version, ..place.reference.clone() };
    match CompiledPolicy::compile(reference, text) {
        Ok(compiled) => *place = Arc::new(compiled),
        Err(why) => {
            return Ok(ReplayResult { policy: Some(policy), ..indeterminate(why.to_string()) });
        }
    }
    let mut facts = Facts { gathered: Arc::new(gathered), ..facts };
    // The pinned text may read the local time even if the sealed text did not.
    let (request, head) = (stored.sealed.request()?, stored.sealed.head()?);
    time_zones::complete(&request.action, &mut facts, head.evaluated_at);
    match stored.sealed.decide_with(facts) {
        Ok(again) => compared(stored, &again.verdict, Some(policy)),
        Err(why) => Ok(ReplayResult { policy: Some(policy), ..indeterminate(why.to_string()) }),
    }
}

fn indeterminate(detail: String) -> ReplayResult {
    ReplayResult {
        outcome: Outcome::Indeterminate,
        recomputed: None,
        diff: Vec::new(),
        detail: Some(detail),
        policy: None,
    }
}

/// Compares the effects of the sealed and the recomputed verdict. Authority and times are ignored.
fn compared(
    stored: &Stored,
    verdict: &Verdict,
    policy: Option<PinnedPolicy>,
) -> Result<ReplayResult, Error> {
    let record: Value = serde_json::from_slice(&stored.sealed.record)?;
    let sealed = &record["verdict"];
    let recomputed = json!({
        "approvals_needed": verdict.approvals_needed,
        "decision": verdict.decision,
        "obligations": verdict.obligations,
        "reason_code": verdict.reason_code,
        "stop_conditions": verdict.stop_conditions,
    });
    let members = ["approvals_needed", "decision", "obligations", "reason_code", "stop_conditions"];
    let then: serde_json::Map<String, Value> =
        members.iter().map(|member| ((*member).to_owned(), sealed[*member].clone())).collect();
    let diff = differences(&json!({"verdict": then}), &json!({"verdict": recomputed}));
    let outcome = if diff.is_empty() { Outcome::Match } else { Outcome::Mismatch };
    Ok(ReplayResult { outcome, recomputed: None, diff, detail: None, policy })
}
