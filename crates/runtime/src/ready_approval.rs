//! Judges requests that would be held, by how people decided the same request before.
//!
//! If an approved and unused approval suffices for the request, no other approval request is
//! opened. If the tenant permits it and the request cites no approval, the request is decided and
//! recorded as if it had cited this approval. The recorder claims this approval like any cited
//! approval. Otherwise the held decision refers to the approval. The approval must be for the same
//! request and subject, and requested with the same credential.
//!
//! For a while, a declined request is denied instead of held. A request is also denied if its
//! subject has reached the limit of pending requests.

use authority_ids::ApprovalRef;

use super::{
    asked_before::AskedBefore,
    decide::Decider,
    holding::{Holding, Judged},
    recorder::InsufficientApproval,
    requester::asker,
};
use authority_api::error::{ApiError, ErrorCode};
use authority_decision::{Decision, Draft, Facts, Request, Verdict, decide, facts::OpenRequests};

impl Decider {
    /// Judges a request that would be held, using earlier answers for it.
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
        // If the verdict needs no approvals, ready approvals aren't looked up.
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
                    return Ok(Judged { ready: Some(id), insufficient: Vec::new(), ..judged });
                }
                Cited::Short(reason) => {
                    judged.insufficient.push(InsufficientApproval { id, reason });
                }
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

    /// Decides the request as if it cited the approval.
    async fn citing_ready(
        &self,
        holding: Holding<'_>,
        id: &ApprovalRef,
    ) -> Result<Cited, ApiError> {
        let Holding { caller, handle, request, gathered, at, .. } = holding;
        let draft = Draft { approval_id: Some(id.clone()), ..request.clone().into_draft() };
        let request = Request::new(draft).map_err(|_| ApiError::plain(ErrorCode::Internal))?;
        let mut seen = self.facts.load_counters_and_approval(&request, gathered, at).await?;
        // The acts that count are determined here, because the request without a cited approval did
        // not need them.
        let counting = self.facts.counting(Some(caller), handle, &request, gathered);
        let verdict = self.facts.decide_on(&request, &mut seen, counting.as_ref(), at);
        let Some(needed) = &verdict.approvals_needed else {
            // If the request would still be held, approvals can't resolve the hold.
            let met = verdict.decision != Decision::Deny;
            let denied = || format!("the request would now be denied: {}", verdict.reason_code);
            return Ok(if met {
                Cited::Meets(Box::new((request, seen.facts, verdict)))
            } else {
                Cited::Short(denied())
            });
        };
        let counted = seen.facts.approval.as_ref().map_or(0, |approval| approval.given.len());
        let mut reason = format!(
            "it does not suffice any more: {} requires {} people",
            verdict.reason_code, needed.count
        );
        for role in &needed.roles {
            reason.push_str(", including ");
            reason.push_str(role);
        }
        Ok(Cited::Short(format!("{reason}, and {counted} of its approvals count")))
    }
}

/// Whether an approval suffices for a held request.
enum Cited {
    /// The request that cites it, and the resulting decision.
    Meets(Box<(Request, Facts, Verdict)>),
    /// The reason why it doesn't suffice.
    Short(String),
}
