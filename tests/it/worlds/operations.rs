//! Calls the three operations that make decisions, each over REST and over gRPC.
//!
//! Both transports send the same JSON. Over REST it is sent as it is. Over gRPC, `prost-reflect`
//! converts it to a message, and converts the response to JSON. Each operation is therefore defined
//! once, and both transports must give the same result.

use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions,
    prost::Message as _,
};
use serde_json::{Map, Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::{
    AUTHORIZE, EVALUATE, EVALUATE_DECISION, TestApp, only,
    wire::{Caller, reason},
};

/// The response of one operation.
pub(crate) struct Answer {
    /// The operation's path over REST, or over gRPC.
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
    /// The REST status and error body. A gRPC status is converted to them.
    Refused {
        status: u16,
        body: Value,
    },
}

/// The parts of a decision that all operations return.
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
    /// `None` if the decision does not permit.
    pub(crate) valid_until: Option<String>,
    pub(crate) revision: u64,
}

impl Verdict {
    pub(crate) fn summary(&self) -> String {
        format!("{} {}", self.decision, self.reason_code)
    }

    fn read(answer: &Value) -> Self {
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        let list = |name: &str| {
            let items = answer[name].as_array()?;
            Some(items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect())
        };
        // REST writes an enum value without the enum's prefix.
        let decision = text("decision").unwrap_or_default();
        Self {
            decision: decision.trim_start_matches("DECISION_").to_lowercase(),
            reason_code: text("reason_code").unwrap_or_default(),
            reasons: list("reasons"),
            obligations: list("obligations").unwrap_or_default(),
            stop_conditions: list("stop_conditions").unwrap_or_default(),
            decision_id: text("decision_id").unwrap_or_default(),
            approval_id: text("approval_id"),
            valid_until: text("valid_until"),
            revision: answer["authority_revision"].as_u64().unwrap_or_default(),
        }
    }
}

struct Operation {
    path: &'static str,
    rpc: &'static str,
    folds: bool,
    /// Builds the REST body from a request in normal form.
    body: fn(&Map<String, Value>) -> Value,
    /// If only one field of the message is the REST body, the name of that field.
    member: Option<&'static str>,
}

const OPERATIONS: [Operation; 3] = [
    Operation {
        path: EVALUATE_DECISION,
        rpc: "/authority.runtime.v1.DecisionService/EvaluateDecision",
        folds: false,
        body: whole,
        member: Some("request"),
    },
    Operation {
        path: AUTHORIZE,
        rpc: "/authority.runtime.v1.RuntimeService/Authorize",
        folds: false,
        body: authorize_body,
        member: None,
    },
    Operation {
        path: EVALUATE,
        rpc: "/authority.runtime.v1.RuntimeService/Evaluate",
        folds: true,
        body: whole,
        member: None,
    },
];

pub(crate) struct Operations {
    owner: Caller,
    pool: DescriptorPool,
}

impl Operations {
    pub(crate) fn new(app: &TestApp) -> Self {
        let pool = DescriptorPool::decode(authority_model::DESCRIPTORS).unwrap();
        Self { owner: Caller::owner(app), pool }
    }

    /// Sends a request in normal form to every operation at once, with this API key, or else as the
    /// owner.
    pub(crate) async fn ask(&self, normal: &Map<String, Value>, key: Option<&str>) -> Vec<Answer> {
        let caller = key.map_or_else(|| self.owner.clone(), |key| self.owner.with(Some(key)));
        // `Evaluate` requires a purpose. A request without a purpose is not sent to it.
        let fits = |operation: &&Operation| !operation.folds || normal.contains_key("purpose");
        let asked = OPERATIONS.iter().filter(fits).map(async |operation| {
            let body = (operation.body)(normal);
            let (rest, grpc) =
                tokio::join!(rest(&caller, operation, &body), self.grpc(&caller, operation, &body));
            let answer =
                |name, outcome| Answer { operation: name, folds: operation.folds, outcome };
            [answer(operation.path, rest), answer(operation.rpc, grpc)]
        });
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
    }

    async fn grpc(&self, caller: &Caller, operation: &Operation, body: &Value) -> Outcome {
        let (input, output) = self.messages(operation.rpc);
        let body = match operation.member {
            Some(member) => json!({ member: body }),
            None => body.clone(),
        };
        let known = DeserializeOptions::new().deny_unknown_fields(false);
        let message = DynamicMessage::deserialize_with_options(input, body, &known).unwrap();
        let answer = match caller.grpc(operation.rpc, message.encode_to_vec()).await {
            Ok(answer) => DynamicMessage::decode(output, answer).unwrap(),
            Err(status) => return refused(&status),
        };
        let named = SerializeOptions::new().use_proto_field_name(true).skip_default_fields(false);
        let json = answer.serialize_with_options(serde_json::value::Serializer, &named);
        Outcome::Decided(Verdict::read(&json.unwrap()))
    }

    /// Returns the types of an RPC's request and response messages.
    fn messages(&self, rpc: &str) -> (MessageDescriptor, MessageDescriptor) {
        let (service, method) = rpc.trim_start_matches('/').split_once('/').unwrap();
        let service = self.pool.get_service_by_name(service).unwrap();
        let method = service.methods().find(|known| known.name() == method).unwrap();
        (method.input(), method.output())
    }
}

async fn rest(caller: &Caller, operation: &Operation, body: &Value) -> Outcome {
    let body = body.to_string().into_bytes();
    match caller.rest("POST", operation.path, Some(body)).await {
        (200, answer) => Outcome::Decided(Verdict::read(&answer)),
        (status, body) => Outcome::Refused { status, body },
    }
}

fn whole(normal: &Map<String, Value>) -> Value {
    Value::Object(normal.clone())
}

/// Converts the normal form to an authorize request.
fn authorize_body(normal: &Map<String, Value>) -> Value {
    let mut body = normal.clone();
    if let Some(subject) = body.remove("subject") {
        body.insert("actor".to_owned(), only("entity_id", &subject));
    }
    if let Some(id) = body.remove("delegation_id") {
        body.insert("acting_on_behalf_of".to_owned(), only("delegation_id", &id));
    }
    Value::Object(body)
}

/// Converts a gRPC error to the REST error that corresponds to it.
fn refused(status: &Status) -> Outcome {
    let details = status.get_error_details();
    let violations = details.bad_request().map(|bad| bad.field_violations.clone());
    let details: Vec<_> = violations
        .unwrap_or_default()
        .into_iter()
        .map(|violation| {
            // Over gRPC, the body of decisions/evaluate is a field of the message, which REST does
            // not name.
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
    let body = json!({"error": reason(status), "message": status.message(), "details": details});
    Outcome::Refused { status: number, body }
}
