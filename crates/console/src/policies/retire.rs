//! The second step of retiring a policy, which is final. It shows the last decisions without the
//! policy.

use authority_ids::EntityRef;
use authority_model::{
    proto::registry::{Policy, UpdatePolicyRequest},
    wire::FieldMask,
};

use super::{
    impact::{self, Impact},
    present::{Present, address, change, name},
};
use crate::kit::{prelude::*, typed::is_named};

const RETIRED: &str = "retired";

#[derive(Template)]
#[template(path = "policy_retire.html")]
struct ConfirmPage {
    frame: Frame,
    name: String,
    address: String,
    impact: Impact,
    /// Whether the name was typed wrongly.
    is_wrong: bool,
    tag: String,
    key: String,
}

pub(super) async fn confirm(view: View, Path(id): Path<EntityRef>) -> Response {
    view.answer(confirmation(&view, &id, StatusCode::OK, None).await)
}

async fn confirmation(
    view: &View,
    id: &EntityRef,
    status: StatusCode,
    problem: Option<String>,
) -> Result<Response, Status> {
    if !view.may(rpc::UPDATE_POLICY) {
        return Err(refused(view, rpc::UPDATE_POLICY));
    }
    let Present { policy, tag } = Present::read(view, id).await?;
    let frame = view.frame(t::policies::retire_question(name(&policy)), Section::Policies);
    let is_wrong = status == StatusCode::BAD_REQUEST;
    let shown = ConfirmPage {
        frame: frame.failed_if(t::policies::NOT_RETIRED, problem, is_wrong.then_some("name")),
        is_wrong,
        name: name(&policy),
        address: address(&policy.id),
        impact: impact::without(view, &policy).await?,
        tag,
        key: idempotency_key()?,
    };
    Ok(page(status, &shown))
}

pub(super) async fn act(Path(id): Path<EntityRef>, Posted { view, form }: Posted) -> Response {
    view.answer_act(t::policies::NOT_RETIRED, retired(&view, &id, &form).await)
}

async fn retired(view: &View, id: &EntityRef, form: &Pairs) -> Result<Response, Status> {
    let Present { policy, .. } = Present::read(view, id).await?;
    if !is_named(&name(&policy), form.text("name")) {
        let problem = t::type_exactly(name(&policy));
        return confirmation(view, id, StatusCode::BAD_REQUEST, Some(problem)).await;
    }
    let request = UpdatePolicyRequest {
        id: id.into(),
        policy: Some(Policy { state: Some(RETIRED.to_owned()), ..Policy::default() }),
        update_mask: Some(FieldMask { paths: vec!["state".to_owned()] }),
    };
    let known = (form.text("key"), form.text("tag"));
    match change(view, rpc::UPDATE_POLICY, &request, known).await {
        Ok(policy) => Ok(see_done(view, &address(&policy.id), "retire")),
        Err(status) if status.code() == Code::FailedPrecondition => {
            let problem = t::policies::NOT_RETIRED_MOVED.to_owned();
            confirmation(view, id, StatusCode::CONFLICT, Some(problem)).await
        }
        Err(status) => Err(status),
    }
}
