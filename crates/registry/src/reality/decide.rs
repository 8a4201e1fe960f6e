//! A person's decision on the findings of a coupling check's run.

use std::{collections::BTreeSet, sync::Arc};

use authority_api::error::ApiError;
use authority_decision::{levels::RuntimeEffect, reality::Lifted};
use authority_evidence::{Act, SignedAct, sealed, sign_act};
use authority_graph::{Fence, Graph, Maker, Persons};
use authority_ids::{DecisionId, DelegationRef, PrincipalRef};
use authority_keys::{Keys, Purpose};
use authority_model::{
    proto::{
        approval::{Approval, ApprovalAct, Asker},
        reality::{
            CheckDecision, CheckOverride, CouplingCheck, DecideCouplingCheckRequest, OverrideAct,
        },
    },
    schema::{api_keys, approvals, decisions, reality_coupling_checks as checks},
    wire::Time,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::TimeDelta;

use super::{
    assumed::ENGINE,
    drift_moves, freshness,
    overriding::{self, Lifting},
};
use crate::approvals::{Eligibility, requesters, require_fresh};
use crate::flow::{
    digest::digest,
    operations::{Reply, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};

/// The scope with which an API key requests decisions.
const ASKING: &str = "runtime:write";
/// The people who may override.
const OWNERS: &str = "a person in the role owner of the installation";
/// How long an override is in force.
const IN_FORCE_FOR: TimeDelta = TimeDelta::hours(1);
/// How long the first of two owners waits for the second.
const JOINED_WITHIN: TimeDelta = TimeDelta::minutes(15);

pub(super) async fn decide(
    registry: &Registry,
    call: Request<DecideCouplingCheckRequest>,
) -> Reply<CouplingCheck> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    if request.decision == "override" && request.rationale.as_deref().unwrap_or_default().is_empty()
    {
        return Err(Error::field("rationale", "is required to override").into());
    }
    let (by, keys, graph) = (caller.clone(), registry.keys.clone(), Arc::clone(&registry.graph));
    let decided = registry.idempotent(&caller, key, async move |db| {
        let id = &request.id;
        let was = or_not_found(CouplingCheck::lock(db, by.tenant(), id).await, id)?;
        if_match.check(&was)?;
        if was.result_source != ENGINE {
            return Err(Error::Refused(ErrorCode::CheckNotRun));
        }
        let now = freshness::database_now(db).await?;
        let rationale = request.rationale.as_deref();
        let state = match request.decision.as_str() {
            "override" => {
                let overrider = Overrider { check: &was, by: &by, keys: &keys, graph: &graph };
                Some(overrider.add(db, rationale, now).await?)
            }
            other => {
                overriding::end(db, &was).await?;
                drift_moves::after_decision(db, &was, &by, other, rationale, now).await?;
                None
            }
        };
        let decision = CheckDecision {
            decision: request.decision.clone(),
            rationale: request.rationale.clone(),
            by: by.identity(),
            at: Some(now),
        };
        let row = checks::table.find(&was.id);
        let row = row.filter(checks::tenant_id.eq(&was.tenant_id));
        if let Some(state) = state {
            diesel::update(row).set(checks::override_.eq(state)).execute(db).await?;
        }
        let decided = diesel::update(row)
            .set((checks::decision.eq(decision), checks::updated_at.eq(clock_timestamp())))
            .returning(CouplingCheck::as_returning())
            .get_result(db)
            .await?;
        Ok::<_, Error>(decided)
    });
    let decided = decided.await?;
    registry.wait_for_graph::<CouplingCheck>().await;
    Ok(tagged(decided.reply()))
}

/// A person who overrides a check.
struct Overrider<'a> {
    check: &'a CouplingCheck,
    by: &'a Caller,
    keys: &'a Keys,
    graph: &'a Graph,
}

impl Overrider<'_> {
    /// Returns the override with this person's act added.
    async fn add(
        &self,
        db: &mut Db,
        rationale: Option<&str>,
        now: Time,
    ) -> Result<CheckOverride, Error> {
        let Lifting { lifts, effect } = overriding::lifted(db, self.check).await?;
        if lifts.is_empty() {
            let text = "the last run has no finding that an override could lift";
            return Err(Error::NotAllowed(text.to_owned()));
        }
        let needed = if effect >= RuntimeEffect::Quarantine { 2 } else { 1 };
        let mut acts = self.earlier(db, now).await?;
        let own_interest = self.permit(db, needed, &mut acts, now).await?;
        acts.push(self.sign(&lifts, rationale, own_interest, now)?);
        let is_whole = i32::try_from(acts.len()).unwrap_or(i32::MAX) >= needed;
        let (state, lasts) = if is_whole {
            (overriding::IN_FORCE, IN_FORCE_FOR)
        } else {
            (overriding::PENDING, JOINED_WITHIN)
        };
        let until = Time::from(freshness::moment(now) + lasts);
        if is_whole {
            // An expired override may still be stored.
            overriding::end(db, self.check).await?;
            let makers: Vec<Maker> =
                acts.iter().map(|act| Maker::of(&as_approval(act), own_interest)).collect();
            overriding::begin(db, self.check, &lifts, &makers, until).await?;
        }
        Ok(CheckOverride { state: state.to_owned(), until: Some(until), by: acts })
    }

    /// Whether the override is in force, that is, not ended by a newer snapshot.
    async fn is_in_force(&self, db: &mut Db) -> Result<bool, Error> {
        Ok(!overriding::in_force(db, vec![self.check.id.clone()]).await?.is_empty())
    }

    /// Returns the acts of the pending override that this act is added to, if there is one.
    async fn earlier(&self, db: &mut Db, now: Time) -> Result<Vec<OverrideAct>, Error> {
        let Some(before) = &self.check.r#override else { return Ok(Vec::new()) };
        if before.until.is_none_or(|until| until <= now) {
            return Ok(Vec::new());
        }
        match before.state.as_str() {
            overriding::IN_FORCE if self.is_in_force(db).await? => {
                let text = "an override of this check is already in force";
                Err(Error::NotAllowed(text.to_owned()))
            }
            overriding::PENDING => Ok(before.by.clone()),
            _ => Ok(Vec::new()),
        }
    }

    /// Refuses callers who may not approve the action. People can't override for themselves. If the
    /// check has no actor, this rule applies to everyone who could perform the action, and to the
    /// people behind them. Returns `true` if the override is in the caller's own interest and only
    /// the tenant's `self_approval` permits it. Removes from `before` the acts of people who could
    /// not override now.
    async fn permit(
        &self,
        db: &mut Db,
        needed: i32,
        before: &mut Vec<OverrideAct>,
        now: Time,
    ) -> Result<bool, Error> {
        let handle = self.graph.fenced(db, &row_id(&self.check.tenant_id)?, Fence::Alone).await?;
        let handle = handle.ok_or_else(|| refused("the tenant was not found"))?;
        require_fresh(&handle, self.by, freshness::moment(now))?;
        let (decided, action) = (self.decided(db).await?, &self.check.action);
        let actor = self.check.actor_entity_id.as_ref().or(self.check.subject_id.as_ref());
        let subjects: BTreeSet<PrincipalRef> = match actor {
            Some(actor) => [actor.as_str().into()].into(),
            None => handle.read().performers(action),
        };
        let requesters = self.requesters(db, actor).await?;
        // The last eligibility check is made without a subject. A second act of the same person is
        // then refused even if `subjects` is empty.
        let subjects = subjects.into_iter().map(Some).chain([None]);
        let eligibility = |subject: Option<PrincipalRef>| {
            let subject = subject.unwrap_or_default();
            let held = handle.read().delegations_for(&subject, action);
            let chain = decided.iter().cloned().chain(held).collect();
            let requesters = requesters.clone();
            let roles = Vec::new();
            let actors = OWNERS;
            let askers = Persons::default();
            Eligibility { subject, chain, requesters, askers, needed, roles, actors }
        };
        let concerned: Vec<Eligibility> = subjects.map(eligibility).collect();
        before.retain(|act| concerned.iter().all(|one| one.stands(&handle, &as_approval(act))));
        let before: Vec<ApprovalAct> = before.iter().map(as_approval).collect();
        let mut own_interest = false;
        for eligibility in concerned {
            match eligibility.may_act(Some(&handle), self.by, &before) {
                Ok(own) => own_interest |= own,
                Err(Error::NotEligible(why)) => return Err(refused(&why.to_string())),
                Err(other) => return Err(other),
            }
        }
        Ok(own_interest)
    }

    /// Returns the check's delegation. If the check names a decision, adds the delegations that the
    /// decision used.
    async fn decided(&self, db: &mut Db) -> Result<Vec<DelegationRef>, Error> {
        let named = self.check.purpose_grant_id.iter();
        let mut chain: Vec<DelegationRef> = named.map(|id| id.as_str().into()).collect();
        let id = &self.check.action_id;
        if id.starts_with(DecisionId::PREFIX) {
            let record: Vec<u8> = decisions::table
                .filter(decisions::id.eq(id).and(decisions::tenant_id.eq(&self.check.tenant_id)))
                .select(decisions::record)
                .first(db)
                .await?;
            // A denied decision used no authority.
            chain.extend(sealed::authority(&record).into_iter().flat_map(|used| used.chain));
        }
        Ok(chain)
    }

    /// Returns the people behind the API keys that may make requests for the actor. If the check
    /// names a decision with an approval request, also returns the requesters. `None` if a person
    /// can't be determined.
    async fn requesters(
        &self,
        db: &mut Db,
        actor: Option<&String>,
    ) -> Result<Option<Persons>, Error> {
        let tenant = &self.check.tenant_id;
        let mut keys = api_keys::table
            .filter(api_keys::tenant_id.eq(tenant).and(api_keys::status.eq("active")))
            .filter(api_keys::scopes.contains(vec![ASKING]))
            .filter(
                api_keys::expires_at
                    .is_null()
                    .or(api_keys::expires_at.gt(clock_timestamp().nullable())),
            )
            .select(api_keys::id)
            .into_boxed();
        if let Some(actor) = actor {
            let unbound = api_keys::principal_ids.eq(Vec::<String>::new());
            keys = keys.filter(unbound.or(api_keys::principal_ids.contains(vec![actor])));
        }
        let keys: Vec<String> = keys.load(db).await?;
        let kind = "api_key";
        let askers: Vec<Asker> =
            keys.into_iter().map(|id| Asker { kind: kind.to_owned(), id }).collect();
        let Some(mut persons) = self.graph.persons(&askers, &[]) else { return Ok(None) };
        let approval: Option<Approval> = approvals::table
            .filter(approvals::decision_id.eq(&self.check.action_id))
            .filter(approvals::tenant_id.eq(tenant))
            .select(Approval::as_select())
            .first(db)
            .await
            .optional()?;
        if let Some(approval) = approval {
            let Some(asked) = requesters(db, self.graph, &approval).await? else { return Ok(None) };
            persons.add(&asked);
        }
        Ok(Some(persons))
    }

    fn sign(
        &self,
        lifts: &[Lifted],
        rationale: Option<&str>,
        own_interest: bool,
        now: Time,
    ) -> Result<OverrideAct, Error> {
        #[derive(serde::Serialize)]
        struct Question<'a> {
            check_id: &'a str,
            evaluated_at: Option<Time>,
            action: &'a str,
            lifts: &'a [Lifted],
        }
        let question = Question {
            check_id: &self.check.id,
            evaluated_at: self.check.evaluated_at,
            action: &self.check.action,
            lifts,
        };
        let person = self.by.identity();
        let SignedAct { text, by_salt, comment_salt } = sign_act(
            &Act {
                tenant_id: &row_id(&self.check.tenant_id)?,
                about: &self.check.id,
                question: &digest(&question, &[])?,
                by: &person,
                role: "owner",
                verdict: "override",
                comment: rationale,
                own_interest,
                at: freshness::moment(now),
            },
            &self.keys.signer(Purpose::Evidence),
        )?;
        Ok(OverrideAct {
            by: person,
            name: self.by.actor.clone(),
            at: Some(now),
            record: text.record,
            kid: text.kid.to_string(),
            signature: STANDARD.encode(text.signature),
            by_salt: Some(STANDARD.encode(by_salt)),
            comment: rationale.map(str::to_owned),
            comment_salt: comment_salt.map(|salt| STANDARD.encode(salt)),
        })
    }
}

/// Returns an act with only the fields that identify the person.
fn as_approval(act: &OverrideAct) -> ApprovalAct {
    ApprovalAct { by: act.by.clone(), name: act.name.clone(), ..ApprovalAct::default() }
}

fn refused(text: &str) -> Error {
    ApiError::new(ErrorCode::OverrideNotPermitted, text).into()
}
