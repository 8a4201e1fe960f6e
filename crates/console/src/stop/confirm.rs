//! The second step of a stop: what ends, why, and a name that is typed.

use askama::Template;
use authority_model::proto::registry::{
    CreateQuarantineRequest, CreateStopSignalRequest, Quarantine, StopSignal,
};
use axum::{extract::RawQuery, response::Response};
use http::StatusCode;
use tonic::Status;

use super::{blast::Blast, target::Target};
use crate::{
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    page::{page, see},
    query::Pairs,
    rpc,
    view::View,
};

#[derive(Template)]
#[template(path = "stop_confirm.html")]
struct Confirm {
    frame: Frame,
    target: Target,
    blast: Blast,
    may_stop: bool,
    /// Sent twice, the form acts once.
    key: String,
    /// Why the form was not taken: the member, and what is wrong.
    problem: Option<(&'static str, String)>,
    /// What was typed.
    reason: String,
}

impl Confirm {
    fn is_wrong(&self, member: &str) -> bool {
        self.problem.as_ref().is_some_and(|(wrong, _)| *wrong == member)
    }
}

pub(super) async fn confirm(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(form(&view, &query, None).await)
}

async fn form(
    view: &View,
    asked: &Pairs,
    problem: Option<(&'static str, String)>,
) -> Result<Response, Status> {
    let target = Target::read(view, asked).await?;
    let blast = Blast::of(view, &target).await?;
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let key = asked.one("key").map(str::to_owned);
    let confirm = Confirm {
        frame: view.frame(format!("Stop {}", target.what()), Section::Stop),
        may_stop: view.may(creates(&target)),
        target,
        blast,
        key: key.map_or_else(idempotency_key, Ok)?,
        problem,
        reason: asked.text("reason").to_owned(),
    };
    Ok(page(status, &confirm))
}

/// The operation that stops it.
fn creates(target: &Target) -> &'static str {
    if target.is_signal() { rpc::CREATE_STOP_SIGNAL } else { rpc::CREATE_QUARANTINE }
}

pub(super) async fn act(Posted { view, form }: Posted) -> Response {
    view.answer(acted(&view, &form).await)
}

async fn acted(view: &View, asked: &Pairs) -> Result<Response, Status> {
    let reason = asked.text("reason").trim();
    if reason.is_empty() {
        let text = "Say why, for the record and for whoever releases it.".to_owned();
        return form(view, asked, Some(("reason", text))).await;
    }
    let target = Target::read(view, asked).await?;
    if !target.is_named(asked.text("name")) {
        let text = format!("Nothing was stopped. Type {} exactly, to confirm.", target.name());
        return form(view, asked, Some(("name", text))).await;
    }
    let ids = stop(view, &target, reason, asked.text("key")).await?;
    match ids.as_slice() {
        [id] => Ok(see(&format!("/console/stop/{id}?did=stop"))),
        _ => Ok(see("/console/stop")),
    }
}

/// Creates the stop signal, or a quarantine for each pattern of actions; their ids.
async fn stop(
    view: &View,
    target: &Target,
    reason: &str,
    key: &str,
) -> Result<Vec<String>, Status> {
    let tenant_id = Some(target.tenant_id.clone());
    let subject_id = target.subject.as_ref().map(|subject| subject.id.clone());
    if let Some(actor_id) = subject_id.clone().filter(|_| target.is_signal()) {
        let reason = reason.to_owned();
        let signal = StopSignal { tenant_id, actor_id, reason, ..StopSignal::default() };
        let request = CreateStopSignalRequest { stop_signal: Some(signal) };
        let key = (!key.is_empty()).then_some(key);
        let made: StopSignal = view.calls.call_once(rpc::CREATE_STOP_SIGNAL, &request, key).await?;
        return Ok(vec![made.id]);
    }
    let actions: Vec<_> = if target.actions.is_empty() {
        vec![None]
    } else {
        target.actions.iter().cloned().map(Some).collect()
    };
    let mut ids = Vec::new();
    for (index, action) in actions.into_iter().enumerate() {
        let quarantine = Quarantine {
            tenant_id: tenant_id.clone(),
            subject_id: subject_id.clone(),
            action,
            delegation_id: target.delegation.as_ref().map(|delegation| delegation.id.clone()),
            reason: reason.to_owned(),
            ..Quarantine::default()
        };
        let request = CreateQuarantineRequest { quarantine: Some(quarantine) };
        let key = (!key.is_empty()).then(|| format!("{key}-{index}"));
        let made: Quarantine =
            view.calls.call_once(rpc::CREATE_QUARANTINE, &request, key.as_deref()).await?;
        ids.push(made.id);
    }
    Ok(ids)
}
