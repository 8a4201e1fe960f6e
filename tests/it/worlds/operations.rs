//! The decision operations: three, over REST and over gRPC.

use authority_model::{
    proto::registry::{ActionDeclaration, ActionRiskClassification},
    proto::runtime::{
        self as proto, ActingOnBehalfOf, Actor, AuthorizeRequest, DecisionRequest,
        EvaluateDecisionRequest, EvaluateRequest, decision_service_client::DecisionServiceClient,
        runtime_service_client::RuntimeServiceClient,
    },
    wire::{Json, Time},
};
use serde_json::{Map, Value, json};
use tonic::{Code, Request, Response, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::support::{TestApp, http};

/// The response of one operation.
pub(crate) struct Answer {
    pub(crate) operation: &'static str,
    /// Whether this operation returns a plain `allow` where others return `allow_with_constraints`.
    pub(crate) folds: bool,
    pub(crate) outcome: Outcome,
}

impl Answer {
    pub(crate) fn verdict(&self) -> Option<(&'static str, &Verdict)> {
        match &self.outcome {
            Outcome::Decided(verdict) => Some((self.operation, verdict)),
            Outcome::Refused { .. } => None,
        }
    }
}

pub(crate) enum Outcome {
    Decided(Verdict),
    /// The REST status and error body; a gRPC status is written as the same.
    Refused {
        status: u16,
        body: Value,
    },
}

/// The parts of a decision that all operations share.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) decision: String,
    pub(crate) reason_code: String,
    /// `None` if the operation does not return it.
    pub(crate) reasons: Option<Vec<String>>,
    pub(crate) obligations: Vec<String>,
    pub(crate) stop_conditions: Vec<String>,
    pub(crate) decision_id: String,
    pub(crate) approval_id: Option<String>,
    /// `None` if nothing is permitted.
    pub(crate) valid_until: Option<String>,
    pub(crate) revision: u64,
}

impl Verdict {
    pub(crate) fn summary(&self) -> String {
        format!("{} {}", self.decision, self.reason_code)
    }
}

pub(crate) struct Operations {
    client: reqwest::Client,
    base: String,
    token: String,
    channel: Channel,
}

impl Operations {
    pub(crate) fn new(app: &TestApp) -> Self {
        let base = String::from(app.base_url());
        Self {
            client: http(),
            channel: Channel::from_shared(base.clone()).unwrap().connect_lazy(),
            token: String::from(app.owner_token()),
            base,
        }
    }

    /// Sends a request in normal form to every operation at once: with this API key, or as the owner.
    pub(crate) async fn ask(&self, normal: &Map<String, Value>, key: Option<&str>) -> Vec<Answer> {
        let token = key.unwrap_or(&self.token);
        let rest = async {
            let (decide, authorize, evaluate) = tokio::join!(
                self.rest("/v1/decisions/evaluate", Value::Object(normal.clone()), token),
                self.rest("/v1/runtime/authorize", authorize_body(normal), token),
                self.rest("/api/v1/runtime/evaluate", Value::Object(normal.clone()), token),
            );
            [
                ("REST decisions/evaluate", false, decide),
                ("REST authorize", false, authorize),
                ("REST evaluate", true, evaluate),
            ]
        };
        let grpc = async {
            let (decide, authorize, evaluate) = tokio::join!(
                self.grpc_decide(normal, token),
                self.grpc_authorize(normal, token),
                self.grpc_evaluate(normal, token),
            );
            [
                ("gRPC EvaluateDecision", false, decide),
                ("gRPC Authorize", false, authorize),
                ("gRPC Evaluate", true, evaluate),
            ]
        };
        let (rest, grpc) = tokio::join!(rest, grpc);
        // Evaluate requires a purpose.
        let fits = |folds: bool| !folds || normal.contains_key("purpose");
        rest.into_iter()
            .chain(grpc)
            .filter(|(_, folds, _)| fits(*folds))
            .map(|(operation, folds, outcome)| Answer { operation, folds, outcome })
            .collect()
    }

    async fn rest(&self, path: &str, body: Value, token: &str) -> Outcome {
        let request = self.client.post(format!("{}{path}", self.base)).bearer_auth(token);
        let answer = request.json(&body).send().await.unwrap();
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap_or_default();
        if status != 200 {
            return Outcome::Refused { status, body };
        }
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let list = |name: &str| {
            let items = body[name].as_array()?;
            Some(items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect())
        };
        Outcome::Decided(Verdict {
            decision: text("decision").unwrap_or_default(),
            reason_code: text("reason_code").unwrap_or_default(),
            reasons: list("reasons"),
            obligations: list("obligations").unwrap_or_default(),
            stop_conditions: list("stop_conditions").unwrap_or_default(),
            decision_id: text("decision_id").unwrap_or_default(),
            approval_id: text("approval_id"),
            valid_until: text("valid_until"),
            revision: body["authority_revision"].as_u64().unwrap_or_default(),
        })
    }

    async fn grpc_evaluate(&self, normal: &Map<String, Value>, token: &str) -> Outcome {
        let request = EvaluateRequest {
            subject: text(normal, "subject").unwrap_or_default(),
            action: text(normal, "action").unwrap_or_default(),
            purpose: text(normal, "purpose").unwrap_or_default(),
            context: context(normal),
            resource_id: text(normal, "resource_id"),
            workspace_id: text(normal, "workspace_id"),
            project_id: text(normal, "project_id"),
            delegation_id: text(normal, "delegation_id"),
            approval_id: text(normal, "approval_id"),
            tool_id: text(normal, "tool_id"),
            action_declaration: declaration(normal),
            action_risk_classification: classification(normal),
            explain: normal.contains_key("explain"),
            at_least_revision: None,
        };
        let mut client = RuntimeServiceClient::new(self.channel.clone());
        decided(client.evaluate(with(request, token)).await, |answer| Verdict {
            decision: word(answer.decision()),
            reason_code: answer.reason_code,
            reasons: None,
            obligations: answer.obligations,
            stop_conditions: answer.stop_conditions,
            decision_id: answer.decision_id,
            approval_id: answer.approval_id,
            valid_until: moment(answer.valid_until),
            revision: answer.authority_revision.into(),
        })
    }

    async fn grpc_authorize(&self, normal: &Map<String, Value>, token: &str) -> Outcome {
        let under = text(normal, "delegation_id");
        let request = AuthorizeRequest {
            actor: text(normal, "subject").map(|entity_id| Actor { entity_id }),
            acting_on_behalf_of: under.map(|delegation_id| ActingOnBehalfOf { delegation_id }),
            action: text(normal, "action").unwrap_or_default(),
            action_declaration: declaration(normal),
            action_risk_classification: classification(normal),
            purpose: text(normal, "purpose"),
            context: context(normal),
            resource_id: text(normal, "resource_id"),
            workspace_id: text(normal, "workspace_id"),
            project_id: text(normal, "project_id"),
            tool_id: text(normal, "tool_id"),
            approval_id: text(normal, "approval_id"),
            explain: normal.contains_key("explain"),
            at_least_revision: None,
        };
        let mut client = RuntimeServiceClient::new(self.channel.clone());
        decided(client.authorize(with(request, token)).await, |answer| Verdict {
            decision: word(answer.decision()),
            reason_code: answer.reason_code,
            reasons: Some(answer.reasons),
            obligations: answer.obligations,
            stop_conditions: answer.stop_conditions,
            decision_id: answer.decision_id,
            approval_id: answer.approval_id,
            valid_until: moment(answer.valid_until),
            revision: answer.authority_revision.into(),
        })
    }

    async fn grpc_decide(&self, normal: &Map<String, Value>, token: &str) -> Outcome {
        let request = DecisionRequest {
            subject: text(normal, "subject").unwrap_or_default(),
            action: text(normal, "action").unwrap_or_default(),
            purpose: text(normal, "purpose"),
            delegation_id: text(normal, "delegation_id"),
            tool_id: text(normal, "tool_id"),
            resource_id: text(normal, "resource_id"),
            workspace_id: text(normal, "workspace_id"),
            project_id: text(normal, "project_id"),
            context: context(normal),
            action_declaration: declaration(normal),
            action_risk_classification: classification(normal),
            approval_id: text(normal, "approval_id"),
            explain: normal.contains_key("explain"),
            at_least_revision: None,
        };
        let request = EvaluateDecisionRequest { request: Some(request) };
        let mut client = DecisionServiceClient::new(self.channel.clone());
        decided(client.evaluate_decision(with(request, token)).await, |answer| Verdict {
            decision: word(answer.decision()),
            reason_code: answer.reason_code,
            reasons: Some(answer.reasons),
            obligations: answer.obligations,
            stop_conditions: answer.stop_conditions,
            decision_id: answer.decision_id,
            approval_id: answer.approval_id,
            valid_until: moment(answer.valid_until),
            revision: answer.authority_revision.into(),
        })
    }
}

/// The normal form as an authorize request.
fn authorize_body(normal: &Map<String, Value>) -> Value {
    let mut body = normal.clone();
    if let Some(subject) = body.remove("subject") {
        body.insert("actor".to_owned(), json!({"entity_id": subject}));
    }
    if let Some(id) = body.remove("delegation_id") {
        body.insert("acting_on_behalf_of".to_owned(), json!({"delegation_id": id}));
    }
    Value::Object(body)
}

fn text(normal: &Map<String, Value>, name: &str) -> Option<String> {
    Some(normal.get(name)?.as_str()?.to_owned())
}

fn context(normal: &Map<String, Value>) -> Option<Json> {
    Some(Json(normal.get("context")?.as_object()?.clone()))
}

fn declaration(normal: &Map<String, Value>) -> Option<ActionDeclaration> {
    let declared = normal.get("action_declaration")?.as_object()?;
    Some(ActionDeclaration {
        effect_class: text(declared, "effect_class"),
        reversibility: text(declared, "reversibility"),
        rollback_available: declared.get("rollback_available").and_then(Value::as_bool),
    })
}

fn classification(normal: &Map<String, Value>) -> Option<ActionRiskClassification> {
    let classified = normal.get("action_risk_classification")?.as_object()?;
    Some(ActionRiskClassification {
        risk_tier: text(classified, "risk_tier"),
        required_oversight_mode: text(classified, "required_oversight_mode"),
    })
}

fn with<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

fn word(decision: proto::Decision) -> String {
    let name = decision.as_str_name();
    name.strip_prefix("DECISION_").unwrap_or(name).to_lowercase()
}

fn moment(time: Option<Time>) -> Option<String> {
    time.map(|time| time.to_string())
}

fn decided<T>(answer: Result<Response<T>, Status>, read: impl FnOnce(T) -> Verdict) -> Outcome {
    match answer {
        Ok(answer) => Outcome::Decided(read(answer.into_inner())),
        Err(status) => refused(&status),
    }
}

/// A gRPC error as its REST equivalent.
fn refused(status: &Status) -> Outcome {
    let details = status.get_error_details();
    let code = details.error_info().map(|info| info.reason.clone()).unwrap_or_default();
    let violations = details.bad_request().map(|bad| bad.field_violations.clone());
    let fields: Vec<_> = violations
        .unwrap_or_default()
        .into_iter()
        .map(|violation| {
            // The body of decisions/evaluate is a member of the message.
            let field = violation.field.trim_start_matches("request.").to_owned();
            json!({"field": field, "problem": violation.description})
        })
        .collect();
    let number = match status.code() {
        Code::InvalidArgument => 400,
        Code::Unauthenticated => 401,
        Code::PermissionDenied => 403,
        Code::NotFound => 404,
        Code::Aborted | Code::AlreadyExists => 409,
        Code::Unavailable => 503,
        _ => 500,
    };
    let body = json!({"error": code, "message": status.message(), "details": fields});
    Outcome::Refused { status: number, body }
}
