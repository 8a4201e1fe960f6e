//! Withdraws an approved request that has not been used yet.
//!
//! Anyone who may act on approvals may withdraw an approval, even if they are not eligible to
//! approve the request, because a withdrawal permits no action. An agent's claim and a withdrawal
//! lock the same row. Whichever locks the row second finds the approval used or void.

use authority_model::{
    proto::approval::{Approval, WithdrawApprovalRequest},
    schema::approvals,
    state::ApprovalState,
    wire::Time,
};

use super::{
    act::{Statement, Terms, sign},
    handlers::Approvals,
    question, show,
};
use crate::flow::{
    operations::{changeable, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};

impl Approvals {
    pub(super) async fn withdraw(&self, call: Request<WithdrawApprovalRequest>) -> Reply<Approval> {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, asked) = admitted(call)?;
        let by = caller.clone();
        let (keys, clock) = (self.registry.keys.clone(), self.registry.clock.clone());
        let withdrawn = self.registry.idempotent(&caller, key, async move |db| {
            let id = &asked.id;
            let row = or_not_found(Approval::find(db, by.tenant(), id, false).await, id)?;
            if_match.check(&row)?;
            let terms = Terms {
                tenant_id: row_id(&row.tenant_id)?,
                about: &row.id,
                question: question::digest(db, id).await?,
            };
            let now = clock.now();
            let statement = Statement::withdraws(asked.reason);
            let act = sign(db, &by, &keys, &terms, statement, now).await?;
            let acts = [row.acts.clone(), vec![act]].concat();
            // The acts of an approved request do not change. The acts that were read without a lock
            // are therefore complete.
            let open =
                approvals::table.find(id).filter(approvals::tenant_id.eq(&row.tenant_id)).filter(
                    approvals::state.eq(ApprovalState::Approved).and(approvals::expires_at.gt(now)),
                );
            let void = diesel::update(open)
                .set((
                    approvals::state.eq(ApprovalState::Void),
                    approvals::acts.eq(acts),
                    approvals::updated_at.eq(Time::from(now)),
                ))
                .returning(Approval::as_returning())
                .get_result(db)
                .await
                .optional()?;
            match void {
                Some(void) => Ok(void),
                None => Err(too_late(&or_not_found(
                    Approval::find(db, by.tenant(), id, false).await,
                    id,
                )?)),
            }
        });
        let mut withdrawn = tagged(withdrawn.await?.reply());
        show::one(&self.registry, &caller, withdrawn.get_mut()).await?;
        Ok(withdrawn)
    }
}

/// Returns why the request can't be withdrawn.
fn too_late(row: &Approval) -> Error {
    match changeable(row) {
        Err(error) => error,
        Ok(()) if row.known_state() == Some(ApprovalState::Approved) => {
            Error::NotAllowed("the approval has expired".to_owned())
        }
        Ok(()) => Error::NotAllowed(format!("the request is {}, not approved", row.state)),
    }
}
