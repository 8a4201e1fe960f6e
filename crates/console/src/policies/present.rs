//! A policy as it is now: reads it, changes it, and lists its versions.

use authority_ids::EntityRef;
use authority_model::proto::registry::{
    GetPolicyRequest, ListPolicyVersionsRequest, Policy, PolicyVersion,
};
use prost::Message;

use crate::kit::{calls::Answer, prelude::*};

/// The address of the page with a policy's text.
pub(crate) fn address(id: &str) -> String {
    format!("/console/policies/{}", encoded(id))
}

/// A policy as it is now.
pub(super) struct Present {
    pub(super) policy: Policy,
    /// The version of the policy's record, for `If-Match`.
    pub(super) tag: String,
}

impl Present {
    pub(super) async fn read(view: &View, id: &EntityRef) -> Result<Self, Status> {
        let request = GetPolicyRequest { id: id.into() };
        let answer = view.calls.send(rpc::GET_POLICY, &request, &[]).await?;
        let tag = answer.tag().unwrap_or_default().to_owned();
        Ok(Self { tag, policy: decoded(answer)? })
    }

    /// The text in force, if there is one.
    pub(super) fn in_force(&self) -> Option<&str> {
        let is_active = self.policy.state.as_deref() == Some("active");
        self.policy.cedar.as_deref().filter(|_| is_active)
    }

    /// The newest text, in force or not.
    pub(super) fn newest(&self) -> &str {
        let policy = &self.policy;
        policy.draft_cedar.as_deref().or(policy.cedar.as_deref()).unwrap_or_default()
    }
}

/// Changes a policy, once for each key, and only if it still has the tag `tag`.
pub(super) async fn change(
    view: &View,
    rpc: &str,
    request: &impl Message,
    (key, tag): (&str, &str),
) -> Result<Policy, Status> {
    let mut headers = vec![("if-match", tag)];
    if !key.is_empty() {
        headers.push(("idempotency-key", key));
    }
    decoded(view.calls.send(rpc, request, &headers).await?)
}

fn decoded(answer: Answer) -> Result<Policy, Status> {
    Policy::decode(answer.message).map_err(|_| Status::internal(t::policies::UNREADABLE))
}

/// Every version of the text, the newest first; none for a role that may not read them.
pub(super) async fn versions(view: &View, id: &EntityRef) -> Result<Vec<PolicyVersion>, Status> {
    if !view.may(rpc::LIST_POLICY_VERSIONS) {
        return Ok(Vec::new());
    }
    let mut request = ListPolicyVersionsRequest { id: id.into(), ..<_>::default() };
    let mut versions = Vec::new();
    loop {
        let listed = view.calls.call(&request).await?;
        versions.extend(listed.versions);
        let Some(next) = listed.next_page_token else { break };
        request.page_token = next;
    }
    versions.reverse();
    Ok(versions)
}

/// The page of a policy's targets as records.
pub(super) fn rows(view: &View, id: &str) -> Option<String> {
    let id = encoded(id);
    view.may(rpc::LIST_APPLIES_TO).then(|| format!("/console/records/applies-to?m.policy_id={id}"))
}

pub(super) fn name(policy: &Policy) -> String {
    policy.name.clone().unwrap_or_else(|| crate::kit::show::short(&policy.id).to_owned())
}
