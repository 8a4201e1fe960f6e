//! The second step of a stop: the consequences, the reason, and a name to type.

use askama::Template;
use axum::{extract::RawQuery, response::Response};
use http::StatusCode;
use tonic::Status;

use super::{
    blast::Blast,
    in_force::in_force_on,
    list::who_may,
    order::{self, Act},
    partly::partly,
    stopped::Stopped,
    target::Target,
    underway::{self, Underway},
};
use crate::{
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    known_names::known_names,
    page::{page, see},
    query::{Pairs, encoded},
    rpc,
    unknown_action::unknown_action,
    view::View,
};

#[derive(Template)]
#[template(path = "stop_confirm.html")]
struct Confirm {
    frame: Frame,
    target: Target,
    /// `None` if it could not be read now. The stop remains possible.
    blast: Option<Blast>,
    /// The stops that already apply, as far as they could be read.
    already: Vec<Stopped>,
    /// Pending requests and current permissions, as far as they are known.
    underway: Option<Underway>,
    may_stop: bool,
    /// The warning that the action is unknown in the tenant and may be misspelt.
    warning: Option<String>,
    /// The idempotency key: a form that is sent twice takes effect only once.
    key: String,
    /// The member with an error.
    wrong: Option<&'static str>,
    /// The text in the form.
    reason: String,
}

const NOT_STOPPED: &str = "Not stopped";

impl Confirm {
    fn is_wrong(&self, member: &str) -> bool {
        self.wrong == Some(member)
    }
}

pub(super) async fn confirm(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(form(&view, &query, None).await)
}

/// The warning that the tenant's records do not name the action. `None` if the target is a tool, if
/// the action is known, or if names can't be read. The last case is not an error, because a stop is
/// urgent.
async fn misspelt(view: &View, target: &Target) -> Option<String> {
    let action = target.actions.first().filter(|_| target.tool.is_none())?;
    unknown_action(action, &known_names(view, &target.tenant_id).await?.actions)
}

async fn form(
    view: &View,
    asked: &Pairs,
    problem: Option<(&'static str, String)>,
) -> Result<Response, Status> {
    who_may(view)?;
    let target = Target::read(view, asked).await?;
    let (blast, warning, already) =
        tokio::join!(Blast::of(view, &target), misspelt(view, &target), already(view, &target));
    if let Err(error) = &blast {
        tracing::warn!(%error, "failed to read the consequences of a stop");
    }
    let blast = blast.ok();
    let underway = match &blast {
        Some(blast) => underway::of(view, &target, blast).await,
        None => None,
    };
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    // Only a sent form sets the key and the reason. If another person's link set the key, a stop
    // would repeat the response to an earlier stop.
    let sent = problem.as_ref().map(|_| asked);
    let key = sent.and_then(|form| form.one("key")).map(str::to_owned);
    let frame = view.frame(format!("Stop {}", target.what()), Section::Stop);
    let wrong = problem.as_ref().map(|(wrong, _)| *wrong);
    let confirm = Confirm {
        frame: match problem {
            Some((field, text)) => frame.failed(NOT_STOPPED, text, Some(field)),
            None => frame,
        },
        may_stop: view.may(creates(&target)),
        warning,
        already,
        target,
        blast,
        underway,
        key: key.map_or_else(idempotency_key, Ok)?,
        reason: sent.map_or("", |form| form.text("reason")).to_owned(),
        wrong,
    };
    Ok(page(status, &confirm))
}

/// The stop signals on the principal that would be stopped.
async fn already(view: &View, target: &Target) -> Vec<Stopped> {
    let Some(subject) = target.subject.as_ref().filter(|_| target.is_signal()) else {
        return Vec::new();
    };
    let found = in_force_on(view, &subject.id).await;
    let found = found.map(|found| found.stopped).unwrap_or_default();
    found.into_iter().filter(|stopped| stopped.is_signal).collect()
}

/// The operation that stops the target.
fn creates(target: &Target) -> &'static str {
    if target.is_signal() { rpc::CREATE_STOP_SIGNAL } else { rpc::CREATE_QUARANTINE }
}

pub(super) async fn act(Posted { view, form }: Posted) -> Response {
    view.answer_act(NOT_STOPPED, acted(&view, &form).await)
}

async fn acted(view: &View, asked: &Pairs) -> Result<Response, Status> {
    let reason = asked.text("reason").trim();
    if reason.is_empty() {
        let text = "Say why, for the record and for whoever releases it.".to_owned();
        return form(view, asked, Some(("reason", text))).await;
    }
    let target = Target::read(view, asked).await?;
    if !target.is_named(asked.text("name")) {
        let text =
            format!("The stop was not confirmed. Type {} exactly, to confirm.", target.name());
        return form(view, asked, Some(("name", text))).await;
    }
    let acts = order::stop(view, &target, reason, asked.text("key")).await;
    if acts.iter().any(|act| act.outcome.is_err()) {
        return partly(view, target, acts, asked);
    }
    match acts.as_slice() {
        [Act { outcome: Ok(id), .. }] => Ok(see(&format!("/console/stop/{id}?did=stop"))),
        acts => {
            let ids = acts.iter().filter_map(|act| act.outcome.as_ref().ok());
            let ids: Vec<String> = ids.map(|id| format!("stopped={}", encoded(id))).collect();
            Ok(see(&format!("/console/stop?{}", ids.join("&"))))
        }
    }
}
