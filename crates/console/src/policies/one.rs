//! A policy and its texts. What a person writes is checked, tried, or kept as a draft; none of that puts it in force.

use askama::Template;
use authority_model::{
    proto::registry::{Policy, PolicyProblem, PolicyVersion, UpdatePolicyRequest},
    wire::FieldMask,
};
use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use http::StatusCode;
use tonic::Status;

use super::{
    address,
    diff::{self, Line},
    name, read,
    trial::{self, Trial},
    versions,
};
use crate::{
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    page::{page, see},
    problem::Problem,
    query::Pairs,
    rpc,
    show::Moment,
    view::View,
};

/// A version of the text, in the list.
struct Version {
    number: i32,
    by: String,
    at: Option<Moment>,
    in_force: bool,
    shown: bool,
}

#[derive(Template)]
#[template(path = "policy.html")]
struct PolicyPage {
    frame: Frame,
    policy: Policy,
    name: String,
    address: String,
    /// What the person just did.
    done: Option<&'static str>,
    in_force: bool,
    problems: Vec<PolicyProblem>,
    /// The version that can be activated, with what differs from the text in force.
    draft: Option<(i32, Vec<Line>)>,
    versions: Vec<Version>,
    /// An earlier text that was asked for, with what differs from the present one.
    earlier: Option<(i32, Vec<Line>)>,
    /// What stands in the editor.
    text: String,
    trial: Trial,
    problem: Option<String>,
    may_check: bool,
    may_try: bool,
    may_save: bool,
    may_activate: bool,
    may_retire: bool,
    key: String,
}

pub(super) async fn show(
    view: View,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(shown(&view, &id, &query).await)
}

async fn shown(view: &View, id: &str, query: &Pairs) -> Result<Response, Status> {
    let policy = read(view, id).await?;
    let text = policy.draft_cedar.clone().or_else(|| policy.cedar.clone()).unwrap_or_default();
    let mut found = PolicyPage::of(view, policy, text).await?;
    found.done = match query.text("did") {
        "save" => Some("The text is kept as a draft. It decides nothing until it is activated."),
        "activate" => Some("The text is in force."),
        "retire" => Some("The policy is retired."),
        _ => None,
    };
    let asked = query.text("version").parse().ok();
    if let Some(asked) = asked {
        found.compare(view, id, asked).await?;
    }
    Ok(page(StatusCode::OK, &found))
}

impl PolicyPage {
    async fn of(view: &View, policy: Policy, text: String) -> Result<Self, Status> {
        let in_force = policy.state.as_deref() == Some("active");
        let all = versions(view, &policy.id).await?;
        let draft = draft(&policy, in_force);
        let versions = all.iter().map(|version| Version {
            number: version.version,
            by: version.created_by.clone(),
            at: Moment::of_time(version.created_at, view.now),
            in_force: in_force && version.version == policy.version,
            shown: false,
        });
        Ok(Self {
            frame: view.frame(name(&policy), Section::Records),
            name: name(&policy),
            address: address(&policy.id),
            done: None,
            in_force,
            problems: policy.problems.clone(),
            draft,
            versions: versions.collect(),
            earlier: None,
            text,
            trial: Trial::default(),
            problem: None,
            may_check: view.may(rpc::VALIDATE_POLICY),
            may_try: view.may(rpc::IMPACT_POLICIES),
            may_save: view.may(rpc::UPDATE_POLICY),
            may_retire: view.may(rpc::UPDATE_POLICY) && policy.state.as_deref() != Some("retired"),
            may_activate: view.may(rpc::ACTIVATE_POLICY) && view.may(rpc::IMPACT_POLICIES),
            key: idempotency_key()?,
            policy,
        })
    }

    /// Compares an earlier version with the present text.
    async fn compare(&mut self, view: &View, id: &str, number: i32) -> Result<(), Status> {
        let all = versions(view, id).await?;
        let wanted = |version: &PolicyVersion| version.version == number;
        let Some(version) = all.into_iter().find(wanted) else { return Ok(()) };
        let present = self.policy.cedar.clone().unwrap_or_default();
        self.earlier = Some((number, diff::lines(&version.cedar, &present)));
        for version in &mut self.versions {
            version.shown = version.number == number;
        }
        Ok(())
    }
}

/// The version that is not in force yet: a newer one of an active policy, or that of a draft.
fn draft(policy: &Policy, in_force: bool) -> Option<(i32, Vec<Line>)> {
    let present = policy.cedar.as_deref().unwrap_or_default();
    if let (Some(number), Some(text)) = (policy.draft_version, &policy.draft_cedar) {
        return Some((number, diff::lines(if in_force { present } else { "" }, text)));
    }
    let is_draft = policy.state.as_deref() == Some("draft") && policy.version > 0;
    is_draft.then(|| (policy.version, diff::lines("", present)))
}

/// Checks, tries or keeps what was written.
pub(super) async fn write(Path(id): Path<String>, Posted { view, form }: Posted) -> Response {
    view.answer(written(&view, &id, &form).await)
}

async fn written(view: &View, id: &str, form: &Pairs) -> Result<Response, Status> {
    let policy = read(view, id).await?;
    let text = form.text("cedar").replace("\r\n", "\n");
    if form.text("do") == "save" {
        return save(view, policy, text, form.text("key")).await;
    }
    let mut trial = Trial::default();
    let mut problem = None;
    if view.may(rpc::VALIDATE_POLICY) {
        trial = trial::check(view, &policy, &text).await?;
    }
    if form.text("do") == "try" && trial.problems.is_empty() {
        match trial::run(view, &policy, &text).await {
            Ok(impact) => trial.impact = Some(impact),
            Err(status) => problem = Some(Problem::of(&status).message),
        }
    }
    let mut found = PolicyPage::of(view, policy, text).await?;
    (found.trial, found.problem) = (trial, problem);
    Ok(page(StatusCode::OK, &found))
}

async fn save(view: &View, policy: Policy, text: String, key: &str) -> Result<Response, Status> {
    let request = UpdatePolicyRequest {
        id: policy.id.clone(),
        policy: Some(Policy { cedar: Some(text.clone()), ..Policy::default() }),
        update_mask: Some(FieldMask { paths: vec!["cedar".to_owned()] }),
    };
    let key = (!key.is_empty()).then_some(key);
    let saved: Result<Policy, Status> =
        view.calls.call_once(rpc::UPDATE_POLICY, &request, key).await;
    match saved {
        Ok(policy) => Ok(see(&format!("{}?did=save", address(&policy.id)))),
        Err(status) => {
            let problem = Problem::of(&status);
            let mut found = PolicyPage::of(view, policy, text).await?;
            let status = problem.status;
            found.problem = Some(problem.in_words());
            Ok(page(status, &found))
        }
    }
}
