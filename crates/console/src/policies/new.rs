//! A new policy: six texts to begin with, an editor, and the text's check and effect before
//! the policy is created as a draft.

use authority_model::proto::{
    registry::{CreatePolicyRequest, Policy},
    runtime::CandidatePolicy,
};

use super::{
    impact,
    present::address,
    starts::{STARTS, Start},
    trial::Trial,
};
use crate::{
    administration::records::tenant_of,
    kit::{escape, prelude::*, typed, unknown_names::unknown_targets},
};

#[derive(Template)]
#[template(path = "policy_new.html")]
struct NewPage {
    frame: Frame,
    starts: &'static [Start],
    /// The text to begin with that was chosen last.
    chosen: String,
    policy: Policy,
    name: String,
    /// The targets, one on a line.
    targets: String,
    text: String,
    trial: Trial,
    /// Warnings about targets that no record of the tenant names.
    unknown: Vec<String>,
    may_check: bool,
    may_try: bool,
    key: String,
}

pub(super) async fn show(view: View, query: Pairs) -> Response {
    view.answer(shown(&view, &query).await)
}

async fn shown(view: &View, query: &Pairs) -> Result<Response, Status> {
    let mut found = NewPage::of(view, &Pairs::default()).await?;
    let start = Start::of(query.text("start"));
    start.word.clone_into(&mut found.chosen);
    (found.name, found.targets) = (start.name.to_owned(), start.target.to_owned());
    start.cedar.clone_into(&mut found.text);
    Ok(page(StatusCode::OK, &found))
}

pub(super) async fn send(Posted { view, form }: Posted) -> Response {
    view.answer_act(t::NOT_CREATED, sent(&view, &form).await)
}

async fn sent(view: &View, form: &Pairs) -> Result<Response, Status> {
    let mut found = NewPage::of(view, form).await?;
    if found.policy.tenant_id.is_empty() {
        let (heading, text) = (t::NOT_CREATED, t::policies::CHOOSE_TENANT);
        found.frame = found.frame.failed(heading, text, Some("tenant"));
        return Ok(page(StatusCode::BAD_REQUEST, &found));
    }
    found.unknown = unknown_targets(view, &found.policy.tenant_id, &found.policy.applies_to).await;
    if form.text("do") == "create" {
        let request = CreatePolicyRequest { policy: Some(found.policy.clone()) };
        let created = view.calls.call_once(&request, form.one("key")).await;
        return match created {
            Ok(policy) => Ok(see_done(view, &address(&policy.id), "save")),
            Err(status) => found.refused(view, &status, t::NOT_CREATED).await,
        };
    }
    found.trial = Trial::checked(view, &found.policy, &found.text).await?;
    if form.text("do") == "try" && found.trial.problems.is_empty() {
        match found.effect(view).await {
            Ok(effect) => found.trial.impact = Some(effect),
            Err(status) => return found.refused(view, &status, t::policies::NOT_TRIED).await,
        }
    }
    Ok(page(StatusCode::OK, &found))
}

impl NewPage {
    fn is_chosen(&self, start: &Start) -> bool {
        self.chosen == start.word
    }

    /// The invisible characters of the editor's text.
    fn hidden(&self) -> Option<String> {
        escape::hidden_in(&self.text)
    }

    /// The page with a person's input.
    async fn of(view: &View, form: &Pairs) -> Result<Self, Status> {
        if !view.may(rpc::CREATE_POLICY) {
            return Err(refused(view, rpc::CREATE_POLICY));
        }
        let tenant_id = tenant_of(view, form.one("tenant")).await.unwrap_or_default();
        let targets = typed::as_written(form.text("targets"));
        let lines = targets.lines().map(str::trim).filter(|line| !line.is_empty());
        let (text, name) = (typed::kept("", form.text("cedar")), form.text("name").trim());
        let policy = Policy {
            tenant_id,
            regime: form.one("regime").unwrap_or("internal").to_owned(),
            name: Some(name.to_owned()),
            description: form.one("description").map(str::to_owned),
            cedar: Some(text.clone()),
            state: Some("draft".to_owned()),
            applies_to: lines.map(str::to_owned).collect(),
            ..Policy::default()
        };
        Ok(Self {
            frame: view.frame(t::policies::NEW, Section::Policies),
            starts: &STARTS,
            chosen: form.text("start").to_owned(),
            name: name.to_owned(),
            policy,
            targets,
            text,
            trial: Trial::default(),
            unknown: Vec::new(),
            may_check: view.may(rpc::VALIDATE_POLICY),
            may_try: view.may(rpc::IMPACT_POLICIES),
            key: idempotency_key()?,
        })
    }

    /// The last decisions, if this policy had been in force as well.
    async fn effect(&self, view: &View) -> Result<impact::Impact, Status> {
        let candidate = CandidatePolicy {
            policy_id: None,
            cedar: self.text.clone(),
            applies_to: self.policy.applies_to.clone(),
        };
        impact::with(view, &self.policy, candidate).await
    }

    /// The page after a refusal, with the problems of the text at their lines.
    async fn refused(
        mut self,
        view: &View,
        status: &Status,
        heading: &'static str,
    ) -> Result<Response, Status> {
        let problem = Problem::of(status);
        let code = problem.status;
        self.trial = Trial::checked(view, &self.policy, &self.text).await?;
        let text = t::because(problem.in_words().trim_end_matches('.'));
        self.frame = self.frame.failed(heading, text, Some("cedar"));
        Ok(page(code, &self))
    }
}
