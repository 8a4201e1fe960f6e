//! The second step before a text is in force: what it is, and what it would have changed of the last decisions.

use askama::Template;
use authority_crypto::sha256;
use authority_model::proto::registry::{ActivatePolicyRequest, Policy};
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
    trial::{self, Impact, Trial},
    versions,
};
use crate::{
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    page::{page, see},
    query::Pairs,
    rpc,
    view::View,
};

#[derive(Template)]
#[template(path = "policy_activate.html")]
struct ConfirmPage {
    frame: Frame,
    name: String,
    address: String,
    number: i32,
    in_force: bool,
    lines: Vec<Line>,
    trial: Trial,
    /// Why it cannot be activated here.
    barrier: Option<&'static str>,
    /// Why the form was not taken.
    problem: Option<&'static str>,
    digest: String,
    key: String,
}

/// A version with its text, as it is now.
struct Candidate {
    policy: Policy,
    number: i32,
    cedar: String,
}

impl Candidate {
    async fn read(view: &View, id: &str, number: &str) -> Result<Self, Status> {
        let policy = read(view, id).await?;
        let nothing = || Status::not_found("the policy has no such version");
        let number: i32 = number.parse().map_err(|_| nothing())?;
        let all = versions(view, id).await?;
        let version = all.into_iter().find(|version| version.version == number);
        Ok(Self { policy, number, cedar: version.ok_or_else(nothing)?.cedar })
    }

    fn digest(&self) -> String {
        hex::encode(sha256(self.cedar.as_bytes()))
    }
}

pub(super) async fn confirm(
    view: View,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    let confirmed = async {
        let candidate = Candidate::read(&view, &id, query.text("version")).await?;
        let impact = trial::run(&view, &candidate.policy, &candidate.cedar).await?;
        confirmation(&view, &candidate, impact, StatusCode::OK, None).await
    };
    view.answer(confirmed.await)
}

async fn confirmation(
    view: &View,
    candidate: &Candidate,
    impact: Impact,
    status: StatusCode,
    problem: Option<&'static str>,
) -> Result<Response, Status> {
    let Candidate { policy, number, cedar } = candidate;
    let mut trial = if view.may(rpc::VALIDATE_POLICY) {
        trial::check(view, policy, cedar).await?
    } else {
        Trial::default()
    };
    let in_force = policy.state.as_deref() == Some("active");
    let present = policy.cedar.as_deref().filter(|_| in_force).unwrap_or_default();
    let barrier = barrier(view, candidate, &impact);
    trial.impact = Some(impact);
    let shown = ConfirmPage {
        frame: view.frame(format!("Activate “{}”?", name(policy)), Section::Records),
        name: name(policy),
        address: address(&policy.id),
        number: *number,
        in_force,
        lines: diff::lines(present, cedar),
        barrier,
        problem,
        trial,
        digest: candidate.digest(),
        key: idempotency_key()?,
    };
    Ok(page(status, &shown))
}

fn barrier(view: &View, candidate: &Candidate, impact: &Impact) -> Option<&'static str> {
    if !view.may(rpc::ACTIVATE_POLICY) {
        return Some("your role reads policies and does not activate them");
    }
    let policy = &candidate.policy;
    if policy.state.as_deref() == Some("active") && policy.version == candidate.number {
        return Some("it is the text in force");
    }
    let was_not_run = impact.run == 0;
    was_not_run.then_some(
        "there is no decision of the tenant that it could be run against: nobody knows what it would do",
    )
}

pub(super) async fn act(Path(id): Path<String>, Posted { view, form }: Posted) -> Response {
    view.answer(acted(&view, &id, &form).await)
}

async fn acted(view: &View, id: &str, form: &Pairs) -> Result<Response, Status> {
    let candidate = Candidate::read(view, id, form.text("version")).await?;
    // Not what the page said of it, but what it does now.
    let impact = trial::run(view, &candidate.policy, &candidate.cedar).await?;
    if barrier(view, &candidate, &impact).is_some() {
        return confirmation(view, &candidate, impact, StatusCode::CONFLICT, None).await;
    }
    if candidate.digest() != form.text("digest") {
        let problem = Some("Nothing was activated: the text is not the one that the page showed.");
        return confirmation(view, &candidate, impact, StatusCode::CONFLICT, problem).await;
    }
    let request = ActivatePolicyRequest { id: id.to_owned(), version: Some(candidate.number) };
    let activated: Policy =
        view.calls.call_once(rpc::ACTIVATE_POLICY, &request, form.one("key")).await?;
    Ok(see(&format!("{}?did=activate", address(&activated.id))))
}
