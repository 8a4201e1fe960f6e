//! A policy and its texts. A person's text is checked, tried, or saved as a draft. None of these
//! activates it.

use authority_decision::diff::{self, Line};
use authority_ids::EntityRef;
use authority_model::{
    proto::registry::{Policy, PolicyVersion, UpdatePolicyRequest},
    wire::FieldMask,
};

use super::{
    impact,
    observe::Observed,
    present::{Present, address, change, name, rows, versions},
    trial::{Fault, Trial},
};
use crate::kit::{escape, prelude::*, typed, unknown_names::unknown_targets};

#[derive(Template)]
#[template(path = "policy.html")]
struct PolicyPage {
    frame: Frame,
    policy: Policy,
    name: String,
    address: String,
    /// The result of the person's last action.
    done: Option<&'static str>,
    in_force: bool,
    /// The page of its targets as records.
    rows: Option<String>,
    /// When it was retired. A retired policy does not change.
    retired: Option<Moment>,
    /// Warnings about actions in its targets that no record of the tenant names.
    unknown: Vec<String>,
    /// The problems for which the text in force would be refused today.
    problems: Vec<Fault>,
    /// The version that can be activated, with its differences from the text in force.
    draft: Option<(i32, Vec<Line>)>,
    /// The versions, each with its last observation.
    versions: Vec<(PolicyVersion, Option<Observed>)>,
    /// The observing version, with its counts.
    observing: Option<(i32, Observed)>,
    /// A requested earlier text, with its differences from the present one.
    earlier: Option<(i32, Vec<Line>)>,
    /// The text in the editor.
    text: String,
    /// The result of checking that text, and its differences from the active text.
    trial: Trial,
    compared: Vec<Line>,
    /// The differences of the editor's text from the newest text, if somebody changed the policy
    /// after the editor was opened.
    moved: Option<Vec<Line>>,
    may_check: bool,
    may_try: bool,
    may_simulate: bool,
    may_save: bool,
    may_activate: bool,
    may_observe: bool,
    may_retire: bool,
    /// The policy's version as a record, as the page shows it.
    tag: String,
    key: String,
}

pub(super) async fn show(view: View, Path(id): Path<EntityRef>, query: Pairs) -> Response {
    view.answer(shown(&view, &id, &query).await)
}

async fn shown(view: &View, id: &EntityRef, query: &Pairs) -> Result<Response, Status> {
    let present = Present::read(view, id).await?;
    let text = present.newest().to_owned();
    let mut found = PolicyPage::of(view, present, text).await?;
    found.done = match done_word(view, &address(&found.policy.id), query) {
        "save" => Some(t::policies::SAVED),
        "activate" => Some(t::policies::IS_ACTIVATED),
        "observe" => Some(t::policies::IS_OBSERVING),
        "unobserve" => Some(t::policies::IS_ENDED),
        "retire" => Some(t::policies::IS_RETIRED),
        _ => None,
    };
    let asked = query.text("version").parse().ok();
    if let Some(asked) = asked {
        found.compare(view, id, asked).await?;
    }
    Ok(page(StatusCode::OK, &found))
}

impl PolicyPage {
    /// Whether the editor has a text that can be activated once it is saved.
    fn may_keep(&self) -> bool {
        let differs = self.compared.iter().any(|line| line.change != diff::Change::Same);
        self.may_save && self.may_activate && (differs || !self.in_force)
    }

    /// Whether a version could start to observe.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the template passes it by reference")]
    fn can_observe(&self, number: &i32) -> bool {
        let is_observing = self.policy.observing_version == Some(*number);
        self.may_observe && !is_observing && !(self.in_force && self.policy.version == *number)
    }

    /// Whether the page compares this version.
    fn compares(&self, version: &PolicyVersion) -> bool {
        self.earlier.as_ref().is_some_and(|(number, _)| *number == version.version)
    }

    /// Whether the editor's text is unsaved.
    fn is_unsaved(&self) -> bool {
        let saved = self.policy.draft_cedar.as_deref().or(self.policy.cedar.as_deref());
        saved.unwrap_or_default() != self.text
    }

    /// The invisible characters of the editor's text.
    fn hidden(&self) -> Option<String> {
        escape::hidden_in(&self.text)
    }

    async fn of(view: &View, present: Present, text: String) -> Result<Self, Status> {
        let in_force = present.in_force().is_some();
        let (draft, tag) = (draft(&present), present.tag);
        let policy = present.policy;
        let all = versions(view, &policy.id.as_str().into()).await?;
        let versions = all.into_iter().map(|version| {
            let observed = version.observation.and_then(|one| Observed::of(one, view));
            (version, observed)
        });
        let is_retired = policy.state.as_deref() == Some("retired");
        // A tenant's admin ends only drafts.
        let ends = view.caller.is_owner() || policy.state.as_deref() == Some("draft");
        Ok(Self {
            frame: view.frame(name(&policy), Section::Policies),
            name: name(&policy),
            address: address(&policy.id),
            done: None,
            in_force,
            rows: rows(view, &policy.id),
            retired: Moment::of_time(policy.updated_at, view.now).filter(|_| is_retired),
            unknown: unknown_targets(view, &policy.tenant_id, &policy.applies_to).await,
            problems: Fault::all(&policy.problems, policy.cedar.as_deref().unwrap_or_default()),
            draft,
            versions: versions.collect(),
            observing: policy
                .observing_version
                .zip(policy.observation.and_then(|one| Observed::of(one, view))),
            earlier: None,
            text,
            trial: Trial::default(),
            compared: Vec::new(),
            moved: None,
            may_check: view.may(rpc::VALIDATE_POLICY),
            may_try: view.may(rpc::IMPACT_POLICIES),
            may_simulate: view.may(rpc::SIMULATE_DECISION),
            may_save: view.may(rpc::UPDATE_POLICY) && !is_retired,
            may_observe: view.may(rpc::OBSERVE_POLICY) && !is_retired,
            may_retire: view.may(rpc::UPDATE_POLICY) && !is_retired && ends,
            may_activate: view.may(rpc::ACTIVATE_POLICY)
                && view.may(rpc::IMPACT_POLICIES)
                && !is_retired,
            tag,
            key: idempotency_key()?,
            policy,
        })
    }

    /// Compares an earlier version with the present text.
    async fn compare(&mut self, view: &View, id: &EntityRef, number: i32) -> Result<(), Status> {
        let all = versions(view, id).await?;
        let wanted = |version: &PolicyVersion| version.version == number;
        let Some(version) = all.into_iter().find(wanted) else { return Ok(()) };
        let present = self.policy.cedar.clone().unwrap_or_default();
        self.earlier = Some((number, diff::lines(&version.cedar, &present)));
        Ok(())
    }
}

/// The version that is not active yet: a newer version of an active policy, or the version of a
/// draft.
fn draft(present: &Present) -> Option<(i32, Vec<Line>)> {
    let policy = &present.policy;
    if let (Some(number), Some(text)) = (policy.draft_version, &policy.draft_cedar) {
        return Some((number, diff::lines(present.in_force().unwrap_or_default(), text)));
    }
    let is_draft = policy.state.as_deref() == Some("draft") && policy.version > 0;
    is_draft.then(|| (policy.version, diff::lines("", present.newest())))
}

/// Checks, tries or saves the person's text.
pub(super) async fn write(Path(id): Path<EntityRef>, Posted { view, form }: Posted) -> Response {
    let saves = ["save", "activate"].contains(&form.text("do"));
    let undone = if saves { t::NOT_SAVED } else { t::policies::NOT_TRIED };
    view.answer_act(undone, written(&view, &id, &form).await)
}

async fn written(view: &View, id: &EntityRef, form: &Pairs) -> Result<Response, Status> {
    let sent = form.all("cedar").next();
    let sent = sent.ok_or_else(|| Status::invalid_argument(t::policies::NO_TEXT))?;
    let present = Present::read(view, id).await?;
    let text = typed::kept(present.newest(), sent);
    if ["save", "activate"].contains(&form.text("do")) {
        return save(view, id, text, form).await;
    }
    let mut trial = Trial::checked(view, &present.policy, &text).await?;
    let mut untried = None;
    if form.text("do") == "try" && trial.problems.is_empty() {
        match impact::run(view, &present.policy, &text).await {
            Ok(impact) => trial.impact = Some(impact),
            Err(status) => untried = Some(Problem::of(&status).in_words()),
        }
    }
    let compared = present.in_force().map(|in_force| diff::lines(in_force, &text));
    let moved = moved(&present, &text, form);
    let mut found = PolicyPage::of(view, present, text).await?;
    (found.trial, found.moved) = (trial, moved);
    found.frame = found.frame.failed_if(t::policies::NOT_TRIED, untried, None);
    found.compared = compared.unwrap_or_default();
    Ok(page(StatusCode::OK, &found))
}

/// The differences of a text from the newest one, if somebody changed the policy after the form was
/// shown.
fn moved(present: &Present, text: &str, form: &Pairs) -> Option<Vec<Line>> {
    (present.tag != form.text("tag")).then(|| diff::lines(present.newest(), text))
}

/// Redirects after saving: to the text's activation if requested, otherwise to the policy.
fn saved(view: &View, policy: &Policy, activates: bool) -> Response {
    let address = address(&policy.id);
    if activates {
        let number = policy.draft_version.unwrap_or(policy.version);
        see(&format!("{address}/activate?version={number}"))
    } else {
        see_done(view, &address, "save")
    }
}

async fn save(view: &View, id: &EntityRef, text: String, form: &Pairs) -> Result<Response, Status> {
    let request = UpdatePolicyRequest {
        id: id.into(),
        policy: Some(Policy { cedar: Some(text.clone()), ..Policy::default() }),
        update_mask: Some(FieldMask { paths: vec!["cedar".to_owned()] }),
    };
    let known = (form.text("key"), form.text("tag"));
    let status = match change(view, rpc::UPDATE_POLICY, &request, known).await {
        Ok(policy) => return Ok(saved(view, &policy, form.text("do") == "activate")),
        Err(status) => status,
    };
    // The person's text stays in the editor in every case.
    let present = Present::read(view, id).await?;
    let moved = moved(&present, &text, form);
    let mut found = PolicyPage::of(view, present, text).await?;
    let problem = Problem::of(&status);
    let has_moved = status.code() == Code::FailedPrecondition;
    let status = if has_moved { StatusCode::CONFLICT } else { problem.status };
    let text = if has_moved {
        t::policies::TEXT_KEPT.to_owned()
    } else {
        t::because(problem.in_words().trim_end_matches('.'))
    };
    found.frame = found.frame.failed(t::NOT_SAVED, text, Some("cedar"));
    found.moved = moved;
    Ok(page(status, &found))
}
