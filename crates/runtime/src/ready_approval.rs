//! What would be held, after how its question was answered before.
//!
//! A question with an approved and unused approval that meets what it is held for opens no other request. If its tenant
//! permits that, and the request cites nothing, it is decided again as if it had cited that approval, and recorded so;
//! the recorder claims it like any cited one. Otherwise the hold names it. The approval must be for the same request, of
//! the same subject, requested with the same credential.
//!
//! A question that was declined is denied for a while instead, and so is one that would open more requests than its
//! subject may have.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{
    asked_before::AskedBefore, decide::Decider, facts::RecordingSettings, recorder::Stale,
    requester::asker,
};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_core::graph::TenantHandle;
use authority_decision::{
    Decision, Draft, Facts, Gathered, Request, Verdict, decide, facts::OpenRequests,
};

/// A request that would be held.
#[derive(Clone, Copy)]
pub(super) struct Holding<'a> {
    pub(super) caller: &'a Caller,
    pub(super) handle: Option<&'a TenantHandle>,
    pub(super) request: &'a Request,
    pub(super) gathered: &'a Arc<Gathered>,
    pub(super) recording: RecordingSettings,
    /// How many requests its subject has pending, if the recorder refused to open another.
    pub(super) pending: Option<u32>,
    pub(super) at: DateTime<Utc>,
}

/// A verdict with the facts that it is recorded with.
pub(super) struct Judged {
    /// The request with the ready approval that it claims, if it does.
    pub(super) citing: Option<Request>,
    pub(super) seen: Facts,
    pub(super) verdict: Verdict,
    /// The ready approval that a hold names, instead of opening a request.
    pub(super) ready: Option<String>,
    /// The approvals of the question that no longer meet what it is held for.
    pub(super) stale: Vec<Stale>,
}

impl Judged {
    pub(super) fn new(seen: Facts, verdict: Verdict) -> Self {
        Self { citing: None, seen, verdict, ready: None, stale: Vec::new() }
    }
}

impl Decider {
    /// The verdict on what would be held, by how its question was answered before.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn judge_held(
        &self,
        holding: Holding<'_>,
        seen: Facts,
        verdict: Verdict,
    ) -> Result<Judged, ApiError> {
        let Holding { caller, request, recording, at, .. } = holding;
        // Where people are asked for nothing more, no approval is ready for it.
        let asker = verdict.approvals_needed.as_ref().and_then(|_| asker(caller));
        let AskedBefore { ready, declined } =
            self.facts.asked_before(request, asker, recording, at).await?;
        let mut judged = Judged::new(seen, verdict);
        for id in ready {
            match self.citing_ready(holding, &id).await? {
                Cited::Meets(met) => {
                    let (citing, seen, verdict) = *met;
                    if recording.cites_ready && request.approval_id.is_none() {
                        return Ok(Judged { citing: Some(citing), ..Judged::new(seen, verdict) });
                    }
                    return Ok(Judged { ready: Some(id), stale: Vec::new(), ..judged });
                }
                Cited::Short(reason) => judged.stale.push(Stale { id, reason }),
            }
        }
        let limit = recording.open_requests;
        let open = holding.pending.filter(|pending| *pending >= limit);
        judged.seen.declined = declined;
        judged.seen.open_requests = open.map(|pending| OpenRequests { pending, limit });
        if judged.seen.declined.is_some() || judged.seen.open_requests.is_some() {
            judged.verdict = decide(request, &judged.seen, at);
        }
        Ok(judged)
    }

    /// The request as if it cited the approval.
    async fn citing_ready(&self, holding: Holding<'_>, id: &str) -> Result<Cited, ApiError> {
        let Holding { caller, handle, request, gathered, at, .. } = holding;
        let draft = Draft { approval_id: Some(id.to_owned()), ..request.clone().into_draft() };
        let request = Request::new(draft).map_err(|_| ApiError::plain(ErrorCode::Internal))?;
        let mut seen = self.facts.load_counters_and_approval(&request, gathered, at).await?;
        // Determined here, since a request without a cited approval did not need it.
        let counting = self.facts.counting(Some(caller), handle, &request, gathered);
        let verdict = self.facts.decide_on(&request, &mut seen, counting.as_ref(), at);
        let Some(needed) = &verdict.approvals_needed else {
            // What is held still, is held for something that no approval resolves.
            let met = verdict.decision != Decision::Deny;
            let denied = || format!("asked again, it would be denied: {}", verdict.reason_code);
            return Ok(if met {
                Cited::Meets(Box::new((request, seen.facts, verdict)))
            } else {
                Cited::Short(denied())
            });
        };
        let counted = seen.facts.approval.as_ref().map_or(0, |approval| approval.given.len());
        let mut reason = format!(
            "asked again, it no longer met {}: that takes {} people",
            verdict.reason_code, needed.count
        );
        for role in &needed.roles {
            reason.push_str(", one of them ");
            reason.push_str(role);
        }
        Ok(Cited::Short(format!("{reason}, and {counted} of its approvals count")))
    }
}

/// Whether an approval meets what the question is held for.
enum Cited {
    /// The request that cites it, and what is decided then.
    Meets(Box<(Request, Facts, Verdict)>),
    /// Why it does not.
    Short(String),
}
