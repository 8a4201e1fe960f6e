//! Methods of a client for the service's operations, named as in the protos.
//!
//! The owner, the people of a tenant and API keys have different paths for an operation
//! ([`Surface`]). Bodies are JSON. A test can also send members that the protos do not have.

use authority_client::{SURFACE, Surface};
use serde_json::{Value, json};

use super::Client;

/// The status of an answer and its body.
type Answer = (u16, Value);

// Paths that tests also name: in tables of operations, in their own requests, or for a stream.
pub(crate) const EVALUATE: &str = "/api/v1/runtime/evaluate";
pub(crate) const AUTHORIZE: &str = "/v1/runtime/authorize";
pub(crate) const EVALUATE_DECISION: &str = "/v1/decisions/evaluate";
pub(crate) const BATCH_EVALUATE: &str = "/v1/decisions:batchEvaluate";
/// The path for API keys.
pub(crate) const SIMULATE_DECISION: &str = "/v1/decisions:simulate";
pub(crate) const SEAL_DECISION: &str = "/v1/evidence/seal";
pub(crate) const MINT_REPLAY_PROOF: &str = "/v1/replay/proof";
/// The path for API keys.
pub(crate) const STREAM_EVENTS: &str = "/v1/events:stream";
/// The path for the demonstration tenant.
pub(crate) const CHECKPOINT: &str = "/v1/log/acme/checkpoint";
pub(crate) const STREAM_NOTIFICATIONS: &str = "/api/v1/app/notifications:stream";

fn queried(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

impl Client {
    /// Returns the path for the credential of this client.
    fn at(&self, path: &str) -> String {
        format!("/{}", Surface::of(&self.token).path(&[SURFACE, path]).join("/"))
    }

    async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, None, &[]).await
    }

    pub(crate) async fn list_approvals(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("approvals"), query)).await
    }
    pub(crate) async fn get_approval(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("approvals/{id}"))).await
    }
    pub(crate) async fn approve_approval(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("approvals/{id}/approve")), json!({})).await
    }
    pub(crate) async fn decline_approval(&self, id: &str, reason: &str) -> Answer {
        self.post(&self.at(&format!("approvals/{id}/decline")), json!({"reason": reason})).await
    }
    pub(crate) async fn act_on_approval(&self, id: &str, verb: &str, body: Value) -> Answer {
        self.post(&self.at(&format!("approvals/{id}/{verb}")), body).await
    }
    pub(crate) async fn list_asked_approvals(&self, query: &str) -> Answer {
        self.get(&queried("/v1/approvals", query)).await
    }
    pub(crate) async fn cancel_approval(&self, id: &str) -> Answer {
        self.post(&format!("/v1/approvals/{id}/cancel"), json!({})).await
    }

    pub(crate) async fn list_delegations(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("delegations"), query)).await
    }
    pub(crate) async fn create_delegation(&self, body: Value) -> Answer {
        self.post(&self.at("delegations"), body).await
    }
    pub(crate) async fn get_delegation(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("delegations/{id}"))).await
    }
    pub(crate) async fn revoke_delegation(&self, id: &str, reason: Option<&str>) -> Answer {
        let body = reason.map_or(json!({}), |reason| json!({"reason": reason}));
        self.post(&self.at(&format!("delegations/{id}/revoke")), body).await
    }
    pub(crate) async fn suspend_delegation(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("delegations/{id}/suspend")), json!({})).await
    }
    pub(crate) async fn reinstate_delegation(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("delegations/{id}/reinstate")), json!({})).await
    }
    pub(crate) async fn narrow_delegation(&self, id: &str, body: Value) -> Answer {
        self.post(&format!("/api/v1/delegations/{id}/narrow"), body).await
    }
    pub(crate) async fn renew_delegation(&self, id: &str, body: Value) -> Answer {
        self.post(&self.at(&format!("delegations/{id}/renew")), body).await
    }
    pub(crate) async fn approve_delegation(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("delegations/{id}/approve")), json!({})).await
    }
    pub(crate) async fn act_on_delegation(&self, id: &str, verb: &str, body: Value) -> Answer {
        self.post(&self.at(&format!("delegations/{id}/{verb}")), body).await
    }
    pub(crate) async fn get_blast_radius(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("delegations/{id}/blast-radius"))).await
    }

    pub(crate) async fn list_rate_limits(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("rate-limits"), query)).await
    }

    pub(crate) async fn list_events(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("events"), query)).await
    }
    pub(crate) async fn get_event_retention(&self) -> Answer {
        self.get("/api/v1/app/event-retention").await
    }

    pub(crate) async fn list_message_channels(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/app/message-channels", query)).await
    }
    pub(crate) async fn create_message_channel(&self, body: Value) -> Answer {
        self.post("/api/v1/app/message-channels", body).await
    }

    pub(crate) async fn list_notifications(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/app/notifications", query)).await
    }

    pub(crate) async fn create_push_subscription(&self, body: Value) -> Answer {
        self.post("/api/v1/app/notifications/push-subscriptions", body).await
    }

    pub(crate) async fn test_webhook_endpoint(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("webhook-endpoints/{id}:test")), json!({})).await
    }
    pub(crate) async fn list_webhook_deliveries(&self, id: &str, query: &str) -> Answer {
        self.get(&queried(&self.at(&format!("webhook-endpoints/{id}/deliveries")), query)).await
    }
    pub(crate) async fn redrive_webhook_delivery(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("deliveries/{id}:redrive")), json!({})).await
    }
    pub(crate) async fn replay_webhook_endpoint(&self, id: &str, body: Value) -> Answer {
        self.post(&self.at(&format!("webhook-endpoints/{id}:replay")), body).await
    }
    pub(crate) async fn replay_event(&self, id: &str, body: Value) -> Answer {
        self.post(&self.at(&format!("events/{id}:replay")), body).await
    }

    pub(crate) async fn list_webhook_endpoints(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("webhook-endpoints"), query)).await
    }
    pub(crate) async fn create_webhook_endpoint(&self, body: Value) -> Answer {
        self.post(&self.at("webhook-endpoints"), body).await
    }
    pub(crate) async fn delete_webhook_endpoint(&self, id: &str) -> Answer {
        self.delete(&self.at(&format!("webhook-endpoints/{id}"))).await
    }

    pub(crate) async fn list_archives(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("archives"), query)).await
    }

    pub(crate) async fn seal_decision(&self, decision_id: &str) -> Answer {
        self.post(SEAL_DECISION, json!({"decision_id": decision_id})).await
    }
    pub(crate) async fn get_evidence(&self, id: &str) -> Answer {
        self.get(&format!("/v1/evidence/{id}")).await
    }
    pub(crate) async fn get_evidence_bundle(&self, id: &str) -> Answer {
        self.get(&format!("/v1/evidence/{id}?bundle=true")).await
    }
    /// Returns the evidence as it is sent.
    pub(crate) async fn evidence_text(&self, id: &str, query: &str) -> (u16, String) {
        self.text("GET", &queried(&format!("/v1/evidence/{id}"), query), None).await
    }
    pub(crate) async fn mint_replay_proof(&self, body: Value) -> Answer {
        self.post(MINT_REPLAY_PROOF, body).await
    }
    pub(crate) async fn get_checkpoint(&self, slug: &str) -> Answer {
        self.get(&format!("/v1/log/{slug}/checkpoint")).await
    }
    pub(crate) async fn get_consistency_proof(&self, slug: &str, query: &str) -> Answer {
        self.get(&queried(&format!("/v1/log/{slug}/consistency"), query)).await
    }

    pub(crate) async fn list_api_keys(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("api-keys"), query)).await
    }
    pub(crate) async fn create_api_key(&self, body: Value) -> Answer {
        self.post(&self.at("api-keys"), body).await
    }
    pub(crate) async fn get_api_key(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("api-keys/{id}"))).await
    }
    pub(crate) async fn update_api_key(&self, id: &str, body: Value) -> Answer {
        self.patch(&self.at(&format!("api-keys/{id}")), body).await
    }
    pub(crate) async fn revoke_api_key(&self, id: &str) -> Answer {
        self.delete(&self.at(&format!("api-keys/{id}"))).await
    }
    pub(crate) async fn rotate_api_key(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("api-keys/{id}/rotate")), json!({})).await
    }

    pub(crate) async fn list_keys(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/keys", query)).await
    }
    pub(crate) async fn create_key(&self, body: Value) -> Answer {
        self.post("/api/v1/keys", body).await
    }
    pub(crate) async fn list_key_rotations(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/key-rotation", query)).await
    }
    pub(crate) async fn schedule_key_rotation(&self, body: Value) -> Answer {
        self.post("/api/v1/key-rotation", body).await
    }
    pub(crate) async fn complete_key_rotation(&self, id: &str) -> Answer {
        self.post(&format!("/api/v1/key-rotation/{id}/complete"), json!({})).await
    }
    pub(crate) async fn cancel_key_rotation(&self, id: &str) -> Answer {
        self.post(&format!("/api/v1/key-rotation/{id}/cancel"), json!({})).await
    }

    pub(crate) async fn list_consultants(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/consultants", query)).await
    }
    pub(crate) async fn create_consultant(&self, body: Value) -> Answer {
        self.post("/api/v1/consultants", body).await
    }

    pub(crate) async fn list_leads(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/consultant-leads", query)).await
    }
    pub(crate) async fn create_lead(&self, body: Value) -> Answer {
        self.post("/api/v1/consultant-leads", body).await
    }
    pub(crate) async fn get_lead(&self, id: &str) -> Answer {
        self.get(&format!("/api/v1/consultant-leads/{id}")).await
    }
    pub(crate) async fn convert_lead(&self, id: &str, body: Value) -> Answer {
        self.post(&format!("/api/v1/consultant-leads/{id}/convert"), body).await
    }

    pub(crate) async fn erase_personal_data(&self, body: Value) -> Answer {
        self.post("/api/v1/personal-data:erase", body).await
    }
    pub(crate) async fn withdraw_consent(&self, body: Value) -> Answer {
        self.post("/api/v1/personal-data:withdraw-consent", body).await
    }
    pub(crate) async fn list_erasures(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/erasures", query)).await
    }

    pub(crate) async fn get_tenant_brand(&self) -> Answer {
        self.get("/api/v1/app/white-label-config").await
    }

    pub(crate) async fn create_coupling_check(&self, body: Value) -> Answer {
        self.post("/api/v1/reality-coupling-checks", body).await
    }
    pub(crate) async fn get_coupling_check(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("reality-coupling-checks/{id}"))).await
    }
    pub(crate) async fn run_coupling_check(&self, id: &str) -> Answer {
        self.post(&format!("/api/v1/reality-coupling-checks/{id}/check"), json!({})).await
    }
    pub(crate) async fn decide_coupling_check(&self, id: &str, body: Value) -> Answer {
        self.post(&format!("/api/v1/reality-coupling-checks/{id}/decide"), body).await
    }

    pub(crate) async fn list_drift_events(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("stable-drift-events"), query)).await
    }
    pub(crate) async fn create_drift_event(&self, body: Value) -> Answer {
        self.post("/api/v1/stable-drift-events", body).await
    }
    pub(crate) async fn get_drift_event(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("stable-drift-events/{id}"))).await
    }
    pub(crate) async fn delete_drift_event(&self, id: &str) -> Answer {
        self.delete(&format!("/api/v1/stable-drift-events/{id}")).await
    }
    pub(crate) async fn resolve_drift_event(&self, id: &str, body: Value) -> Answer {
        self.post(&format!("/api/v1/stable-drift-events/{id}/resolve"), body).await
    }
    pub(crate) async fn act_on_drift_event(&self, id: &str, verb: &str, body: Value) -> Answer {
        self.post(&format!("/api/v1/stable-drift-events/{id}/{verb}"), body).await
    }

    pub(crate) async fn list_reality_anchors(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("reality-anchors"), query)).await
    }
    pub(crate) async fn create_reality_anchor(&self, body: Value) -> Answer {
        self.post("/api/v1/reality-anchors", body).await
    }
    pub(crate) async fn get_reality_anchor(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("reality-anchors/{id}"))).await
    }
    pub(crate) async fn update_reality_anchor(&self, id: &str, body: Value) -> Answer {
        self.patch(&format!("/api/v1/reality-anchors/{id}"), body).await
    }
    pub(crate) async fn verify_reality_anchor(&self, id: &str) -> Answer {
        self.post(&format!("/api/v1/reality-anchors/{id}/verify"), json!({})).await
    }
    pub(crate) async fn deprecate_reality_anchor(&self, id: &str) -> Answer {
        self.post(&format!("/api/v1/reality-anchors/{id}/deprecate"), json!({})).await
    }

    pub(crate) async fn list_reality_snapshots(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("reality-snapshots"), query)).await
    }
    pub(crate) async fn create_reality_snapshot(&self, body: Value) -> Answer {
        self.post("/api/v1/reality-snapshots", body).await
    }
    pub(crate) async fn feed_reality_snapshot(&self, body: Value) -> Answer {
        self.post("/v1/reality-snapshots", body).await
    }
    pub(crate) async fn get_reality_snapshot(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("reality-snapshots/{id}"))).await
    }
    pub(crate) async fn delete_reality_snapshot(&self, id: &str) -> Answer {
        self.delete(&format!("/api/v1/reality-snapshots/{id}")).await
    }
    pub(crate) async fn verify_reality_snapshot(&self, id: &str) -> Answer {
        self.post(&format!("/api/v1/reality-snapshots/{id}/verify"), json!({})).await
    }

    pub(crate) async fn create_acts_in(&self, body: Value) -> Answer {
        self.post("/api/v1/relationships/acts-in", body).await
    }

    pub(crate) async fn create_applies_to(&self, body: Value) -> Answer {
        self.post("/api/v1/relationships/applies-to", body).await
    }

    pub(crate) async fn list_audit_streams(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/audit-streams", query)).await
    }
    pub(crate) async fn create_audit_stream(&self, body: Value) -> Answer {
        self.post("/api/v1/audit-streams", body).await
    }
    pub(crate) async fn get_audit_stream(&self, id: &str) -> Answer {
        self.get(&format!("/api/v1/audit-streams/{id}")).await
    }
    pub(crate) async fn update_audit_stream(&self, id: &str, body: Value) -> Answer {
        self.patch(&format!("/api/v1/audit-streams/{id}"), body).await
    }

    pub(crate) async fn create_billing_account(&self, body: Value) -> Answer {
        self.post("/api/v1/billing-accounts", body).await
    }

    pub(crate) async fn create_external_app(&self, body: Value) -> Answer {
        self.post(&self.at("external-apps"), body).await
    }
    pub(crate) async fn get_external_app(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("external-apps/{id}"))).await
    }
    pub(crate) async fn update_external_app(&self, id: &str, body: Value) -> Answer {
        self.patch(&self.at(&format!("external-apps/{id}")), body).await
    }

    pub(crate) async fn create_granted_access_to(&self, body: Value) -> Answer {
        self.post("/api/v1/relationships/granted-access-to", body).await
    }

    pub(crate) async fn get_mcp_server(&self, slug: &str) -> Answer {
        self.get(&format!("/v1/mcp-servers/{slug}")).await
    }
    pub(crate) async fn observe_mcp_server(&self, slug: &str, body: Value) -> Answer {
        self.post(&format!("/v1/mcp-servers/{slug}:observe"), body).await
    }

    pub(crate) async fn create_member_of(&self, body: Value) -> Answer {
        self.post("/api/v1/relationships/member-of", body).await
    }

    pub(crate) async fn create_model(&self, body: Value) -> Answer {
        self.post("/api/v1/models", body).await
    }

    pub(crate) async fn list_policies(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("policies"), query)).await
    }
    pub(crate) async fn create_policy(&self, body: Value) -> Answer {
        self.post(&self.at("policies"), body).await
    }
    pub(crate) async fn get_policy(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("policies/{id}"))).await
    }
    pub(crate) async fn update_policy(&self, id: &str, body: Value) -> Answer {
        self.patch(&self.at(&format!("policies/{id}")), body).await
    }
    pub(crate) async fn activate_policy(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("policies/{id}/activate")), json!({})).await
    }
    pub(crate) async fn observe_policy(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("policies/{id}/observe")), json!({})).await
    }
    pub(crate) async fn validate_policy(&self, body: Value) -> Answer {
        self.post(&self.at("policies:validate"), body).await
    }

    pub(crate) async fn list_principals(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("principals"), query)).await
    }
    pub(crate) async fn create_principal(&self, body: Value) -> Answer {
        self.post(&self.at("principals"), body).await
    }
    pub(crate) async fn get_principal(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("principals/{id}"))).await
    }
    pub(crate) async fn update_principal(&self, id: &str, body: Value) -> Answer {
        self.patch(&self.at(&format!("principals/{id}")), body).await
    }
    pub(crate) async fn delete_principal(&self, id: &str) -> Answer {
        self.delete(&format!("/api/v1/principals/{id}")).await
    }

    pub(crate) async fn list_purposes(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("purposes"), query)).await
    }
    pub(crate) async fn create_purpose(&self, body: Value) -> Answer {
        self.post(&self.at("purposes"), body).await
    }
    pub(crate) async fn update_purpose(&self, id: &str, body: Value) -> Answer {
        self.patch(&self.at(&format!("purposes/{id}")), body).await
    }

    pub(crate) async fn list_quarantines(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("quarantines"), query)).await
    }
    pub(crate) async fn create_quarantine(&self, body: Value) -> Answer {
        self.post(&self.at("quarantines"), body).await
    }
    pub(crate) async fn get_quarantine(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("quarantines/{id}"))).await
    }
    pub(crate) async fn release_quarantine(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("quarantines/{id}/release")), json!({})).await
    }
    pub(crate) async fn get_stop_impact(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("stop-impact"), query)).await
    }

    pub(crate) async fn create_resource(&self, body: Value) -> Answer {
        self.post(&self.at("resources"), body).await
    }

    pub(crate) async fn list_stop_signals(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("stop-signals"), query)).await
    }
    pub(crate) async fn create_stop_signal(&self, body: Value) -> Answer {
        self.post(&self.at("stop-signals"), body).await
    }
    pub(crate) async fn lift_stop_signal(&self, id: &str) -> Answer {
        self.post(&self.at(&format!("stop-signals/{id}/lift")), json!({})).await
    }

    pub(crate) async fn create_team(&self, body: Value) -> Answer {
        self.post(&self.at("teams"), body).await
    }
    pub(crate) async fn update_team(&self, id: &str, body: Value) -> Answer {
        self.patch(&self.at(&format!("teams/{id}")), body).await
    }
    pub(crate) async fn delete_team(&self, id: &str) -> Answer {
        self.delete(&format!("/api/v1/teams/{id}")).await
    }

    pub(crate) async fn list_tenants(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/tenants", query)).await
    }
    pub(crate) async fn create_tenant(&self, body: Value) -> Answer {
        self.post("/api/v1/tenants", body).await
    }
    pub(crate) async fn get_tenant(&self, id: &str) -> Answer {
        self.get(&format!("/api/v1/tenants/{id}")).await
    }
    pub(crate) async fn update_tenant(&self, id: &str, body: Value) -> Answer {
        self.patch(&format!("/api/v1/tenants/{id}"), body).await
    }
    pub(crate) async fn delete_tenant(&self, id: &str) -> Answer {
        self.delete(&format!("/api/v1/tenants/{id}")).await
    }

    pub(crate) async fn list_tools(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("tools"), query)).await
    }
    pub(crate) async fn create_tool(&self, body: Value) -> Answer {
        self.post(&self.at("tools"), body).await
    }
    pub(crate) async fn get_tool(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("tools/{id}"))).await
    }
    pub(crate) async fn update_tool(&self, id: &str, body: Value) -> Answer {
        self.patch(&self.at(&format!("tools/{id}")), body).await
    }
    pub(crate) async fn delete_tool(&self, id: &str) -> Answer {
        self.delete(&format!("/api/v1/tools/{id}")).await
    }
    pub(crate) async fn pin_tool(&self, id: &str, body: Value) -> Answer {
        self.post(&self.at(&format!("tools/{id}/pin")), body).await
    }
    pub(crate) async fn find_unknown_names(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("unknown-names"), query)).await
    }

    pub(crate) async fn list_uses(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/relationships/uses", query)).await
    }
    pub(crate) async fn create_uses(&self, body: Value) -> Answer {
        self.post(&self.at("relationships/uses"), body).await
    }

    pub(crate) async fn create_workspace(&self, body: Value) -> Answer {
        self.post("/api/v1/workspaces", body).await
    }

    pub(crate) async fn get_entity(&self, id: &str) -> Answer {
        self.get(&format!("/v1/entities/{id}")).await
    }
    pub(crate) async fn list_entity_history(&self, id: &str, query: &str) -> Answer {
        self.get(&queried(&self.at(&format!("entities/{id}/history")), query)).await
    }
    pub(crate) async fn get_authority(&self, id: &str) -> Answer {
        self.get(&format!("/v1/authority/{id}")).await
    }
    pub(crate) async fn admit_purpose(&self, body: Value) -> Answer {
        self.post("/v1/purpose/admit", body).await
    }

    pub(crate) async fn evaluate_decision(&self, body: Value) -> Answer {
        self.post(EVALUATE_DECISION, body).await
    }
    pub(crate) async fn get_decision(&self, id: &str) -> Answer {
        self.get(&format!("/v1/decisions/{id}")).await
    }
    pub(crate) async fn inspect_decision(&self, id: &str) -> Answer {
        self.get(&self.at(&format!("decisions/{id}"))).await
    }
    pub(crate) async fn report_decision(&self, id: &str, body: Value) -> Answer {
        self.post(&format!("/v1/decisions/{id}:report"), body).await
    }
    pub(crate) async fn list_decisions(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("decisions"), query)).await
    }
    pub(crate) async fn simulate_decision(&self, body: Value) -> Answer {
        self.post(&self.at("decisions:simulate"), body).await
    }
    pub(crate) async fn impact_policies(&self, body: Value) -> Answer {
        self.post(&self.at("policies:impact"), body).await
    }
    pub(crate) async fn list_reason_codes(&self, query: &str) -> Answer {
        self.get(&queried("/v1/reason-codes", query)).await
    }

    pub(crate) async fn evaluate(&self, body: Value) -> Answer {
        self.post(EVALUATE, body).await
    }
    pub(crate) async fn evaluate_with(&self, body: Value, headers: &[(&str, &str)]) -> Answer {
        self.call("POST", EVALUATE, Some(body), headers).await
    }
    pub(crate) async fn authorize(&self, body: Value) -> Answer {
        self.post(AUTHORIZE, body).await
    }
    pub(crate) async fn batch_evaluate(&self, body: Value) -> Answer {
        self.post(BATCH_EVALUATE, body).await
    }

    pub(crate) async fn search(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("search"), query)).await
    }

    pub(crate) async fn list_usage(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("usage"), query)).await
    }
    pub(crate) async fn rank_usage(&self, query: &str) -> Answer {
        self.get(&queried(&self.at("usage:rank"), query)).await
    }

    pub(crate) async fn list_state_machines(&self, query: &str) -> Answer {
        self.get(&queried("/api/v1/state-machines", query)).await
    }
}
