//! Who may act: nobody approves for themselves. It is checked on authority that does not change until the
//! act has committed, so that a suspension, a rotated key or another asker that commits earlier counts.

use authority_model::{
    proto::approval::{Approval, ApprovalAct},
    schema::{approvals, decisions},
    state::ApprovalState,
};
use chrono::{DateTime, Utc};

use super::{
    super::{ineligible::Ineligible, prelude::*},
    Approvals, fresh, judge,
};
use authority_core::{
    graph::{Graph, Person, Persons, ProposedAction, TenantHandle, actor},
    spending,
    store::row_id,
};
use authority_decision::{Draft, facts::Signature, verdict::AuthorityUsed};
use authority_evidence::sealed;

pub(super) const ACTED: &str = "you have acted on this already";
pub(super) const UNKNOWN_TENANT: &str = "the tenant was not found";
const UNKNOWN_ASKER: &str = "an API key that asked was not found";

/// What determines who may act.
pub(in super::super) struct Eligibility {
    /// The principal that would act.
    pub(in super::super) subject: String,
    /// The delegations that it would act under.
    pub(in super::super) chain: Vec<String>,
    /// The people behind the question; `None` if they cannot be determined.
    pub(in super::super) requesters: Option<Persons>,
    /// How many people are needed; at least one for a delegation's standing approval.
    pub(in super::super) needed: i32,
    /// Roles that must be among them.
    pub(in super::super) roles: Vec<String>,
    /// Who has this operation, for the refusal of somebody.
    pub(in super::super) actors: &'static str,
}

/// Who has the operations on approvals.
pub(in super::super) const APPROVERS: &str = "a person of the tenant in the role approver, legal or admin, or the \
                                              installation's owner";

impl Eligibility {
    /// For a held question: the delegations that it was held under, and those that it would use at
    /// present.
    pub(super) async fn of(
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
        // An erased question has no present authority, and nobody can approve it.
        if let Ok(held) = sealed::request(&record, &context) {
            let held = Draft { approval_id: None, ..held.into_draft() };
            // Counters too: spent or freed limits can move a question to another authority.
            let (asked, facts) = judge::at_present(db, graph, held, now).await?;
            let present: Option<AuthorityUsed> =
                authority_decision::decide(&asked, &facts, now).authority;
            chain.extend(present.into_iter().flat_map(|used| used.chain));
        }
        Ok(Self {
            subject: approval.subject.clone(),
            chain,
            requesters: requesters(db, graph, approval).await?,
            needed: approval.needed,
            roles: approval.roles.clone(),
            actors: APPROVERS,
        })
    }

    /// Checks that the caller may act after these acts. Returns whether they act in their own interest, as the
    /// tenant's `self_approval` permits.
    pub(in super::super) fn may_act(
        &self,
        handle: Option<&TenantHandle>,
        caller: &Caller,
        before: &[ApprovalAct],
    ) -> Result<bool, Error> {
        let handle = handle.ok_or_else(|| self.refuse(UNKNOWN_TENANT))?;
        let proposed = self.proposed_action();
        let proposed = proposed.ok_or_else(|| self.refuse(UNKNOWN_ASKER))?;
        let identity = caller.identity();
        let who = Person { identity: &identity, email: caller.email() };
        let tenant = handle.read();
        if before.iter().any(|act| tenant.are_one(who, actor(act))) {
            return Err(self.refuse(ACTED));
        }
        let Some(barrier) = tenant.barrier(proposed, who) else { return Ok(false) };
        let self_approves = tenant.profile.self_approval && barrier.is_own_interest();
        if self_approves && self.needed == 1 {
            return Ok(true);
        }
        let mut rule = barrier.to_string();
        if self_approves {
            rule += "; the tenant's `self_approval` is for where one approval is needed";
        }
        Err(self.refuse(&rule))
    }

    /// Checks that the caller isn't on the requesting side, even if they have acted before.
    ///
    /// A tenant's `self_approval` makes no difference.
    pub(super) fn not_asking(
        &self,
        handle: Option<&TenantHandle>,
        caller: &Caller,
    ) -> Result<(), Error> {
        let handle = handle.ok_or_else(|| self.refuse(UNKNOWN_TENANT))?;
        let proposed = self.proposed_action().ok_or_else(|| self.refuse(UNKNOWN_ASKER))?;
        let identity = caller.identity();
        let who = Person { identity: &identity, email: caller.email() };
        match handle.read().barrier(proposed, who) {
            Some(barrier) => Err(self.refuse(&barrier.to_string())),
            None => Ok(()),
        }
    }

    /// The approvals among these that count: without those of people who could not act now.
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

    /// Whether the act's author could still act now, on someone else's request.
    pub(in super::super) fn stands(&self, handle: &TenantHandle, act: &ApprovalAct) -> bool {
        let barrier = |proposed| handle.read().barrier(proposed, actor(act));
        self.proposed_action().is_some_and(|proposed| barrier(proposed).is_none())
    }

    fn proposed_action(&self) -> Option<ProposedAction<'_>> {
        let requesters = self.requesters.as_ref()?;
        Some(ProposedAction { subject: &self.subject, chain: &self.chain, requesters })
    }

    /// The error for a rule, with the roles of those who could act instead, but no names.
    pub(super) fn refuse(&self, rule: &str) -> Error {
        let mut remedy = format!(
            "it takes somebody else: {}, who neither asked nor made or rotated the API key that did, who is not the \
             agent, owns none in the chain and delegated nothing in it",
            self.actors
        );
        for role in &self.roles {
            remedy.push_str("; one of those who approve must be in the role ");
            remedy.push_str(role);
        }
        Error::NotEligible(Ineligible { rule: rule.to_owned(), remedy: Some(remedy) })
    }
}

impl Approvals {
    /// Why the caller could not act on a pending request now; `None` if they could, or it is not pending.
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
    /// Why the caller must sign in again before they approve a pending request; `None` if they need not.
    pub(super) fn authenticate_again(
        &self,
        caller: &Caller,
        approval: &Approval,
    ) -> Result<Option<String>, Error> {
        if approval.known_state() != Some(ApprovalState::Pending) {
            return Ok(None);
        }
        // Of a tenant that is not known nobody may approve anything, as `not_eligible` says.
        let Some(handle) = self.graph.tenant(&row_id(&approval.tenant_id)?)? else {
            return Ok(None);
        };
        let fresh = fresh::require(&handle, caller, self.registry.clock.now());
        Ok(fresh.err().map(|error| error.to_string()))
    }
}

/// The people who asked, and those behind the keys that asked; `None` if one of them cannot be
/// determined.
pub(in super::super) async fn requesters(
    db: &mut Db,
    graph: &Graph,
    approval: &Approval,
) -> QueryResult<Option<Persons>> {
    let row = approvals::table.find(&approval.id).select(approvals::asker_emails);
    let emails: Vec<String> = row.first(db).await?;
    Ok(graph.persons(&approval.requested_by, &emails))
}
