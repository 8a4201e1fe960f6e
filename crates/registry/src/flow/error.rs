//! Errors of the registry, and their form in the API.

use authority_model::validate::{Violation, Violations};
use tonic::Status;

use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency,
};
use authority_evidence as evidence;
use authority_graph::{self as graph, policy_check};
use authority_ids::InvalidId;
use authority_keys as keys;
use authority_process::compute;
use authority_store as store;

use super::ineligible::Ineligible;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the request is invalid")]
    Invalid(Vec<Violation>),
    #[error("no {kind} `{id}`")]
    NotFound { kind: &'static str, id: String },
    #[error("{kind} `{id}` is {state} and cannot change")]
    Final { kind: &'static str, id: String, state: String },
    #[error("{0}")]
    NotAllowed(String),
    #[error("{by} still refer to it; end them first")]
    InUse { by: &'static str },
    /// The result of a dry run, which is rolled back: the encoded record as it would be stored.
    #[error("the dry run changed no records")]
    Tried(Vec<u8>),
    /// An API key that is not bound to the principal it would act for.
    #[error("{}", ErrorCode::SubjectNotPermitted.sentence())]
    NotSubject,
    #[error("the record changed since it was read")]
    Changed,
    #[error("a delegation may not grant more than its parent, and a change may only narrow it")]
    Exceeds(Vec<Violation>),
    /// The record can't be deleted. The code describes the alternative.
    #[error("{}", .0.sentence())]
    NeverDeleted(ErrorCode),
    /// The record can't be changed. The code describes the alternative.
    #[error("{}", .0.sentence())]
    NeverChanged(ErrorCode),
    /// The caller's role does not permit the operation.
    #[error("{0}")]
    Role(String),
    /// This person may not act on this approval.
    #[error("{0}")]
    NotEligible(Ineligible),
    /// A finding requires review, but the approver was not shown it.
    #[error("{}", ErrorCode::RealityNotReviewed.sentence())]
    NotReviewed(Vec<Violation>),
    /// A second person must make the same request.
    #[error("{0}")]
    SecondApprover(String),
    /// The request is refused. The code gives the reason.
    #[error("{}", .0.sentence())]
    Refused(ErrorCode),
    /// An error that is already in the API's form.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A stored slug or name cannot be a part of an id.
    #[error("an id {0}")]
    Id(#[from] InvalidId),
    #[error(transparent)]
    Idempotency(#[from] idempotency::Error),
    #[error(transparent)]
    Keys(keys::Error),
    #[error(transparent)]
    Evidence(#[from] evidence::Error),
    #[error(transparent)]
    Compute(#[from] compute::Error),
    #[error(transparent)]
    Graph(#[from] graph::Error),
    #[error(transparent)]
    Store(store::Error),
}

impl Error {
    pub(crate) fn tried(row: &impl prost::Message) -> Self {
        Self::Tried(row.encode_to_vec())
    }

    /// Decodes the record of a dry run.
    pub(crate) fn would_be<R: prost::Message + Default>(row: &[u8]) -> Result<R, Self> {
        let unreadable = |_| Self::Store(store::Error::Internal("unreadable record".to_owned()));
        R::decode(row).map_err(unreadable)
    }

    pub(crate) fn field(field: &str, problem: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation::new(field, problem)])
    }

    /// The error for a field that refers to an unknown record. It is the same for another tenant's
    /// record.
    pub(crate) fn unknown(field: &str, id: &str) -> Self {
        Self::field(field, format!("`{id}` is unknown"))
    }

    pub(crate) fn unless_clean(found: Violations) -> Result<(), Self> {
        if found.is_empty() { Ok(()) } else { Err(Self::Invalid(found.list)) }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Reference(constraint) => {
                Self::field(members(&constraint).first().copied().unwrap_or_default(), "is unknown")
            }
            store::Error::InUse(constraint) => Self::InUse { by: referrers(&constraint) },
            other => Self::Store(other),
        }
    }
}

impl From<policy_check::Error> for Error {
    fn from(error: policy_check::Error) -> Self {
        match error {
            policy_check::Error::Store(error) => error.into(),
            policy_check::Error::Compute(error) => error.into(),
        }
    }
}

impl From<keys::Error> for Error {
    fn from(error: keys::Error) -> Self {
        Self::Keys(error)
    }
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        store::Error::from(error).into()
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Invalid(violations) => Self::invalid(violations),
            Error::NotFound { .. } => Self::new(ErrorCode::NotFound, text),
            Error::Final { .. } => Self::new(ErrorCode::RecordIsFinal, text),
            Error::NotAllowed(_) => Self::new(ErrorCode::TransitionNotAllowed, text),
            Error::InUse { .. } => Self::new(ErrorCode::InUse, text),
            Error::NotSubject => Self::plain(ErrorCode::SubjectNotPermitted),
            Error::Changed => Self::plain(ErrorCode::PreconditionFailed),
            Error::Exceeds(violations) => {
                Self { violations, ..Self::new(ErrorCode::DelegationExceedsParent, text) }
            }
            Error::NotReviewed(violations) => {
                Self { violations, ..Self::new(ErrorCode::RealityNotReviewed, text) }
            }
            Error::NeverDeleted(code) => Self::plain(code).with("allow", "GET, PATCH"),
            Error::Refused(code) => Self::plain(code),
            Error::Api(error) => error,
            Error::NeverChanged(code) => Self::plain(code).with("allow", "GET"),
            Error::Role(_) => Self::new(ErrorCode::Forbidden, text),
            Error::NotEligible(_) => Self::new(ErrorCode::ApproverNotEligible, text),
            Error::SecondApprover(_) => Self::new(ErrorCode::SecondApproverMissing, text),
            Error::Id(_) | Error::Tried(_) => {
                tracing::error!(error = text, "failed to complete a registry operation");
                Self::plain(ErrorCode::Internal)
            }
            Error::Idempotency(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Evidence(error) => error.into(),
            Error::Compute(error) => error.into(),
            Error::Graph(error) => error.into(),
            Error::Store(store::Error::Conflict(name)) if name == SNAPSHOT_EXISTS => {
                Self::plain(ErrorCode::SnapshotExists)
            }
            Error::Store(store::Error::Conflict(name)) if name == ACTIVE_BRAND => {
                Self::plain(ErrorCode::BrandActiveExists)
            }
            Error::Store(store::Error::Conflict(name)) if name == LINKED => {
                let text = "the consultant and the tenant already have a link; revoke it first";
                let violations = ["consultant_id", "tenant_id"]
                    .map(|field| Violation::new(field, "already has a link"));
                Self { violations: violations.into(), ..Self::new(ErrorCode::AlreadyExists, text) }
            }
            Error::Store(store::Error::Conflict(constraint)) => {
                let members = members(&constraint);
                let problem = match members.as_slice() {
                    ["slug"] => "is taken by another record; without it, it is made from `name`",
                    ["name"] => {
                        "is taken by another record; without it, it is made from `display_name`"
                    }
                    [_] => "is taken by another record",
                    _ => "is in another record with the same values of these members",
                };
                let violation = |member: &&str| Violation::new(*member, problem);
                let violations = members.iter().map(violation).collect();
                let mut text =
                    format!("another record already has this `{}`", members.join("`, `"));
                if PERIODS.iter().any(|table| constraint.starts_with(table)) {
                    text.push_str("; to change its period or its bounds, PATCH that record");
                }
                Self { violations, ..Self::new(ErrorCode::AlreadyExists, text) }
            }
            Error::Store(error) => error.into(),
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        ApiError::from(error).into()
    }
}

/// Relationships with a period, which a PATCH can change.
const PERIODS: [&str; 3] = ["acts_in_", "member_of_", "uses_"];
/// The unique index of snapshots by anchor, time and content.
const SNAPSHOT_EXISTS: &str = "reality_snapshots_once";
/// The index that limits a consultant and a tenant to one link.
const LINKED: &str = "consultant_links_consultant_id_key";
/// The index that limits a tenant to one active brand.
const ACTIVE_BRAND: &str = "white_label_configs_active_key";

/// Tables, and the names of their rows in messages.
const TABLES: [(&str, &str); 37] = [
    ("acts_in", "acts-in rows"),
    ("api_keys", "API keys"),
    ("applies_to", "applies-to rows"),
    ("approvals", "approvals"),
    ("audit_streams", "audit streams"),
    ("billing_accounts", "billing accounts"),
    ("certifications", "certifications"),
    ("consultant_links", "links"),
    ("consultants", "consultants"),
    ("delegations", "delegations"),
    ("domains", "domains"),
    ("external_apps", "external apps"),
    ("granted_access_to", "granted-access-to rows"),
    ("leads", "leads"),
    ("legal_entities", "legal entities"),
    ("member_of", "member-of rows"),
    ("models", "models"),
    ("policies", "policies"),
    ("principals", "principals"),
    ("projects", "projects"),
    ("purposes", "purposes"),
    ("quarantines", "quarantines"),
    ("reality_anchors", "reality anchors"),
    ("reality_coupling_checks", "coupling checks"),
    ("reality_snapshots", "reality snapshots"),
    ("resources", "resources"),
    ("stable_drift_events", "drift events"),
    ("state_events", "state events"),
    ("state_machines", "state machines"),
    ("stop_signals", "stop signals"),
    ("teams", "teams"),
    ("tenants", "tenants"),
    ("tools", "tools"),
    ("uses", "uses rows"),
    ("webhook_endpoints", "webhook endpoints"),
    ("white_label_configs", "white-label configurations"),
    ("workspaces", "workspaces"),
];

/// Returns the table and columns of a constraint named `<table>_<columns>_<kind>`.
fn parts(constraint: &str) -> Option<(&'static str, &str)> {
    TABLES.iter().find_map(|(table, rows)| {
        let rest = constraint.strip_prefix(table)?.strip_prefix('_')?;
        Some((*rows, rest))
    })
}

/// Returns the fields of the client's request that a constraint refers to.
fn members(constraint: &str) -> Vec<&str> {
    match constraint {
        // The IDs in these tables are derived from these fields.
        "tenants_pkey" => return vec!["slug"],
        "principals_pkey" => return vec!["name"],
        "acts_in_principal_id_workspace_id_key" => return vec!["principal_id", "workspace_id"],
        "applies_to_policy_id_target_class_key" => return vec!["policy_id", "target_class"],
        "granted_access_to_resource_id_grantee_id_access_level_key" => {
            return vec!["resource_id", "grantee_id", "access_level"];
        }
        "external_apps_mcp_slug_key" => return vec!["mcp.slug"],
        "member_of_team_id_principal_id_key" => return vec!["team_id", "principal_id"],
        "uses_agent_id_used_id_used_kind_key" => return vec!["agent_id", "used_id", "used_kind"],
        _ if constraint.starts_with("workspace_slugs_") => return vec!["slug"],
        _ => {}
    }
    let Some((_, rest)) = parts(constraint) else { return vec![constraint] };
    let columns = rest.rsplit_once('_').map_or(rest, |(columns, _)| columns);
    vec![match columns.strip_prefix("tenant_id_") {
        Some(column) => column,
        None if columns.is_empty() || rest == "pkey" => "id",
        None => columns,
    }]
}

fn referrers(constraint: &str) -> &'static str {
    parts(constraint).map_or("other records", |(rows, _)| rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_members_off_a_constraint() {
        for (constraint, expected) in [
            ("tools_workspace_id_fkey", &["workspace_id"] as &[&str]),
            ("tools_tenant_id_fkey", &["tenant_id"]),
            ("tools_pkey", &["id"]),
            ("tenants_slug_key", &["slug"]),
            ("tenants_pkey", &["slug"]),
            ("principals_pkey", &["name"]),
            ("principals_tenant_id_name_key", &["name"]),
            ("workspace_slugs_pkey", &["slug"]),
            ("tenants_idp_org_id_key", &["idp_org_id"]),
            ("external_apps_mcp_slug_key", &["mcp.slug"]),
            ("resources_external_id_key", &["external_id"]),
            ("member_of_team_id_principal_id_key", &["team_id", "principal_id"]),
        ] {
            assert_eq!(members(constraint), expected, "{constraint}");
        }
        assert_eq!(referrers("acts_in_workspace_id_fkey"), "acts-in rows");
    }
}
