//! Stores one person's act on a request, and the request's new state.

use std::sync::Arc;

use authority_model::{
    proto::approval::Approval,
    record::{ByIdRequest, RpcRequest},
    state::ApprovalState,
    validate::Validate,
};
use chrono::{DateTime, Utc};

use super::{
    act::{ActContext, ApproverAct, Terms, make},
    eligible::Eligibility,
    evaluation::{self, Judgement},
    handlers::Approvals,
    presentation, question,
    record::{open, save},
    reviewed, show,
};
use crate::flow::{
    operations::or_not_found,
    prelude::*,
    version::{IfMatch, tagged},
};
use authority_decision::{facts::Signature, verdict::ApprovalsNeeded};
use authority_graph::{Fence, Graph};
use authority_store::row_id;

impl Approvals {
    /// Stores one person's act. The lock on the request serialises acts.
    pub(super) async fn act<Q>(
        &self,
        call: Request<Q>,
        said: ApproverAct,
        shown: Shown,
    ) -> Reply<Approval>
    where
        Q: RpcRequest + ByIdRequest + Validate,
    {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, request) = admitted(call)?;
        let (id, by) = (request.id().to_owned(), caller.clone());
        let (signer, graph) = (self.registry.keys.clone(), Arc::clone(&self.graph));
        let clock = self.registry.clock.clone();
        let acted = self.registry.idempotent(&caller, key, async move |db| {
            let mut row = or_not_found(Approval::lock(db, by.tenant(), &id).await, &id)?;
            let tenant_id = row_id(&row.tenant_id)?;
            let handle = graph.fenced(db, &tenant_id, Fence::Shared).await?;
            if_match.check(&row)?;
            // Read after the lock, because the request may expire during the wait for the lock.
            let now = clock.now();
            open(&row, now)?;
            let question = question::digest(db, &row.id).await?;
            let approves = matches!(said, ApproverAct::Approve(_));
            let digest = shown.digest.as_deref();
            question::check(db, &row.decision_id, &question, approves, digest).await?;
            presentation::check(db, &row, &question, shown.presentation.as_deref()).await?;
            let eligibility = Eligibility::of(db, &graph, &row, now).await?;
            let terms = Terms { tenant_id, about: &row.id, question };
            let context =
                ActContext { keys: &signer, handle: handle.as_ref(), eligibility: &eligibility };
            let act = make(db, &by, context, terms, &row.acts, &said, now).await?;
            if approves {
                reviewed::check(db, &graph, &row, question, &shown.reviewed, now).await?;
            }
            row.acts.push(act);
            let state = match said {
                ApproverAct::Decline(_) => {
                    row.declined_at = Some(now.into());
                    row.declined_for_seconds = shown.for_seconds;
                    ApprovalState::Declined
                }
                ApproverAct::Approve(_) => {
                    let given = eligibility.counted(handle.as_ref(), &row.acts);
                    approved(db, &graph, &mut row, question, given, now).await?
                }
            };
            row.state = state.to_string();
            Ok::<_, Error>(save(db, &row, now).await?)
        });
        // The computed fields are not part of the response stored under an idempotency key. They
        // are read again.
        let mut acted = tagged(acted.await?.reply());
        show::one(&self.registry, &caller, acted.get_mut()).await?;
        Ok(acted)
    }
}

/// The details that a person confirms, and how long their decline is valid.
#[derive(Default)]
pub(super) struct Shown {
    /// The digest of the exact request.
    pub(super) digest: Option<String>,
    /// The version of the presentation in which the person saw the request.
    pub(super) presentation: Option<String>,
    /// The reality findings that the person reviewed.
    pub(super) reviewed: Vec<String>,
    /// The maximum time for which the same request is denied after a decline, in seconds.
    pub(super) for_seconds: Option<i32>,
}

/// Returns the state after one more approval and updates the counts. If current authority requires
/// more people, the request stays pending.
async fn approved(
    db: &mut Db,
    graph: &Graph,
    row: &mut Approval,
    question: [u8; 32],
    given: Vec<Signature>,
    now: DateTime<Utc>,
) -> Result<ApprovalState, Error> {
    row.given = i32::try_from(given.len()).unwrap_or(i32::MAX);
    let needed = ApprovalsNeeded {
        count: u32::try_from(row.needed).unwrap_or(u32::MAX),
        roles: row.roles.clone(),
    };
    if !needed.is_met_by(&given) {
        return Ok(ApprovalState::Pending);
    }
    Ok(match evaluation::evaluate(db, graph, row, question, given, now).await? {
        Judgement::Ready => ApprovalState::Approved,
        Judgement::Void => ApprovalState::Void,
        Judgement::More(needed) => {
            row.needed = i32::try_from(needed.count).unwrap_or(i32::MAX);
            row.roles = needed.roles;
            ApprovalState::Pending
        }
    })
}
