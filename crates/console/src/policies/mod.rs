//! A policy's text: the active version, the draft, the effect of a change, and the activation.
//!
//! Every text that is activated here was run against decisions of the tenant: the page of the
//! activation and its form both run the text. People overwrite only texts that they have seen:
//! every form names the version of the policy on its page.

mod activate;
mod impact;
mod new;
mod observe;
mod policy;
mod present;
mod request;
mod retire;
mod scope;
mod starts;
mod trial;

use axum::routing::post;

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/policies", get(async || see("/console/records/policies")))
        .route("/console/policies/new", get(new::show).post(new::send))
        .route("/console/policies/try", get(request::show).post(request::send))
        .route("/console/policies/{id}", get(policy::show).post(policy::write))
        .route("/console/policies/{id}/activate", get(activate::confirm).post(activate::act))
        .route("/console/policies/{id}/observe", post(observe::begin))
        .route("/console/policies/{id}/unobserve", post(observe::end))
        .route("/console/policies/{id}/retire", get(retire::confirm).post(retire::act))
        .route("/console/policies/{id}/scope", get(scope::show).post(scope::try_out))
}
