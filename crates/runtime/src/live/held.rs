//! Follows a held decision. The stream reports the state of the approval, the allow that uses it,
//! and the outcome.

use std::sync::Arc;

use authority_ids::{DecisionId, TenantId};
use authority_model::{
    proto::runtime::{DecisionUpdate, WatchDecisionRequest},
    schema::decisions,
    service::Messages,
};
use diesel::prelude::*;
use tokio::time::Instant;

use super::{
    super::{
        answer,
        find::{decision_id, readable},
    },
    Watches, Watching,
    change_feed::{Change, Topic, changes},
};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
    stream::{MessageSource, stream_of},
};
use authority_decision::{Decision, levels::ApprovalState};
use authority_store::{self as store, Db, RunQueryDsl, row_id};

impl Watches {
    /// Opens a stream of changes of a decision.
    ///
    /// # Errors
    /// The caller may not read the decision.
    pub(in super::super) async fn updates(
        self: Arc<Self>,
        caller: Caller,
        asked: WatchDecisionRequest,
    ) -> Result<Messages<DecisionUpdate>, ApiError> {
        let id = decision_id(&asked.decision_id)?;
        let missing = ApiError::not_found("decision", id.as_str());
        let (scope, by) = (caller.scope(), caller.clone());
        let found = self
            .facts
            .store
            .read_tx(&scope, async move |db| Ok::<_, store::Error>(present(db, &id, &by).await?));
        let (tenant_id, update) = found.await?.ok_or(missing)?;
        self.facts.graph.fresh()?;
        let watching = Watching::new(Arc::clone(&self), caller, &tenant_id);
        let change_feed = &self.change_feed;
        let waited = Some(&update).filter(|update| !is_over(update));
        let approval = waited.and_then(|update| update.approval_id.as_deref());
        let report = waited.and_then(|update| update.used_by.as_deref());
        let (approval, report) =
            (approval.map(|id| change_feed.of(id)), report.map(|id| change_feed.of(id)));
        Ok(stream_of(Watch { watching, approval, report, update, opened: false }))
    }
}

/// Reads a decision's current state and its tenant.
async fn present(
    db: &mut Db,
    id: &DecisionId,
    caller: &Caller,
) -> QueryResult<Option<(TenantId, DecisionUpdate)>> {
    let columns = (decisions::tenant_id, decisions::decision, decisions::approval_id);
    let found: Option<(String, String, Option<String>)> =
        readable(id, caller).select(columns).first(db).await.optional()?;
    let Some((tenant_id, decision, approval_id)) = found else { return Ok(None) };
    let approval = match &approval_id {
        Some(approval_id) => one(db, approval_id).await?,
        None => None,
    };
    let (approval_state, used_by) = approval.map(|change| (change.word, change.used_by)).unzip();
    let used_by = used_by.flatten();
    let outcome = one(db, used_by.as_deref().unwrap_or(id.as_str())).await?;
    let update = DecisionUpdate {
        decision_id: id.into(),
        decision: Decision::from_word(&decision).map_or(0, answer::word),
        approval_id,
        approval_state,
        used_by,
        outcome: outcome.map(|change| change.word),
    };
    Ok(Some((row_id(&tenant_id)?, update)))
}

async fn one(db: &mut Db, id: &str) -> QueryResult<Option<Change>> {
    Ok(changes(db, &[id.to_owned()]).await?.remove(id))
}

/// Whether the state is final, which it always is unless the decision is held.
fn is_over(update: &DecisionUpdate) -> bool {
    if update.decision != answer::word(Decision::RequireApproval) {
        return true;
    }
    match update.approval_state.as_deref().and_then(ApprovalState::from_word) {
        Some(ApprovalState::Pending | ApprovalState::Approved) => false,
        Some(ApprovalState::Used) => update.outcome.is_some(),
        Some(ApprovalState::Declined | ApprovalState::Expired | ApprovalState::Void) | None => true,
    }
}

/// A stream that follows one decision.
struct Watch {
    watching: Watching,
    approval: Option<Topic>,
    /// The decision that used the approval, once it is known.
    report: Option<Topic>,
    update: DecisionUpdate,
    opened: bool,
}

impl MessageSource for Watch {
    type Message = DecisionUpdate;

    async fn next(&mut self) -> Option<Result<DecisionUpdate, ApiError>> {
        if !self.opened {
            self.opened = true;
            return Some(Ok(self.update.clone()));
        }
        if is_over(&self.update) {
            return None;
        }
        loop {
            let watches = Arc::clone(&self.watching.watches);
            let goes_on = watches.facts.graph.fresh().map_err(ApiError::from);
            if let Err(refusal) = goes_on.and_then(|()| self.watching.may_go_on()) {
                return Some(Err(refusal));
            }
            if self.apply_known() {
                return Some(Ok(self.update.clone()));
            }
            let look = Instant::now() + watches.heartbeat;
            let changed = tokio::select! {
                changed = next_change(&mut self.approval) => changed,
                changed = next_change(&mut self.report) => changed,
                moved = self.watching.moves(look) => moved,
            };
            if let Err(refusal) = changed {
                return Some(Err(refusal));
            }
        }
    }
}

impl Watch {
    /// Copies the known states to `update`. Returns whether `update` changed.
    fn apply_known(&mut self) -> bool {
        let before = self.update.clone();
        if let Some(said) = latest(&mut self.approval) {
            if said.used_by.is_some() && said.used_by != self.update.used_by {
                let change_feed = &self.watching.watches.change_feed;
                self.report = said.used_by.as_deref().map(|id| change_feed.of(id));
            }
            self.update.approval_state = Some(said.word);
            self.update.used_by = said.used_by;
        }
        if let Some(said) = latest(&mut self.report) {
            self.update.outcome = Some(said.word);
        }
        self.update != before
    }
}

fn latest(topic: &mut Option<Topic>) -> Option<Change> {
    topic.as_mut().and_then(|topic| topic.borrow_and_update().clone())
}

/// Waits for the next change. Pending forever if no topic is watched.
async fn next_change(topic: &mut Option<Topic>) -> Result<(), ApiError> {
    match topic {
        Some(topic) => topic.changed().await.map_err(|_| ApiError::plain(ErrorCode::Unavailable)),
        None => std::future::pending().await,
    }
}
