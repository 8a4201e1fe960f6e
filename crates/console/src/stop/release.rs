//! Releasing a stop: the suspended authority applies again.

use authority_model::proto::registry::{LiftStopSignalRequest, ReleaseQuarantineRequest};

use super::stopped::{Stopped, is_signal};
use crate::kit::prelude::*;

#[derive(Template)]
#[template(path = "stop_release.html")]
struct Release {
    frame: Frame,
    stopped: Stopped,
    what: String,
    key: String,
}

pub(super) async fn confirm(view: View, Path(id): Path<String>) -> Response {
    view.answer(confirmation(&view, &id, None).await)
}

/// Shows the form. `problem` is the error of a sent form.
async fn confirmation(
    view: &View,
    id: &str,
    problem: Option<&'static str>,
) -> Result<Response, Status> {
    let stopped = Stopped::read(view, id).await?;
    // A stop that was already released is shown.
    if !stopped.is_active {
        return Ok(see(&format!("/console/stop/{id}")));
    }
    let names = Names::to_call(view, stopped.subject.iter().cloned().collect()).await;
    let what = stopped.what(&names);
    let frame = view.frame(t::stop::release(&what), Section::Stop);
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let release = Release {
        frame: frame.failed_if(t::stop::NOT_RELEASED, problem, Some("reason")),
        what,
        stopped,
        key: idempotency_key()?,
    };
    Ok(page(status, &release))
}

pub(super) async fn act(Path(id): Path<String>, Posted { view, form }: Posted) -> Response {
    let reason = form.text("reason").trim();
    view.answer_act(t::stop::NOT_RELEASED, acted(&view, &id, reason, form.one("key")).await)
}

async fn acted(view: &View, id: &str, reason: &str, key: Option<&str>) -> Result<Response, Status> {
    if reason.is_empty() {
        return confirmation(view, id, Some(t::stop::NEEDS_REASON)).await;
    }
    let (named, reason) = (id.to_owned(), Some(reason.to_owned()));
    if is_signal(id) {
        let request = LiftStopSignalRequest { id: named, reason };
        view.calls.call_once(&request, key).await?;
    } else {
        let request = ReleaseQuarantineRequest { id: named, reason };
        view.calls.call_once(&request, key).await?;
    }
    Ok(see(&format!("/console/stop/{id}?did=release")))
}
