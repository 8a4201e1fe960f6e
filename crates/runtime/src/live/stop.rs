//! Streams that watch a permission. They send heartbeats while the permission is valid, and finally
//! the reason for its end.

use std::sync::Arc;

use authority_ids::{DecisionId, TenantId};
use authority_model::{
    proto::runtime::{StopConditionEvent, WatchStopConditionsRequest},
    schema::decisions,
    service::Messages,
};
use diesel::prelude::*;
use tokio::time::Instant;

use super::{
    super::{
        find::{decision_id, readable},
        permission_status::{Permitted, permission_status, permitted},
    },
    Watches, Watching,
    watched::{Over, Watched},
};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
    stream::{MessageSource, stream_of},
};
use authority_decision::{Decision, Reason, StopCondition};
use authority_evidence as evidence;
use authority_graph as graph;
use authority_store::{self as store, Db, RunQueryDsl, row_id};

/// The stop condition that is sent if the node's graph is too old. It is then unknown whether the
/// permission has ended.
const UNAVAILABLE: &str = "authority.unavailable";

/// A stored decision, and the tenant's revision in the database.
struct WatchedDecision {
    id: DecisionId,
    tenant_id: TenantId,
    decision: String,
    record: Vec<u8>,
    facts: Vec<u8>,
    revision: i64,
}

impl Watches {
    /// Opens a stream that watches a permission.
    ///
    /// # Errors
    /// The caller may not read the decision, or it is not a permission.
    pub(in super::super) async fn stop_conditions(
        self: Arc<Self>,
        caller: Caller,
        asked: WatchStopConditionsRequest,
    ) -> Result<Messages<StopConditionEvent>, ApiError> {
        let id = decision_id(&asked.decision_id)?;
        let missing = ApiError::not_found("decision", id.as_str());
        let (scope, by) = (caller.scope(), caller.clone());
        let found = self
            .facts
            .store
            .read_tx(&scope, async move |db| Ok::<_, store::Error>(find(db, &id, &by).await?));
        let found = found.await?.ok_or(missing)?;
        if !Decision::from_word(&found.decision).is_some_and(Decision::permits) {
            let message = format!(
                "the decision is `{}`: only permitted decisions can be stopped",
                found.decision
            );
            return Err(ApiError::new(ErrorCode::TransitionNotAllowed, message));
        }
        // Waits for the database's revision. The first check then includes everything committed
        // before this call.
        self.facts.graph.tenant_at(&found.tenant_id, found.revision).await?;
        // An empty context is sufficient, because the checks used here do not read the context.
        let request = evidence::sealed::request(&found.record, b"{}")?;
        let permitted = Arc::new(permitted(request, &found.record, &found.facts)?);
        let watched = self.watched.watch(found.id, Arc::clone(&permitted));
        let watching = Watching::new(Arc::clone(&self), caller, &found.tenant_id);
        Ok(stream_of(Watch { watching, permitted, watched, due: Instant::now(), ended: false }))
    }
}

async fn find(
    db: &mut Db,
    id: &DecisionId,
    caller: &Caller,
) -> QueryResult<Option<WatchedDecision>> {
    let columns = (decisions::tenant_id, decisions::decision, decisions::record, decisions::facts);
    let found: Option<(String, String, Vec<u8>, Vec<u8>)> =
        readable(id, caller).select(columns).first(db).await.optional()?;
    let Some((tenant_id, decision, record, facts)) = found else { return Ok(None) };
    let tenant_id = row_id(&tenant_id)?;
    let revision = graph::revision(db, &tenant_id).await?;
    let id = id.clone();
    Ok(Some(WatchedDecision { id, tenant_id, decision, record, facts, revision }))
}

/// A stream that watches one permission.
struct Watch {
    watching: Watching,
    /// The permitted request, and the authority that permitted it.
    permitted: Arc<Permitted>,
    /// The results of judging the permission again after changes.
    watched: Watched,
    /// The time of the next heartbeat.
    due: Instant,
    ended: bool,
}

impl MessageSource for Watch {
    type Message = StopConditionEvent;

    async fn next(&mut self) -> Option<Result<StopConditionEvent, ApiError>> {
        if self.ended {
            return None;
        }
        loop {
            let watches = &self.watching.watches;
            let Ok(handle) = watches.facts.graph.tenant(self.permitted.tenant_id()) else {
                self.ended = true;
                let revision = *self.watching.moved.borrow();
                return Some(Ok(self.event(revision, Some((UNAVAILABLE, None)))));
            };
            let now = watches.clock.now();
            let (revision, status) = permission_status(handle.as_ref(), &self.permitted, now);
            // The permission is checked before the credential, because the stream must report the
            // permission's end even if the same change ends the credential.
            if let Some(reason) = status.stopped {
                self.ended = true;
                let fired = (self.permitted.condition(reason).word(), Some(reason));
                return Some(Ok(self.event(revision, Some(fired))));
            }
            if let Some(over) = self.watched.ended() {
                self.ended = true;
                let fired = match over {
                    Over::Changed(reason) => (StopCondition::AuthorityChanged.word(), Some(reason)),
                    Over::Unknown => (UNAVAILABLE, None),
                };
                return Some(Ok(self.event(revision, Some(fired))));
            }
            self.watched.looked(handle.map_or(0, |handle| handle.read().ruled_at), now);
            if let Err(refusal) = self.watching.may_go_on() {
                return Some(Err(refusal));
            }
            let now = Instant::now();
            if self.due <= now {
                self.due = now + watches.heartbeat;
                return Some(Ok(self.event(revision, None)));
            }
            let ends = [status.until, self.watched.turn()].into_iter().flatten().min();
            let ends = ends.and_then(|until| self.watching.when(until));
            let by = ends.map_or(self.due, |ends| ends.min(self.due));
            let moved = tokio::select! {
                moved = self.watching.moves(by) => moved,
                () = self.watched.changed() => Ok(()),
            };
            if let Err(refusal) = moved {
                return Some(Err(refusal));
            }
        }
    }
}

impl Watch {
    fn event(&self, revision: i64, fired: Option<(&str, Option<Reason>)>) -> StopConditionEvent {
        let kind = if fired.is_some() { "stopped" } else { "heartbeat" };
        let (stop_condition, reason) = fired.unzip();
        StopConditionEvent {
            kind: kind.to_owned(),
            authority_revision: revision.try_into().unwrap_or(u32::MAX),
            at: Some(self.watching.watches.clock.now().into()),
            stop_condition: stop_condition.map(str::to_owned),
            reason_code: reason.flatten().map(|reason| reason.word().to_owned()),
        }
    }
}
