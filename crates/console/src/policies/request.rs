//! Tries one request: its outcome and the reason, under the policies in force or with a policy's
//! newest text. The trial is not recorded, and changes no limit.

use authority_api::unique_json;
use authority_model::{
    proto::{
        registry::Policy,
        runtime::{
            CandidatePolicy, DecisionRequest, SimulateDecisionRequest, SimulateDecisionResponse,
        },
    },
    wire::Json,
};

use super::present::{Present, name};
use crate::{
    administration::records::{Picker, proposals, tenant_of},
    decisions::{StageView, step},
    kit::{
        prelude::*,
        text::{CodeWithMeaning, outcome, people},
    },
};

/// The fields of the form, besides the context as JSON.
const FIELDS: [&str; 7] =
    ["agent", "action", "purpose", "amount", "currency", "jurisdiction", "resource"];

#[derive(Template)]
#[template(path = "policy_try.html")]
struct TryPage {
    frame: Frame,
    /// The policy with the text to try.
    policy: Option<Policy>,
    name: String,
    sent: Pairs,
    pickers: Vec<Picker>,
    outcome: Option<Outcome>,
}

/// The outcome of a simulated request.
struct Outcome {
    word: &'static str,
    reason: CodeWithMeaning,
    /// The people that it needs: `2 people, legal among them`.
    people: Option<String>,
    advice: Vec<String>,
    obligations: Vec<CodeWithMeaning>,
    /// Changes that would avoid a denial.
    smallest: Vec<String>,
    /// The outcome without the policy's newest text, if it differs.
    before: Option<&'static str>,
    steps: Vec<StageView>,
}

impl TryPage {
    /// The text of a field.
    fn value(&self, name: &str) -> &str {
        self.sent.text(name)
    }

    /// Whether a field that is closed at first has a text.
    fn has_more(&self) -> bool {
        ["resource", "context"].into_iter().any(|name| !self.value(name).is_empty())
    }

    async fn of(view: &View, sent: Pairs) -> Result<Self, Status> {
        if !view.may(rpc::SIMULATE_DECISION) {
            return Err(refused(view, rpc::SIMULATE_DECISION));
        }
        let policy = match sent.one("policy") {
            Some(id) => Some(Present::read(view, &id.into()).await?.policy),
            None => None,
        };
        let tenant = match &policy {
            Some(policy) => Some(policy.tenant_id.clone()),
            None => tenant_of(view, None).await,
        };
        let tenant = tenant.as_deref();
        let (agents, actions, purposes) = tokio::join!(
            picker(view, tenant, "agents"),
            picker(view, tenant, "actions"),
            picker(view, tenant, "purposes")
        );
        Ok(Self {
            frame: view.frame(t::policies::TRY_REQUEST, Section::Policies),
            name: policy.as_ref().map(name).unwrap_or_default(),
            policy,
            sent,
            pickers: vec![agents, actions, purposes],
            outcome: None,
        })
    }

    /// The request of the form.
    ///
    /// # Errors
    /// The id of the field that is not valid, and the problem.
    fn request(&self) -> Result<DecisionRequest, (&'static str, String)> {
        let text = |name: &str| self.sent.one(name).map(|text| text.trim().to_owned());
        let mut context = self.context().map_err(|problem| ("context", problem))?;
        for name in ["amount", "currency", "jurisdiction"] {
            if text(name).is_some() && context.contains_key(name) {
                return Err(("context", t::policies::own_field(name)));
            }
        }
        if let Some(amount) = text("amount") {
            let number = serde_json::from_str::<serde_json::Number>(&amount);
            let number = number.map_err(|_| ("amount", t::policies::NO_NUMBER.to_owned()))?;
            context.insert("amount".to_owned(), Value::Number(number));
        }
        for name in ["currency", "jurisdiction"] {
            context.extend(text(name).map(|text| (name.to_owned(), Value::from(text))));
        }
        Ok(DecisionRequest {
            subject: text("agent").unwrap_or_default(),
            action: text("action").unwrap_or_default(),
            purpose: text("purpose"),
            resource_id: text("resource"),
            context: Some(Json(context)),
            explain: true,
            ..DecisionRequest::default()
        })
    }

    /// The members of the context that have no field of their own.
    fn context(&self) -> Result<Map<String, Value>, String> {
        let Some(json) = self.sent.one("context") else { return Ok(Map::new()) };
        match unique_json::read(json) {
            Ok(Value::Object(context)) => Ok(context),
            Ok(_) => Err(t::policies::NO_OBJECT.to_owned()),
            Err(error) => Err(t::policies::no_object(error)),
        }
    }
}

async fn picker(view: &View, tenant: Option<&str>, what: &'static str) -> Picker {
    Picker { id: format!("list-{what}"), options: proposals(view, tenant, what).await }
}

pub(super) async fn show(view: View, query: Pairs) -> Response {
    view.answer(TryPage::of(&view, query).await.map(|shown| page(StatusCode::OK, &shown)))
}

pub(super) async fn send(Posted { view, form }: Posted) -> Response {
    view.answer_act(t::policies::NOT_TRIED, sent(&view, form).await)
}

async fn sent(view: &View, form: Pairs) -> Result<Response, Status> {
    let mut shown = TryPage::of(view, form).await?;
    let request = match shown.request() {
        Ok(request) => request,
        Err((field, problem)) => {
            shown.frame = shown.frame.failed(t::policies::NOT_TRIED, problem, Some(field));
            return Ok(page(StatusCode::BAD_REQUEST, &shown));
        }
    };
    let candidate = shown.policy.as_ref().map(|policy| CandidatePolicy {
        policy_id: Some(policy.id.clone()),
        cedar: policy.draft_cedar.clone().or(policy.cedar.clone()).unwrap_or_default(),
        applies_to: Vec::new(),
    });
    let request = SimulateDecisionRequest {
        request: Some(request),
        candidate_policies: candidate.into_iter().collect(),
        ..SimulateDecisionRequest::default()
    };
    let answer = view.calls.call(&request).await;
    let code = match answer {
        Ok(answer) => {
            shown.outcome = Some(found(view, answer));
            StatusCode::OK
        }
        Err(status) => {
            let problem = Problem::of(&status);
            let code = problem.status;
            let fields = FIELDS.into_iter().chain(["context"]);
            let subject = |name: &'static str| if name == "agent" { "subject" } else { name };
            let wrong = problem.members.first().map(|(path, _)| path.clone()).unwrap_or_default();
            let field = fields.into_iter().find(|name| wrong.contains(subject(name)));
            shown.frame = shown.frame.failed(t::policies::NOT_TRIED, problem.in_words(), field);
            code
        }
    };
    Ok(page(code, &shown))
}

fn found(view: &View, answer: SimulateDecisionResponse) -> Outcome {
    let people = answer.approvals_needed.map(|needed| people(needed.count, &needed.roles));
    let before = answer.before.map(|before| outcome(before.decision));
    let smallest = answer.smallest_change.into_iter().flat_map(|change| {
        let further = change.further.into_iter().map(|change| change.sentence);
        [change.sentence].into_iter().chain(further).collect::<Vec<_>>()
    });
    Outcome {
        word: outcome(answer.decision),
        reason: CodeWithMeaning::reason(&answer.reason_code),
        people,
        advice: answer.advice,
        obligations: answer
            .obligations
            .iter()
            .map(|code| CodeWithMeaning::obligation(code))
            .collect(),
        smallest: smallest.collect(),
        before: before.filter(|_| answer.would_change),
        steps: answer.stages.into_iter().map(|stage| step(view, stage)).collect(),
    }
}
