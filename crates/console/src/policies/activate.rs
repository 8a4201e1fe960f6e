//! The second step of an activation: the text, and its effect on the last decisions.

use authority_crypto::sha256;
use authority_decision::diff::{self, Line};
use authority_ids::EntityRef;
use authority_model::proto::registry::ActivatePolicyRequest;

use super::{
    present::{Present, address, change, name, versions},
    trial::Trial,
};
use crate::kit::{prelude::*, typed, unknown_names::unknown_targets};

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
    unknown: Vec<String>,
    /// Why it cannot be activated here.
    barrier: Option<&'static str>,
    /// Whether the form was refused because it has no reason.
    lacks_reason: bool,
    /// The typed reason for the activation.
    reason: String,
    /// The digest of the text that the page shows.
    digest: String,
    /// The digest of the text with which the page compares it.
    base: String,
    key: String,
}

/// Replaces the digest if no text is in force.
const NOTHING: &str = "none";

/// A version with its current text, and its effect.
struct Candidate {
    present: Present,
    number: i32,
    cedar: String,
    trial: Trial,
    /// Warnings about actions in the policy's targets that no record of the tenant names.
    unknown: Vec<String>,
}

impl Candidate {
    async fn read(view: &View, id: &EntityRef, number: &str) -> Result<Self, Status> {
        let present = Present::read(view, id).await?;
        let absent = || Status::not_found(t::policies::NO_VERSION);
        let number: i32 = number.parse().map_err(|_| absent())?;
        let all = versions(view, id).await?;
        let version = all.into_iter().find(|version| version.version == number);
        let cedar = version.ok_or_else(absent)?.cedar;
        let trial = Trial::of(view, &present.policy, &cedar).await?;
        let unknown =
            unknown_targets(view, &present.policy.tenant_id, &present.policy.applies_to).await;
        Ok(Self { present, number, cedar, trial, unknown })
    }

    fn digest(&self) -> String {
        digest(&self.cedar)
    }

    fn base(&self) -> String {
        self.present.in_force().map_or_else(|| NOTHING.to_owned(), digest)
    }

    /// The reason why the version cannot be activated here.
    fn barrier(&self, view: &View) -> Option<&'static str> {
        if !view.may(rpc::ACTIVATE_POLICY) {
            return Some(t::policies::MAY_NOT_ACTIVATE);
        }
        let policy = &self.present.policy;
        if policy.state.as_deref() == Some("retired") {
            return Some(t::policies::RETIRED_FINAL);
        }
        if policy.state.as_deref() == Some("active") && policy.version == self.number {
            return Some(t::policies::ALREADY_IN_FORCE);
        }
        match &self.trial.impact {
            None => Some(t::policies::TEXT_INVALID),
            Some(impact) if impact.run == 0 => Some(t::policies::EFFECT_UNKNOWN),
            Some(_) => None,
        }
    }

    /// The difference from the state that the form's page showed.
    fn moved(&self, form: &Pairs) -> Option<&'static str> {
        if self.digest() != form.text("digest") {
            return Some(t::policies::TEXT_MOVED);
        }
        (self.base() != form.text("base")).then_some(t::policies::BASE_MOVED)
    }

    /// The second step. `sent` is the form that was refused before, and the reason.
    fn confirmation(
        self,
        view: &View,
        status: StatusCode,
        sent: Option<(&Pairs, Option<&'static str>)>,
    ) -> Result<Response, Status> {
        let (form, problem) = sent.map_or((None, None), |(form, problem)| (Some(form), problem));
        let (barrier, digest, base) = (self.barrier(view), self.digest(), self.base());
        let Self { present, number, cedar, trial, unknown } = self;
        let policy = &present.policy;
        let lacks_reason = status == StatusCode::BAD_REQUEST;
        let frame = view.frame(t::policies::activate_policy(name(policy)), Section::Policies);
        let barred = || barrier.map(t::policies::cannot_activate);
        let problem = problem.map(str::to_owned).or_else(barred).filter(|_| form.is_some());
        let shown = ConfirmPage {
            frame: frame.failed_if(
                t::policies::NOT_ACTIVATED,
                problem,
                lacks_reason.then_some("reason"),
            ),
            name: name(policy),
            address: address(&policy.id),
            number,
            in_force: present.in_force().is_some(),
            lines: diff::lines(present.in_force().unwrap_or_default(), &cedar),
            barrier,
            lacks_reason,
            reason: form.map(reason).unwrap_or_default(),
            trial,
            unknown,
            digest,
            base,
            key: idempotency_key()?,
        };
        Ok(page(status, &shown))
    }
}

/// The reason for the activation from the form, with line feeds as the record stores them.
fn reason(form: &Pairs) -> String {
    typed::kept("", form.text("reason")).trim().to_owned()
}

fn digest(text: &str) -> String {
    hex::encode(sha256(text.as_bytes()))
}

pub(super) async fn confirm(view: View, Path(id): Path<EntityRef>, query: Pairs) -> Response {
    let confirmed = async {
        let candidate = Candidate::read(&view, &id, query.text("version")).await?;
        candidate.confirmation(&view, StatusCode::OK, None)
    };
    view.answer(confirmed.await)
}

pub(super) async fn act(Path(id): Path<EntityRef>, Posted { view, form }: Posted) -> Response {
    view.answer_act(t::policies::NOT_ACTIVATED, acted(&view, &id, &form).await)
}

async fn acted(view: &View, id: &EntityRef, form: &Pairs) -> Result<Response, Status> {
    // The current effect counts, not the effect that the page showed.
    let candidate = Candidate::read(view, id, form.text("version")).await?;
    let moved = candidate.moved(form);
    if moved.is_some() || candidate.barrier(view).is_some() {
        return candidate.confirmation(view, StatusCode::CONFLICT, Some((form, moved)));
    }
    let reason = reason(form);
    if reason.is_empty() {
        let sent = Some((form, Some(t::policies::NEEDS_REASON)));
        return candidate.confirmation(view, StatusCode::BAD_REQUEST, sent);
    }
    let request = ActivatePolicyRequest {
        id: id.into(),
        version: Some(candidate.number),
        reason: Some(reason),
    };
    let known = (form.text("key"), candidate.present.tag.as_str());
    match change(view, rpc::ACTIVATE_POLICY, &request, known).await {
        Ok(activated) => Ok(see_done(view, &address(&activated.id), "activate")),
        Err(status) if status.code() == Code::FailedPrecondition => {
            let candidate = Candidate::read(view, id, form.text("version")).await?;
            let sent = Some((form, Some(t::policies::CHANGED_AT_ONCE)));
            candidate.confirmation(view, StatusCode::CONFLICT, sent)
        }
        Err(status) => Err(status),
    }
}
