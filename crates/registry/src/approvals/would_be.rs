//! What the question would come to now, were it approved.

use std::time::Duration;

use authority_model::{
    proto::{
        approval::{Approval, WouldBe},
        runtime::Decision as Word,
    },
    wire::Time,
};

use super::{super::prelude::*, Approvals, PENDING, eligible, judge, question};
use authority_core::{
    compute,
    graph::{self, GivenActs},
    spending,
};
use authority_decision::{Decision, facts::Signature};

/// After so long a reader goes without it.
const LONGEST: Duration = Duration::from_secs(1);
/// The role of those who have not acted yet, where none is asked for.
const APPROVER: &str = "approver";

impl Approvals {
    /// None where the request is over or cannot be shown, and where it cannot be judged now: it is
    /// told to who reads one, and nobody is kept from reading by the lack of it.
    pub(super) async fn would_be(
        &self,
        caller: &Caller,
        approval: &Approval,
    ) -> Result<Option<WouldBe>, Error> {
        let now = self.registry.clock.now();
        let open = ["pending", "approved"].contains(&approval.state.as_str());
        let ended = approval.expires_at.and_then(Time::moment).is_none_or(|end| end <= now);
        if !open || ended || approval.request.is_none() {
            return Ok(None);
        }
        let (graph, own) = (self.graph.clone(), approval.clone());
        let read = self.registry.store.read_tx(&caller.scope(), async move |db| {
            let asked = question::digest(db, &own.id).await?;
            let acts = spending::given(&own.acts);
            let (asked, facts) = judge::citing(db, &graph, &own, asked, acts, now).await?;
            let asked_by = eligible::asked_by(db, &graph, &own).await?;
            Ok((asked, facts, asked_by, graph.tenant(&own.tenant_id)?))
        });
        let (asked, mut facts, asked_by, handle) = match read.await {
            Err(Error::Graph(error)) => {
                tracing::info!(%error, "an approval is shown without what would come of it");
                return Ok(None);
            }
            read => read?,
        };
        // Its policies cost what their authors made them cost: not on a thread that others wait for.
        let own = approval.clone();
        let judging = self.registry.pool.run_within(&approval.tenant_id, LONGEST, move |_| {
            let said = GivenActs { acts: &own.acts, asked_by };
            let mut verdict = graph::decide_on(handle.as_ref(), &asked, &mut facts, &said, now);
            if own.state == PENDING
                && let Some(approved) = &mut facts.approval
            {
                suppose(&own, &mut approved.given);
                verdict = authority_decision::decide(&asked, &facts, now);
            }
            (verdict.decision, verdict.reason_code)
        });
        match judging.await {
            Ok((decision, reason)) => Ok(Some(WouldBe {
                decision: word(decision).into(),
                reason_code: reason.word().to_owned(),
            })),
            Err(error @ (compute::Error::Full | compute::Error::TooLong)) => {
                tracing::info!(%error, "an approval is shown without what would come of it");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Adds those who are needed besides, as if they had approved.
fn suppose(approval: &Approval, given: &mut Vec<Signature>) {
    // Whoever approved in their own interest is none of two.
    given.retain(|signature| approval.needed == 1 || !signature.own_interest);
    let is_there = |role: &str| given.iter().any(|signature| signature.role == role);
    let mut roles: Vec<&str> = approval.roles.iter().map(String::as_str).collect();
    roles.retain(|role| !is_there(role));
    let needed = usize::try_from(approval.needed).unwrap_or_default();
    let people = needed.saturating_sub(given.len()).max(roles.len());
    roles.resize(people, APPROVER);
    given.extend(roles.into_iter().enumerate().map(|(number, role)| Signature {
        by: format!("supposed|{number}"),
        role: role.to_owned(),
        own_interest: false,
    }));
}

fn word(decision: Decision) -> Word {
    match decision {
        Decision::Allow => Word::Allow,
        Decision::AllowWithConstraints => Word::AllowWithConstraints,
        Decision::RequireApproval => Word::RequireApproval,
        Decision::Deny => Word::Deny,
    }
}
