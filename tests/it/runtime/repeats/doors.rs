//! The operations that make decisions, over both transports.

use authority_model::{
    proto::runtime::{
        Actor, AuthorizeRequest, BatchEvaluateRequest, DecisionRequest, EvaluateDecisionRequest,
        EvaluateRequest, decision_service_client::DecisionServiceClient,
        runtime_service_client::RuntimeServiceClient,
    },
    wire::{Json, List},
};
use serde_json::{Value, json};
use tonic::{Request, Status, metadata::MetadataValue, transport::Channel};
use tonic_types::StatusExt;

use crate::support::{AUTHORIZE, BATCH_EVALUATE, Client, EVALUATE, EVALUATE_DECISION, only};

/// The result of an operation: the decision's id, or the refusal's code and message.
pub(super) type Answer = Result<String, (String, String)>;

/// Sends the same request to each REST operation with this idempotency key. Returns their results.
pub(super) async fn over_rest(client: &Client, ask: &Value, key: &str) -> Vec<Answer> {
    let headers = [("idempotency-key", key)];
    let mut authorize = ask.clone();
    let subject = authorize.as_object_mut().unwrap().remove("subject").unwrap();
    authorize["actor"] = only("entity_id", &subject);
    let mut answers = Vec::new();
    for (path, body) in [
        (EVALUATE, ask.clone()),
        (AUTHORIZE, authorize),
        (EVALUATE_DECISION, ask.clone()),
        (BATCH_EVALUATE, json!({"requests": [ask]})),
    ] {
        let (status, answer) = client.call("POST", path, Some(body), &headers).await;
        let batched = answer["results"].get(0).cloned();
        let item = batched.as_ref().map(|item| match &item["error"] {
            Value::Null => item["answer"].clone(),
            refused => refused.clone(),
        });
        let one = item.unwrap_or(answer);
        answers.push(match one["decision_id"].as_str() {
            Some(id) if one["decision"].as_str().unwrap().starts_with("allow") => Ok(id.to_owned()),
            Some(_) => Err((text(&one["decision"]), text(&one["reason_code"]))),
            None => {
                assert!(status == 409 || batched.is_some(), "{path}: {status} {one:#}");
                Err((text(&one["error"]), text(&one["message"])))
            }
        });
    }
    answers
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A gRPC client with one credential.
pub(super) struct Grpc {
    runtime: RuntimeServiceClient<Channel>,
    decisions: DecisionServiceClient<Channel>,
    token: String,
}

impl Grpc {
    pub(super) async fn new(client: &Client) -> Self {
        let channel = Channel::from_shared(client.base.clone()).unwrap().connect().await.unwrap();
        let runtime = RuntimeServiceClient::new(channel.clone());
        let decisions = DecisionServiceClient::new(channel);
        Self { runtime, decisions, token: client.token.clone() }
    }

    fn call<M>(&self, message: M, key: &str) -> Request<M> {
        let mut request = Request::new(message);
        let bearer: MetadataValue<_> = format!("Bearer {}", self.token).parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
        request.metadata_mut().insert("idempotency-key", key.parse().unwrap());
        request
    }

    /// Like [`over_rest`], over gRPC and with the same keys.
    pub(super) async fn answers(&mut self, ask: &Value, key: &str) -> Vec<Answer> {
        let member = |name: &str| ask[name].as_str().map(str::to_owned);
        let always = |name: &str| member(name).unwrap();
        let context = Some(Json(ask["context"].as_object().unwrap().clone()));
        let supported = ask["supported_obligations"].as_array().unwrap();
        let supported_obligations = Some(List(supported.clone()));
        let request = DecisionRequest {
            subject: always("subject"),
            action: always("action"),
            purpose: member("purpose"),
            resource_id: member("resource_id"),
            workspace_id: member("workspace_id"),
            tool_id: member("tool_id"),
            context: context.clone(),
            supported_obligations: supported_obligations.clone(),
            ..DecisionRequest::default()
        };
        let evaluate = EvaluateRequest {
            subject: always("subject"),
            action: always("action"),
            purpose: always("purpose"),
            resource_id: member("resource_id"),
            workspace_id: member("workspace_id"),
            tool_id: member("tool_id"),
            context: context.clone(),
            supported_obligations: supported_obligations.clone(),
            ..EvaluateRequest::default()
        };
        let authorize = AuthorizeRequest {
            actor: Some(Actor { entity_id: always("subject") }),
            action: always("action"),
            purpose: member("purpose"),
            resource_id: member("resource_id"),
            workspace_id: member("workspace_id"),
            tool_id: member("tool_id"),
            context,
            supported_obligations,
            ..AuthorizeRequest::default()
        };
        let refused = |status: Status| {
            let details = status.get_error_details();
            let reason = details.error_info().map(|info| info.reason.clone());
            (reason.unwrap_or_default(), status.message().to_owned())
        };
        let decide = EvaluateDecisionRequest { request: Some(request.clone()) };
        let batch = BatchEvaluateRequest { requests: vec![request] };
        let evaluate = self.call(evaluate, key);
        let evaluated = self.runtime.evaluate(evaluate).await.map_err(refused);
        let authorize = self.call(authorize, key);
        let authorized = self.runtime.authorize(authorize).await.map_err(refused);
        let decide = self.call(decide, key);
        let decided = self.decisions.evaluate_decision(decide).await.map_err(refused);
        let batch = self.call(batch, key);
        let batched = self.runtime.batch_evaluate(batch).await.unwrap().into_inner();
        let item = batched.results.into_iter().next().unwrap();
        vec![
            evaluated.map(|answer| answer.into_inner().decision_id),
            authorized.map(|answer| answer.into_inner().decision_id),
            decided.map(|answer| answer.into_inner().decision_id),
            match item.error {
                Some(error) => Err((error.error, error.message)),
                None => Ok(item.answer.unwrap().decision_id),
            },
        ]
    }
}
