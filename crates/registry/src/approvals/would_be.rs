//! The decision that would be made now if the request were approved.

use std::time::Duration;

use authority_model::{
    proto::{
        approval::{Approval, ApprovalPolicy, ApprovalReality, WouldBe},
        runtime::Decision as Word,
    },
    state::ApprovalState,
    wire::Time,
};
use chrono::{DateTime, Utc};

use super::{eligible, evaluation, handlers::Approvals, question, show};
use crate::flow::prelude::*;
use authority_api::identity::Role;
use authority_decision::{
    Decision, Verdict,
    facts::Signature,
    verdict::{HeldBy, HeldByReality},
};
use authority_graph::{self as graph, GivenActs};
use authority_ledger::spending;
use authority_process::compute;

/// The longest time to spend on the evaluation. After it, the field is null.
const LONGEST: Duration = Duration::from_secs(1);

/// The decision that would be made, and the findings that hold the request now.
pub(super) type Present = (WouldBe, Vec<ApprovalReality>);

impl Approvals {
    /// Returns the decision that would be made. `None` if the request is not open, can't be shown
    /// or can't be evaluated now. A read of one approval does not fail because of that.
    pub(super) async fn would_be(
        &self,
        caller: &Caller,
        approval: &Approval,
    ) -> Result<Option<Present>, Error> {
        let now = self.registry.clock.now();
        let open = matches!(
            approval.known_state(),
            Some(ApprovalState::Pending | ApprovalState::Approved)
        );
        let ended = approval.expires_at.and_then(Time::moment).is_none_or(|end| end <= now);
        if !open || ended || approval.request.is_none() {
            return Ok(None);
        }
        let (graph, own) = (self.graph.clone(), approval.clone());
        let read = self.registry.store.read_tx(&caller.scope(), async move |db| {
            let asked = question::digest(db, &own.id).await?;
            let acts = spending::approving_signatures(&own.acts);
            let (asked, facts) = evaluation::citing(db, &graph, &own, asked, acts, now).await?;
            let requesters = eligible::requesters(db, &graph, &own).await?;
            Ok((asked, facts, requesters, graph.tenant(&row_id(&own.tenant_id)?)?))
        });
        let (asked, mut facts, requesters, handle) = match read.await {
            Err(Error::Graph(error)) => {
                tracing::debug!(%error, "returned an approval without would_be");
                return Ok(None);
            }
            read => read?,
        };
        // Runs on the compute pool, because the cost depends on the tenant's policies.
        let own = approval.clone();
        let judging = self.registry.pool.run_within(&approval.tenant_id, LONGEST, move |_| {
            let given = GivenActs { acts: &own.acts, requesters };
            let mut verdict = graph::decide_on(handle.as_ref(), &asked, &mut facts, &given, now);
            let mut no_longer_needed = false;
            if own.known_state() == Some(ApprovalState::Pending)
                && let Some(approved) = &mut facts.approval
            {
                no_longer_needed = approved.given.is_empty() && permits(verdict.decision);
                add_missing_approvals(&own, &mut approved.given, now);
                verdict = authority_decision::decide(&asked, &facts, now);
            }
            (verdict, no_longer_needed)
        });
        match judging.await {
            Ok((verdict, no_longer_needed)) => {
                let mut would_be = WouldBe { no_longer_needed, ..would_be(&verdict) };
                show::describe(&self.registry, caller, &mut would_be.policies).await?;
                Ok(Some((would_be, verdict.held_by_reality.into_iter().map(reality).collect())))
            }
            Err(
                error @ (compute::Error::TenantFull(_)
                | compute::Error::Full
                | compute::Error::TooLong),
            ) => {
                tracing::debug!(%error, "returned an approval without would_be");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Adds signatures for the people still needed, as if they had approved.
fn add_missing_approvals(approval: &Approval, given: &mut Vec<Signature>, at: DateTime<Utc>) {
    // If two people are needed, an approval in one's own interest does not count.
    given.retain(|signature| approval.needed == 1 || !signature.own_interest);
    let is_there = |role: &str| given.iter().any(|signature| signature.role == role);
    let mut roles: Vec<&str> = approval.roles.iter().map(String::as_str).collect();
    roles.retain(|role| !is_there(role));
    let needed = usize::try_from(approval.needed).unwrap_or_default();
    let people = needed.saturating_sub(given.len()).max(roles.len());
    // People without a required role are assumed to be approvers.
    roles.resize(people, Role::Approver.as_str());
    given.extend(roles.into_iter().enumerate().map(|(number, role)| Signature {
        by: format!("supposed|{number}"),
        role: role.to_owned(),
        own_interest: false,
        at: Some(at),
    }));
}

/// The parts of the verdict that are shown to people. Policies are returned without their names.
fn would_be(verdict: &Verdict) -> WouldBe {
    let needed = verdict.approvals_needed.as_ref();
    let policy = |held_by: &HeldBy| ApprovalPolicy {
        id: held_by.policy_id.clone().into(),
        statement: held_by.statement.clone(),
        advice: held_by.advice.clone(),
        ..ApprovalPolicy::default()
    };
    WouldBe {
        decision: word(verdict.decision).into(),
        reason_code: verdict.reason_code.word().to_owned(),
        needed: needed.map(|needed| i32::try_from(needed.count).unwrap_or(i32::MAX)),
        roles: needed.map(|needed| needed.roles.clone()).unwrap_or_default(),
        policies: match needed {
            Some(_) => verdict.held_by.iter().map(policy).collect(),
            None => Vec::new(),
        },
        no_longer_needed: false,
    }
}

fn reality(held_by: HeldByReality) -> ApprovalReality {
    ApprovalReality {
        source: held_by.source.word().to_owned(),
        id: held_by.id.into(),
        drift_type: held_by.drift_type,
        effect: held_by.effect.word().to_owned(),
        since: Some(held_by.since.into()),
        name: None,
        anchors: Vec::new(),
    }
}

fn permits(decision: Decision) -> bool {
    matches!(decision, Decision::Allow | Decision::AllowWithConstraints)
}

fn word(decision: Decision) -> Word {
    match decision {
        Decision::Allow => Word::Allow,
        Decision::AllowWithConstraints => Word::AllowWithConstraints,
        Decision::RequireApproval => Word::RequireApproval,
        Decision::Deny => Word::Deny,
    }
}
