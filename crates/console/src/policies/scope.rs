//! Targets and times of an active policy, tried before they change. Targets are separate records,
//! and the times are members of the policy's record. A change of either applies immediately.

use authority_ids::EntityRef;
use authority_model::proto::{registry::Policy, runtime::CandidatePolicy};

use super::{
    impact::{self, Impact},
    present::{Present, address, name, rows},
};
use crate::kit::{prelude::*, unknown_names::unknown_targets};

/// The target that every request matches.
const EVERYWHERE: &str = "*";

#[derive(Template)]
#[template(path = "policy_scope.html")]
struct ScopePage {
    frame: Frame,
    name: String,
    address: String,
    policy: Policy,
    /// The page of its targets as records, and the page of its own record.
    rows: Option<String>,
    record: String,
    in_force: bool,
    may_try: bool,
    /// The targets to try, one on a line.
    targets: String,
    /// Warnings about actions in these targets that no record of the tenant names.
    unknown: Vec<String>,
    elsewhere: Option<Impact>,
    without: Option<Impact>,
}

impl ScopePage {
    fn of(view: &View, present: Present) -> Self {
        let in_force = present.in_force().is_some();
        let policy = present.policy;
        let id = encoded(&policy.id);
        Self {
            frame: view.frame(t::policies::scope(name(&policy)), Section::Policies),
            name: name(&policy),
            address: address(&policy.id),
            rows: rows(view, &policy.id),
            record: format!("/console/records/policies/{id}"),
            in_force,
            may_try: view.may(rpc::IMPACT_POLICIES),
            targets: policy.applies_to.join("\n"),
            unknown: Vec::new(),
            elsewhere: None,
            without: None,
            policy,
        }
    }
}

pub(super) async fn show(view: View, Path(id): Path<EntityRef>) -> Response {
    let shown = async {
        let present = Present::read(&view, &id).await?;
        Ok(page(StatusCode::OK, &ScopePage::of(&view, present)))
    };
    view.answer(shown.await)
}

pub(super) async fn try_out(Path(id): Path<EntityRef>, Posted { view, form }: Posted) -> Response {
    view.answer_act(t::policies::NOT_TRIED, tried(&view, &id, &form).await)
}

async fn tried(view: &View, id: &EntityRef, form: &Pairs) -> Result<Response, Status> {
    let present = Present::read(view, id).await?;
    let in_force = present.in_force().map(str::to_owned);
    let mut shown = ScopePage::of(view, present);
    let Some(cedar) = in_force.filter(|_| shown.may_try) else {
        shown.frame = shown.frame.failed(t::policies::NOT_TRIED, t::policies::CANNOT_TRY, None);
        return Ok(page(StatusCode::CONFLICT, &shown));
    };
    let tried = if form.text("do") == "without" {
        impact::without(view, &shown.policy).await.map(|impact| shown.without = Some(impact))
    } else {
        let targets = form.text("targets").lines().map(str::trim).filter(|line| !line.is_empty());
        let targets: Vec<String> = targets.map(str::to_owned).collect();
        shown.targets = targets.join("\n");
        shown.unknown = unknown_targets(view, &shown.policy.tenant_id, &targets).await;
        let run = elsewhere(view, &shown.policy, cedar, targets).await;
        run.map(|impact| shown.elsewhere = Some(impact))
    };
    let mut status = StatusCode::OK;
    if let Err(error) = tried {
        let problem = Problem::of(&error);
        status = problem.status;
        let (heading, text) = (t::policies::NOT_TRIED, in_words(problem));
        shown.frame = shown.frame.failed(heading, text, Some("targets"));
    }
    Ok(page(status, &shown))
}

/// Leaves out the target's place in the request, because the text contains the target.
fn in_words(mut problem: Problem) -> String {
    for (name, _) in problem.members.iter_mut().filter(|(name, _)| name.contains("applies_to")) {
        t::policies::TARGETS.clone_into(name);
    }
    problem.in_words()
}

/// The last decisions if the active text had these targets.
async fn elsewhere(
    view: &View,
    policy: &Policy,
    cedar: String,
    mut targets: Vec<String>,
) -> Result<Impact, Status> {
    if targets.is_empty() {
        // An empty list would mean the current targets.
        targets.push(EVERYWHERE.to_owned());
    }
    let candidate =
        CandidatePolicy { policy_id: Some(policy.id.clone()), cedar, applies_to: targets };
    impact::with(view, policy, candidate).await
}
