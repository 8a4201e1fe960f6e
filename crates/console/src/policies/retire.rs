//! The second step before a policy is retired, which is final: what the last decisions would have been without it.

use askama::Template;
use authority_model::{
    proto::registry::{Policy, UpdatePolicyRequest},
    wire::FieldMask,
};
use axum::{extract::Path, response::Response};
use http::StatusCode;
use tonic::Status;

use super::{
    address, name, read,
    trial::{self, Impact},
};
use crate::{
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    page::{page, see},
    rpc,
    view::View,
};

const RETIRED: &str = "retired";

#[derive(Template)]
#[template(path = "policy_retire.html")]
struct ConfirmPage {
    frame: Frame,
    name: String,
    address: String,
    impact: Impact,
    key: String,
}

pub(super) async fn confirm(view: View, Path(id): Path<String>) -> Response {
    view.answer(confirmation(&view, &id).await)
}

async fn confirmation(view: &View, id: &str) -> Result<Response, Status> {
    if !view.may(rpc::UPDATE_POLICY) {
        return Err(Status::permission_denied("your role may not do this"));
    }
    let policy = read(view, id).await?;
    let shown = ConfirmPage {
        frame: view.frame(format!("Retire “{}”?", name(&policy)), Section::Records),
        name: name(&policy),
        address: address(&policy.id),
        impact: trial::without(view, &policy).await?,
        key: idempotency_key()?,
    };
    Ok(page(StatusCode::OK, &shown))
}

pub(super) async fn act(Path(id): Path<String>, Posted { view, form }: Posted) -> Response {
    let retired = async {
        let request = UpdatePolicyRequest {
            id,
            policy: Some(Policy { state: Some(RETIRED.to_owned()), ..Policy::default() }),
            update_mask: Some(FieldMask { paths: vec!["state".to_owned()] }),
        };
        let policy: Policy =
            view.calls.call_once(rpc::UPDATE_POLICY, &request, form.one("key")).await?;
        Ok(see(&format!("{}?did=retire", address(&policy.id))))
    };
    view.answer(retired.await)
}
