//! Reopens a declined request: the decline ends, and the same request may be made again.
//!
//! The request stays declined, and reopening approves no request. A reopening requires the same
//! right as a decline and is signed in the same way. The requesting side can't reopen, even if the
//! tenant permits `self_approval`.

use std::sync::Arc;

use authority_model::{
    proto::approval::{Approval, ReopenApprovalRequest},
    schema::approvals,
    state::ApprovalState,
    wire::Time,
};

use super::{
    act::{Statement, Terms, sign},
    eligible::Eligibility,
    handlers::Approvals,
    question, show,
};
use crate::flow::{
    operations::or_not_found,
    prelude::*,
    version::{IfMatch, tagged},
};
use authority_graph::Fence;

impl Approvals {
    pub(super) async fn reopen(&self, call: Request<ReopenApprovalRequest>) -> Reply<Approval> {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, asked) = admitted(call)?;
        let by = caller.clone();
        let (keys, graph) = (self.registry.keys.clone(), Arc::clone(&self.graph));
        let clock = self.registry.clock.clone();
        let reopened = self.registry.idempotent(&caller, key, async move |db| {
            let id = &asked.id;
            let row = or_not_found(Approval::lock(db, by.tenant(), id).await, id)?;
            let tenant_id = row_id(&row.tenant_id)?;
            let handle = graph.fenced(db, &tenant_id, Fence::Shared).await?;
            if_match.check(&row)?;
            is_declined(&row)?;
            let now = clock.now();
            let eligibility = Eligibility::of(db, &graph, &row, now).await?;
            eligibility.not_asking(handle.as_ref(), &by)?;
            let terms =
                Terms { tenant_id, about: &row.id, question: question::digest(db, id).await? };
            let act = sign(db, &by, &keys, &terms, Statement::reopens(asked.reason), now).await?;
            let acts = [row.acts.clone(), vec![act]].concat();
            let own = approvals::table.find(id).filter(approvals::tenant_id.eq(&row.tenant_id));
            let reopened = diesel::update(own)
                .set((
                    approvals::acts.eq(acts),
                    approvals::reopened_at.eq(Some(Time::from(now))),
                    approvals::updated_at.eq(Time::from(now)),
                ))
                .returning(Approval::as_returning())
                .get_result(db)
                .await?;
            Ok::<_, Error>(reopened)
        });
        let mut reopened = tagged(reopened.await?.reply());
        show::one(&self.registry, &caller, reopened.get_mut()).await?;
        Ok(reopened)
    }
}

/// Refuses a request that isn't declined, or is already reopened.
fn is_declined(row: &Approval) -> Result<(), Error> {
    if row.known_state() != Some(ApprovalState::Declined) {
        let text = format!("the request is {}, not declined", row.state);
        return Err(Error::NotAllowed(text));
    }
    if row.reopened_at.is_some() {
        return Err(Error::NotAllowed("the decline has already been taken back".to_owned()));
    }
    Ok(())
}
