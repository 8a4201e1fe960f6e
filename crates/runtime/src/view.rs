//! Determines which fields of a record a caller may see. The installation's owner sees all of them.
//! A tenant's users and keys see the fields that are listed here for the record's kind. For an
//! unlisted kind, they only see that the record exists. A new column therefore stays hidden until
//! it is listed.

use authority_api::identity::{Caller, CallerKind, Role};
use authority_model::{
    proto::{delegation::Delegation, keys::ApiKey, registry::Purpose},
    record::Record as _,
};
use serde_json::{Map, Value};

/// The visible fields of a kind of record.
#[derive(Default)]
struct View {
    /// Shown to everyone in the tenant: the fields that a runtime needs for its calls. They contain
    /// no personal data, no free text for people and no contract data.
    all: &'static [&'static str],
    /// Shown to [`View::keepers`] in addition.
    kept: &'static [&'static str],
    keepers: Keepers,
    /// The fields that name the affected principals. An API key bound to other principals can't see
    /// the record.
    about: &'static [&'static str],
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Keepers {
    /// A tenant's admins and auditors.
    #[default]
    Readers,
    /// Only the tenant's admins.
    Admins,
}

/// The fields of records of any kind.
const ALWAYS: [&str; 2] = ["id", "state"];
/// The fields of records of any known kind.
const TIMES: [&str; 4] = ["tenant_id", "created_at", "updated_at", "deleted_at"];
/// The fields of a tenant's own records, for its keepers.
const KEPT: [&str; 4] = ["notes", "tags", "metadata", "created_by"];

#[expect(clippy::too_many_lines, reason = "a table, a row a kind of record")]
fn view(table: &str) -> Option<View> {
    let (all, kept): (&'static [&'static str], &'static [&'static str]) = match table {
        // Notes, tags and metadata belong to the installation's owner and describe the customer.
        "tenants" => (
            &["slug", "name", "env", "region"],
            &[
                "idp_org_id",
                "owner_email",
                "contract_status",
                "sla_tier",
                "require_declaration",
                "durability",
                "gate",
                "valid_for_seconds",
                "approval_ttl_seconds",
                "cite_ready_approval",
                "declined_for_seconds",
                "open_requests_per_agent",
                "time_zone",
                "activated_at",
                "auto_seal",
                "self_approval",
                "approval_max_auth_age_seconds",
                "receipts",
                "policy_validation",
                "context_schema",
                "event_retention_days",
                "retention",
                "decisions_per_second",
            ],
        ),
        "legal_entities" => (
            &["legal_name", "form", "country_code", "parent_legal_entity_id"],
            &["registration_number", "registered_address"],
        ),
        "billing_accounts" => {
            (&[], &["billing_email", "legal_entity_id", "currency", "plan", "purchase_order"])
        }
        "domains" => (&["fqdn", "verified_at"], &["verification_method"]),
        "policies" => (
            &["regime", "name", "description", "effective_from", "effective_until", "version"],
            &[
                "cedar",
                "draft_version",
                "draft_cedar",
                "activated_at",
                "activated_by",
                "activation_reason",
            ],
        ),
        "workspaces" => (&["name", "slug", "description"], &[]),
        "projects" => (&["name", "workspace_id", "visible_in_workspaces", "description"], &[]),
        "teams" => (&["name", "workspace_id", "description"], &[]),
        "models" => (
            &["model_provider", "model_family", "version", "risk_tier", "actions"],
            &["license", "endpoint"],
        ),
        "principals" => (
            &["principal_class", "name", "legal_entity_id", "model_id", "owner_principal_id"],
            &["display_name", "email", "external_subject"],
        ),
        "resources" => {
            (&["kind", "name", "workspace_id", "sensitivity"], &["uri", "owner_principal_id"])
        }
        "tools" => (
            &[
                "name",
                "function_signature",
                "workspace_id",
                "description",
                "input_schema",
                "input_at",
                "actions",
                "requires",
                "access_level",
                "action_declaration",
                "action_risk_classification",
            ],
            &[],
        ),
        "external_apps" => (&["vendor_name", "connector_kind", "scopes", "actions"], &["base_url"]),
        "audit_streams" => (&[], &["name", "sink", "target", "filter", "cursor"]),
        "purposes" => (
            &[
                "slug",
                "name",
                "allowed_actions",
                "principal_classes",
                "jurisdictions",
                "not_before",
                "expires_at",
                "description",
            ],
            &[],
        ),
        _ => return rows(table),
    };
    let about: &[&str] = if table == "principals" { &["id"] } else { &[] };
    Some(View { all, kept, about, ..View::default() })
}

/// Grants, relationships and stops.
fn rows(table: &str) -> Option<View> {
    let (all, kept, about): (&[&str], &[&str], &[&str]) = match table {
        "delegations" => (
            &[
                "delegator_id",
                "delegate_id",
                "actions",
                "purposes",
                "jurisdictions",
                "resource_ids",
                "workspace_ids",
                "max_amount",
                "currency",
                "max_risk_tier",
                "max_total_amount",
                "max_uses",
                "hours",
                "not_before",
                "expires_at",
                "parent_id",
                "can_delegate",
                "needs_standing_approval",
                "root_id",
                "depth",
                "line_id",
                "renewed_by",
                "revoked_at",
            ],
            &["revoke_reason", "standing"],
            &["delegator_id", "delegate_id"],
        ),
        "member_of" => {
            (&["team_id", "principal_id", "role", "joined_at", "left_at"], &[], &["principal_id"])
        }
        "acts_in" => (
            &["principal_id", "workspace_id", "since", "until", "allowed_actions_json"],
            &[],
            &["principal_id"],
        ),
        "granted_access_to" => {
            (&["resource_id", "grantee_id", "grantee_kind", "access_level"], &[], &["grantee_id"])
        }
        "uses" => (
            &["agent_id", "used_id", "used_kind", "allowed", "since", "until", "constraints_json"],
            &[],
            &["agent_id"],
        ),
        "applies_to" => (&["policy_id", "target_class"], &[], &[]),
        "stop_signals" => (&["actor_id"], &["reason", "lifted_by"], &["actor_id"]),
        "quarantines" => (
            &["subject_id", "action", "delegation_id"],
            &["reason", "released_by"],
            &["subject_id"],
        ),
        _ => return admins(table),
    };
    Some(View { all, kept, about, ..View::default() })
}

/// Sources of truth, checks and drift, for the people who decide on them.
fn reality(table: &str) -> Option<View> {
    const OF_ACTIONS: &[&str] = &["actor_entity_id", "subject_id"];
    let (kept, about) = match table {
        "reality_anchors" => (ANCHOR, &[][..]),
        "reality_coupling_checks" => (CHECK, OF_ACTIONS),
        "stable_drift_events" => (DRIFT, OF_ACTIONS),
        _ => return None,
    };
    Some(View { kept, about, ..View::default() })
}

const ANCHOR: &[&str] = &[
    "anchor_type",
    "display_name",
    "description",
    "status",
    "authority",
    "freshness_contract",
    "grounds_actions",
    "grounds_profiles",
    "source",
    "jwk_thumbprints",
    "verification",
    "deprecate_reason",
    "version",
];

const CHECK: &[&str] = &[
    "action_id",
    "action",
    "subject_id",
    "actor_entity_id",
    "principal_entity_id",
    "purpose_grant_id",
    "coupling_result",
    "runtime_effect",
    "result_source",
    "evaluated_at",
    "pipeline_node",
    "anchors_consulted",
    "assumptions",
    "severity",
    "reason_codes",
    "drift_event_id",
    "snapshot_refs",
    "evidence_refs",
    "findings",
    "history",
    "decision",
    "override",
    "override_",
    "tolerated",
];

const DRIFT: &[&str] = &[
    "check_id",
    "action_id",
    "action",
    "subject_id",
    "drift_type",
    "severity",
    "status",
    "result_source",
    "actor_entity_id",
    "principal_entity_id",
    "detected_at",
    "applies_since",
    "anchors_implicated",
    "expected_state",
    "observed_state",
    "description",
    "reason_codes",
    "recommended_runtime_effect",
    "recommended_obligations",
    "evidence_refs",
    "until_fresh",
    "quarantine_id",
    "resolution",
    "acts",
];

/// Records that only a tenant's admins manage.
fn admins(table: &str) -> Option<View> {
    let (all, kept, about): (&[&str], &[&str], &[&str]) = match table {
        "api_keys" => (
            &["status"],
            &[
                "label",
                "prefix",
                "scopes",
                "principal_ids",
                "ip_allowlist",
                "decisions_per_second",
                "expires_at",
                "last_used_at",
                "rotated_at",
                "revoked_at",
            ],
            &["id"],
        ),
        "webhook_endpoints" => (
            &[],
            &[
                "state_reason",
                "pause_reason",
                "url",
                "event_types",
                "filter",
                "retry_policy",
                "signing_suites",
                "rate_limit_per_second",
                "headers",
                "description",
                "key_id",
                "adopted_by",
                "previous_until",
            ],
            &[],
        ),
        _ => return reality(table),
    };
    Some(View { all, kept, keepers: Keepers::Admins, about })
}

/// Replaces empty bounding lists by null, as in all responses.
fn unbounded(table: &str, record: &mut Map<String, Value>) {
    let bounds = match table {
        "api_keys" => ApiKey::BOUNDS,
        "delegations" => Delegation::BOUNDS,
        "purposes" => Purpose::BOUNDS,
        _ => return,
    };
    for member in bounds {
        if let Some(list) = record.get_mut(*member).filter(|list| **list == Value::Array(vec![])) {
            *list = Value::Null;
        }
    }
}

/// Returns the record as the caller may see it. `None` if it does not exist for them.
pub(super) fn of(
    table: &str,
    mut record: Map<String, Value>,
    caller: &Caller,
) -> Option<Map<String, Value>> {
    unbounded(table, &mut record);
    if caller.is_owner() {
        return Some(record);
    }
    let Some(view) = view(table) else {
        record.retain(|member, _| ALWAYS.contains(&member.as_str()));
        return Some(record);
    };
    let mut named = view.about.iter().filter_map(|member| record.get(*member)?.as_str()).peekable();
    if named.peek().is_some() && !named.any(|id| caller.acts_for(id)) {
        return None;
    }
    let keeps = match (&caller.kind, view.keepers) {
        (CallerKind::Member { role, .. }, Keepers::Readers) => {
            matches!(role, Role::Admin | Role::Auditor)
        }
        (CallerKind::Member { role, .. }, Keepers::Admins) => *role == Role::Admin,
        _ => false,
    };
    // A person's name is private. An agent's name is needed by its callers.
    let is_human = record.get("principal_class").is_some_and(|class| class == "human");
    let agents_name = |member: &str| table == "principals" && member == "display_name" && !is_human;
    record.retain(|member, _| {
        let member = member.as_str();
        ALWAYS.contains(&member)
            || TIMES.contains(&member)
            || view.all.contains(&member)
            || agents_name(member)
            || keeps
                && (view.kept.contains(&member) || table != "tenants" && KEPT.contains(&member))
    });
    Some(record)
}

#[cfg(test)]
mod tests;
