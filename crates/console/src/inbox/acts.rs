//! What people answered, and who asked.

use authority_model::proto::{
    approval::{Approval, ApprovalAct, Asker},
    keys::GetApiKeyRequest,
};

use crate::kit::prelude::*;

/// The answer of one person.
pub(crate) struct Act {
    /// `You`, of the person who reads it.
    pub(crate) name: String,
    pub(crate) role: String,
    /// Who did it, and what.
    pub(crate) sentence: Safe<String>,
    pub(crate) own_interest: bool,
    pub(crate) comment: Option<String>,
    pub(crate) at: Option<Moment>,
}

/// All answers, in order.
pub(crate) fn acts(view: &View, approval: &Approval) -> Vec<Act> {
    approval.acts.iter().map(|act| answer(view, act)).collect()
}

/// The approvals of the request.
pub(crate) fn approving(view: &View, approval: &Approval) -> Vec<Act> {
    let given = approval.acts.iter().filter(|act| act.verdict == "approve");
    given.map(|act| answer(view, act)).collect()
}

/// What ended a request that waits no longer, if a person did.
pub(super) fn last(view: &View, approval: &Approval) -> Option<Act> {
    let ends =
        |act: &&ApprovalAct| matches!(act.verdict.as_str(), "decline" | "withdraw" | "reopen");
    Some(answer(view, approval.acts.last().filter(ends)?))
}

fn answer(view: &View, act: &ApprovalAct) -> Act {
    let is_own = act.by == view.caller.identity();
    let name = if is_own { t::inbox::YOU.to_owned() } else { act.name.clone() };
    Act {
        role: act.role.clone(),
        sentence: match act.verdict.as_str() {
            "approve" => t::inbox::approved(&name),
            "decline" => t::inbox::declined(&name),
            "withdraw" => t::inbox::withdrew(&name),
            "reopen" => t::inbox::reopened(&name),
            _ => t::inbox::acted(&name),
        },
        name,
        own_interest: act.self_,
        comment: act.comment.clone(),
        at: Moment::of_time(act.at, view.now),
    }
}

/// Who asked: a key by what people call it, where the role may read keys.
pub(crate) async fn askers(view: &View, approval: &Approval) -> Vec<Safe<String>> {
    some_at_once(approval.requested_by.iter().map(|who| asker(view, who))).await
}

async fn asker(view: &View, asker: &Asker) -> Safe<String> {
    if asker.kind != "api_key" {
        let name = asker.id.split_once('|').map_or(asker.id.as_str(), |(_, subject)| subject);
        return t::inbox::person(name);
    }
    if view.may(rpc::GET_API_KEY) {
        let request = GetApiKeyRequest { id: asker.id.clone() };
        let read = view.calls.call(&request).await;
        if let Ok(key) = read {
            return t::inbox::api_key_named(key.label, &asker.id);
        }
    }
    t::inbox::api_key(&asker.id)
}
