//! Bodies of requests that many tests make. [`Members`] sets the members that differ between tests.
//! Records belong to the demonstration tenant. A test of another tenant sets `tenant_id`.

use authority_model::{proto::runtime::EvaluateRequest, wire::Json};
use serde::Serialize;
use serde_json::{Value, json};

/// The demonstration tenant and the agent of its banner.
pub(crate) const TENANT: &str = "svc:tenant:acme";
pub(crate) const AGENT: &str = "svc:agent:acme:invoice-bot";

pub(crate) trait Members {
    /// Sets a member.
    #[must_use]
    fn with(self, name: &str, value: impl Serialize) -> Self;

    /// Sets all members of another object.
    #[must_use]
    fn and(self, more: &Value) -> Self;
}

impl Members for Value {
    fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self[name] = json!(value);
        self
    }

    #[track_caller]
    fn and(mut self, more: &Value) -> Self {
        self.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self
    }
}

/// Returns a body without members.
pub(crate) fn nothing() -> Value {
    json!({})
}

/// Returns a body with one member.
pub(crate) fn only(name: &str, value: impl Serialize) -> Value {
    nothing().with(name, value)
}

/// Returns a request for a payment in the demonstration tenant, like those in the banner.
pub(crate) fn asking(amount: f64, jurisdiction: &str) -> Value {
    json!({
        "subject": AGENT,
        "action": "payment.execute",
        "purpose": "invoice-settlement",
        "context": {"amount": amount, "currency": "EUR", "jurisdiction": jurisdiction},
    })
}

/// Returns the same request as a gRPC message, with any context.
#[track_caller]
pub(crate) fn evaluate(context: &Value) -> EvaluateRequest {
    EvaluateRequest {
        subject: AGENT.to_owned(),
        action: "payment.execute".to_owned(),
        purpose: "invoice-settlement".to_owned(),
        context: Some(Json(context.as_object().unwrap().clone())),
        ..EvaluateRequest::default()
    }
}

pub(crate) fn new_tenant(name: &str, slug: &str) -> Value {
    json!({"name": name, "slug": slug})
}

pub(crate) fn new_principal(class: &str, display_name: &str) -> Value {
    json!({"tenant_id": TENANT, "principal_class": class, "display_name": display_name})
}

/// Returns an agent with this name in its id.
pub(crate) fn new_agent(name: &str) -> Value {
    new_principal("agent", name).with("name", name)
}

pub(crate) fn new_api_key(label: &str, scopes: &[&str]) -> Value {
    json!({"tenant_id": TENANT, "label": label, "scopes": scopes})
}

pub(crate) fn new_delegation(delegator: &str, delegate: &str, actions: &[&str]) -> Value {
    json!({"tenant_id": TENANT, "delegator_id": delegator, "delegate_id": delegate,
           "actions": actions})
}

pub(crate) fn new_policy(regime: &str, cedar: &str) -> Value {
    json!({"tenant_id": TENANT, "regime": regime, "cedar": cedar})
}

pub(crate) fn new_purpose(slug: &str, name: &str, actions: &[&str]) -> Value {
    json!({"tenant_id": TENANT, "slug": slug, "name": name, "allowed_actions": actions})
}

pub(crate) fn new_stop(actor: &str, reason: &str) -> Value {
    json!({"tenant_id": TENANT, "actor_id": actor, "reason": reason})
}

pub(crate) fn new_tool(name: &str, signature: &str, actions: &[&str]) -> Value {
    json!({"tenant_id": TENANT, "name": name, "function_signature": signature, "actions": actions})
}

/// Returns a row that lets an agent perform actions.
pub(crate) fn new_uses(agent: &str, action: &str) -> Value {
    json!({"agent_id": agent, "used_id": action, "used_kind": "action"})
}
