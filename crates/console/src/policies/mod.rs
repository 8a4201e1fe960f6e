//! A policy's text: what is in force, what is drafted, what would change, and how it comes into force.
//!
//! No text comes into force here that was not run against decisions of the tenant: the page that activates it runs
//! it, and so does the form that it sends.

mod activate;
mod diff;
mod one;
mod retire;
mod trial;

use authority_model::proto::registry::{
    GetPolicyRequest, ListPolicyVersionsRequest, ListPolicyVersionsResponse, Policy, PolicyVersion,
};
use axum::{Router, routing::get};
use tonic::Status;

use crate::{Console, page::see, rpc, view::View};

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/policies", get(async || see("/console/records/policies")))
        .route("/console/policies/{id}", get(one::show).post(one::write))
        .route("/console/policies/{id}/activate", get(activate::confirm).post(activate::act))
        .route("/console/policies/{id}/retire", get(retire::confirm).post(retire::act))
}

/// Where a policy's text is worked on.
pub(crate) fn address(id: &str) -> String {
    format!("/console/policies/{}", crate::query::encoded(id))
}

async fn read(view: &View, id: &str) -> Result<Policy, Status> {
    view.calls.call(rpc::GET_POLICY, &GetPolicyRequest { id: id.to_owned() }).await
}

/// Every version of the text, the newest first; none for a role that may not read them.
async fn versions(view: &View, id: &str) -> Result<Vec<PolicyVersion>, Status> {
    if !view.may(rpc::LIST_POLICY_VERSIONS) {
        return Ok(Vec::new());
    }
    let request = ListPolicyVersionsRequest { id: id.to_owned() };
    let listed: ListPolicyVersionsResponse =
        view.calls.call(rpc::LIST_POLICY_VERSIONS, &request).await?;
    Ok(listed.versions.into_iter().rev().collect())
}

fn name(policy: &Policy) -> String {
    policy.name.clone().unwrap_or_else(|| crate::show::short(&policy.id).to_owned())
}
