//! The page that stops: the impact, a reason to choose, and one button. Only a stop of a whole tenant
//! also requires a typed name.

use super::{
    impact::Impact,
    in_force::in_force_on,
    list::who_may,
    order::{self, Act},
    partly::partly,
    reason::{self, REASONS},
    stopped::Stopped,
    target::Target,
};
use crate::kit::{prelude::*, unknown_names::unknown_actions};

#[derive(Template)]
#[template(path = "stop_confirm.html")]
struct Confirm {
    frame: Frame,
    target: Target,
    /// `None` if it could not be read now. The stop remains possible.
    impact: Option<Impact>,
    /// The stops that already apply, as far as they could be read.
    already: Vec<Stopped>,
    may_stop: bool,
    /// The warning that the action is unknown in the tenant and may be misspelt.
    warning: Option<String>,
    /// The idempotency key: a form that is sent twice takes effect only once.
    key: String,
    /// The member with an error.
    wrong: Option<&'static str>,
    /// The reasons to choose from, and the chosen one.
    reasons: [&'static str; REASONS.len()],
    reason: String,
    details: String,
}

impl Confirm {
    fn is_wrong(&self, member: &str) -> bool {
        self.wrong == Some(member)
    }
}

pub(super) async fn confirm(view: View, query: Pairs) -> Response {
    view.answer(form(&view, &query, None).await)
}

/// The warning that the tenant's records do not name the action. `None` if the target is a tool, if
/// the action is known, or if names can't be read. The last case is not an error, because a stop is
/// urgent.
async fn misspelt(view: &View, target: &Target) -> Option<String> {
    if target.tool.is_some() {
        return None;
    }
    let unknown = unknown_actions(view, &target.tenant_id, &target.actions).await;
    unknown.into_iter().next().map(|unknown| unknown.warning)
}

async fn form(
    view: &View,
    asked: &Pairs,
    problem: Option<(&'static str, String)>,
) -> Result<Response, Status> {
    who_may(view)?;
    let target = Target::read(view, asked).await?;
    let impact = Impact::of_target(view, &target);
    let (impact, warning, already) =
        tokio::join!(impact, misspelt(view, &target), already(view, &target));
    if let Err(error) = &impact {
        tracing::warn!(%error, "failed to read the impact of a stop");
    }
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    // Only a sent form sets the key and the reason. If another person's link set the key, a stop
    // would repeat the response to an earlier stop.
    let sent = problem.as_ref().map(|_| asked);
    let key = sent.and_then(|form| form.one("key")).map(str::to_owned);
    let frame = view.frame(t::stop::stop(target.what()), Section::Stop);
    let (wrong, text) = problem.unzip();
    let confirm = Confirm {
        frame: frame.failed_if(t::stop::NOT_STOPPED, text, wrong),
        may_stop: view.may(creates(&target)),
        // An action that was used is not misspelt.
        warning: warning.filter(|_| !impact.as_ref().is_ok_and(Impact::is_used)),
        already,
        target,
        impact: impact.ok(),
        key: key.map_or_else(idempotency_key, Ok)?,
        reasons: REASONS,
        reason: sent.map_or(REASONS[0], |form| form.text("reason")).to_owned(),
        details: sent.map_or("", |form| form.text("details")).to_owned(),
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
    view.answer_act(t::stop::NOT_STOPPED, acted(&view, &form).await)
}

async fn acted(view: &View, asked: &Pairs) -> Result<Response, Status> {
    let reason = reason::of(asked);
    if reason.is_empty() {
        let text = t::stop::CHOOSE_REASON.to_owned();
        return form(view, asked, Some(("reason", text))).await;
    }
    let target = Target::read(view, asked).await?;
    if target.is_whole_tenant() && !target.is_named(asked.text("name")) {
        let text = t::type_exactly(target.name());
        return form(view, asked, Some(("name", text))).await;
    }
    let acts = order::stop(view, &target, &reason, asked.text("key")).await;
    if acts.iter().any(|act| act.outcome.is_err()) {
        return partly(view, target, acts, (reason, asked.text("key")));
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
