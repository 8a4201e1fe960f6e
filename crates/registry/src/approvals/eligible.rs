//! Eligibility of approvers. A person can't approve their own request: `TenantGraph::barrier`
//! (`crates/graph/src/approvers.rs`) decides who is on the requesting side. This file adds the
//! earlier acts on the request and the tenant's `self_approval`. The authority that the check
//! reads can't change until the approver's answer has committed. The check therefore considers
//! every suspension, key rotation and further requester that committed before the answer.

use authority_ids::{DelegationRef, PrincipalRef};
use authority_model::{
    proto::approval::{Approval, ApprovalAct, Asker, Ineligibility},
    schema::{approvals, decisions},
    state::ApprovalState,
};
use chrono::{DateTime, Utc};

use super::{evaluation, fresh, handlers::Approvals};
use crate::flow::{
    ineligible::{Ineligible, IneligibleReason},
    prelude::*,
};
use authority_api::identity::{may_call, permitted_roles};
use authority_decision::{Draft, facts::Signature, verdict::AuthorityUsed};
use authority_evidence::sealed;
use authority_graph::{
    Barrier, Graph, Person, Persons, ProposedAction, TenantGraph, TenantHandle, actor,
};
use authority_ledger::spending;

pub(super) const ACTED: &str = "you have acted on this already";
/// The operation that approves a request. The same people may decline it.
pub(crate) const APPROVE: &str = "/authority.approval.v1.ApprovalService/ApproveApproval";
pub(super) const READS: &str = "your role reads requests and does not decide them";
pub(super) const UNKNOWN_TENANT: &str = "the tenant was not found";
const UNKNOWN_ASKER: &str = "an API key that made the request was not found";

/// The data that determines who is eligible.
pub(crate) struct Eligibility {
    /// The principal that would perform the action.
    pub(crate) subject: PrincipalRef,
    /// The delegations under which the principal would act.
    pub(crate) chain: Vec<DelegationRef>,
    /// The people who made the request, or `None` if they can't be determined. Includes the people
    /// behind API keys.
    pub(crate) requesters: Option<Persons>,
    /// The people who made the request with their own tokens.
    pub(crate) askers: Persons,
    /// The number of approvers needed. It is 1 for a delegation's standing approval: each later
    /// decision under the delegation determines how many approvals the action needs.
    pub(crate) needed: i32,
    /// Roles that must be among the approvers.
    pub(crate) roles: Vec<String>,
    /// The people who may use this operation, as text for the refusal.
    pub(crate) actors: &'static str,
}

/// The people who may use the operations on approvals.
pub(crate) const APPROVERS: &str = "a person of the tenant in the role approver, legal or admin, or the \
                                              installation's owner";

impl Eligibility {
    /// Returns the eligibility for a held request. The chain contains the delegations that the
    /// request was held under and the delegations that it would use now.
    pub(crate) async fn of(
        db: &mut Db,
        graph: &Graph,
        approval: &Approval,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let (record, context): (Vec<u8>, Vec<u8>) = decisions::table
            .find(&approval.decision_id)
            .select((decisions::record, decisions::context))
            .first(db)
            .await?;
        let mut chain = sealed::authority(&record)?.chain;
        // An erased request can't be evaluated on current authority and can't be approved.
        if let Ok(held) = sealed::request(&record, &context) {
            let held = Draft { approval_id: None, ..held.into_draft() };
            // Includes counters, because a used-up or reset limit can move a request to another
            // authority.
            let (asked, facts) = evaluation::at_present(db, graph, held, now).await?;
            let present: Option<AuthorityUsed> =
                authority_decision::decide(&asked, &facts, now).authority;
            chain.extend(present.into_iter().flat_map(|used| used.chain));
        }
        Ok(Self {
            subject: approval.subject.as_str().into(),
            chain,
            requesters: requesters(db, graph, approval).await?,
            askers: askers(db, graph, approval).await?,
            needed: approval.needed,
            roles: approval.roles.clone(),
            actors: APPROVERS,
        })
    }

    /// Checks that the caller may act on the request; `before` contains the earlier acts. Returns
    /// `true` for an act in their own interest that only the tenant's `self_approval` permits.
    pub(crate) fn may_act(
        &self,
        handle: Option<&TenantHandle>,
        caller: &Caller,
        before: &[ApprovalAct],
    ) -> Result<bool, Error> {
        let identity = caller.identity();
        self.permits(handle, Person { identity: &identity, email: caller.email() }, before)
    }

    /// Checks a person as [`Self::may_act`] checks a caller. The person's role is not considered.
    pub(crate) fn permits(
        &self,
        handle: Option<&TenantHandle>,
        who: Person<'_>,
        before: &[ApprovalAct],
    ) -> Result<bool, Error> {
        let handle = handle.ok_or_else(|| self.unreadable(UNKNOWN_TENANT))?;
        let proposed = self.proposed_action();
        let proposed = proposed.ok_or_else(|| self.unreadable(UNKNOWN_ASKER))?;
        let tenant = handle.read();
        if before.iter().any(|act| tenant.are_one(who, actor(act))) {
            return Err(self.refuse(IneligibleReason::ActedAlready, ACTED));
        }
        let Some(barrier) = tenant.barrier(proposed, who) else { return Ok(false) };
        let self_approves = tenant.profile.self_approval && barrier.is_own_interest();
        if self_approves && self.needed == 1 {
            return Ok(true);
        }
        let mut error = self.refuse(self.reason(&tenant, barrier, who), &barrier.to_string());
        if let Error::NotEligible(Ineligible { remedy: Some(remedy), .. }) = &mut error
            && self_approves
        {
            remedy.push_str(
                "; the tenant's `self_approval` applies only where one approval is needed",
            );
        }
        Err(error)
    }

    /// Checks that the caller isn't on the requesting side. Their earlier acts are not considered.
    ///
    /// A tenant's `self_approval` makes no difference.
    pub(super) fn not_asking(
        &self,
        handle: Option<&TenantHandle>,
        caller: &Caller,
    ) -> Result<(), Error> {
        let handle = handle.ok_or_else(|| self.unreadable(UNKNOWN_TENANT))?;
        let proposed = self.proposed_action().ok_or_else(|| self.unreadable(UNKNOWN_ASKER))?;
        let identity = caller.identity();
        let who = Person { identity: &identity, email: caller.email() };
        let tenant = handle.read();
        match tenant.barrier(proposed, who) {
            Some(barrier) => {
                Err(self.refuse(self.reason(&tenant, barrier, who), &barrier.to_string()))
            }
            None => Ok(()),
        }
    }

    /// Returns the code of a barrier.
    fn reason(&self, tenant: &TenantGraph, barrier: Barrier, who: Person<'_>) -> IneligibleReason {
        match barrier {
            Barrier::Unreadable => IneligibleReason::Unreadable,
            Barrier::Inactive => IneligibleReason::Suspended,
            Barrier::Subject => IneligibleReason::Subject,
            Barrier::Requester if tenant.is_among(who, &self.askers) => IneligibleReason::Asker,
            Barrier::Requester => IneligibleReason::KeyMaker,
            Barrier::Owner => IneligibleReason::Owner,
            Barrier::Delegator => IneligibleReason::Delegator,
        }
    }

    /// Returns the approvals that count. Leaves out the approvals of people who could not act now.
    pub(super) fn counted(
        &self,
        handle: Option<&TenantHandle>,
        acts: &[ApprovalAct],
    ) -> Vec<Signature> {
        let (Some(handle), Some(proposed)) = (handle, self.proposed_action()) else {
            return Vec::new();
        };
        let mut given = spending::approving_signatures(acts);
        handle.read().keep_counting(proposed, &mut given, acts);
        given
    }

    /// Whether the person of this act would still be eligible now, without `self_approval`.
    pub(crate) fn stands(&self, handle: &TenantHandle, act: &ApprovalAct) -> bool {
        let barrier = |proposed| handle.read().barrier(proposed, actor(act));
        self.proposed_action().is_some_and(|proposed| barrier(proposed).is_none())
    }

    fn proposed_action(&self) -> Option<ProposedAction<'_>> {
        let requesters = self.requesters.as_ref()?;
        Some(ProposedAction { subject: &self.subject, chain: &self.chain, requesters })
    }

    /// The error for a rule, with a remedy: the roles that could act instead, without names.
    pub(super) fn refuse(&self, reason: IneligibleReason, rule: &str) -> Error {
        let mut remedy = format!(
            "another person must act: {}; not the requester or the agent, nor anyone who created or rotated the \
             requesting API key, owns an agent in the chain or delegated in it",
            self.actors
        );
        for role in &self.roles {
            remedy.push_str("; at least one approver must have the role ");
            remedy.push_str(role);
        }
        Error::NotEligible(Ineligible { reason, rule: rule.to_owned(), remedy: Some(remedy) })
    }

    /// The error if data about the requesting side cannot be read.
    pub(super) fn unreadable(&self, rule: &str) -> Error {
        self.refuse(IneligibleReason::Unreadable, rule)
    }
}

impl Approvals {
    /// Returns why the caller could not act on a pending request now. `None` if they could, or if
    /// the request is not pending.
    pub(super) async fn not_eligible(
        &self,
        caller: &Caller,
        approval: &Approval,
    ) -> Result<Option<Ineligible>, Error> {
        if approval.known_state() != Some(ApprovalState::Pending) {
            return Ok(None);
        }
        let (graph, own, by) = (self.graph.clone(), approval.clone(), caller.clone());
        let now = self.registry.clock.now();
        let read = self.registry.store.read_tx(&caller.scope(), async move |db| {
            let eligibility = Eligibility::of(db, &graph, &own, now).await?;
            if !may_call(APPROVE, &by) {
                return Err(eligibility.refuse(IneligibleReason::Role, READS));
            }
            let handle = graph.tenant(&row_id(&own.tenant_id)?)?;
            eligibility.may_act(handle.as_ref(), &by, &own.acts)
        });
        match read.await {
            Ok(_) => Ok(None),
            Err(Error::NotEligible(why)) => Ok(Some(why)),
            Err(error) => Err(error),
        }
    }
}

impl Approvals {
    /// Returns why the caller must sign in again before they approve a request. `None` if they need
    /// not, or if the request is not pending.
    pub(super) fn authenticate_again(
        &self,
        caller: &Caller,
        approval: &Approval,
    ) -> Result<Option<String>, Error> {
        if approval.known_state() != Some(ApprovalState::Pending) {
            return Ok(None);
        }
        // If the tenant is unknown, approvals are refused. `not_eligible` reports that.
        let Some(handle) = self.graph.tenant(&row_id(&approval.tenant_id)?)? else {
            return Ok(None);
        };
        let fresh = fresh::require(&handle, caller, self.registry.clock.now());
        Ok(fresh.err().map(|error| error.to_string()))
    }
}

/// Returns the parts of a refusal as the API shows them.
pub(super) fn shown(why: Ineligible) -> Ineligibility {
    Ineligibility {
        reason: why.reason.word().to_owned(),
        permitted_roles: permitted_roles(APPROVE),
        rule: why.rule,
        remedy: why.remedy.unwrap_or_default(),
    }
}

/// Returns the people who made the request with their own tokens.
async fn askers(db: &mut Db, graph: &Graph, approval: &Approval) -> QueryResult<Persons> {
    let people = approval.requested_by.iter().filter(|asker| asker.kind == "person");
    let people: Vec<Asker> = people.cloned().collect();
    Ok(graph.persons(&people, &emails(db, approval).await?).unwrap_or_default())
}

/// Returns the people who made the request, including the people behind API keys. `None` if a
/// person can't be determined.
pub(crate) async fn requesters(
    db: &mut Db,
    graph: &Graph,
    approval: &Approval,
) -> QueryResult<Option<Persons>> {
    Ok(graph.persons(&approval.requested_by, &emails(db, approval).await?))
}

/// Returns the e-mail addresses of the people who made the request.
async fn emails(db: &mut Db, approval: &Approval) -> QueryResult<Vec<String>> {
    approvals::table.find(&approval.id).select(approvals::asker_emails).first(db).await
}
