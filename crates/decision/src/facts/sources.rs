//! Lists the sources of a decision's facts: ids, versions and failed look-ups.

use authority_ids::DelegationRef;
use serde::{Deserialize, Serialize};

use super::{gathered::Facts, records::Used};
use crate::request::draft::Request;

/// One source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Read {
    pub kind: String,
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whether the record was looked up and does not exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
}

/// Returns all records in the facts and all failed look-ups, sorted.
pub fn reads(request: &Request, facts: &Facts) -> Vec<Read> {
    let mut reads = named(request, facts);
    let gathered = &facts.gathered;
    let mut add = |kind: &str, id: &str| reads.push(read(kind, id));
    for principal in &gathered.principals {
        add("principal", &principal.id);
    }
    if let Some(model) = &gathered.model {
        add("model", &model.id);
    }
    for row in &gathered.memberships {
        add("team", &row.team_id);
    }
    for signal in &gathered.stop_signals {
        add("stop_signal", &signal.id);
    }
    for quarantine in &gathered.quarantines {
        add("quarantine", &quarantine.id);
    }
    let of_chains = gathered.chain_denials.iter().map(|row| &row.denial);
    for uses in gathered.uses.iter().chain(of_chains) {
        add("uses", &uses.row.id);
        match &uses.used {
            Used::Tool(tool) => add("tool", &tool.id),
            Used::Model(model) => add("model", &model.id),
            Used::ExternalApp(app) => add("external_app", &app.id),
            Used::Action(_) | Used::Resource(_) | Used::Missing(_) => {}
        }
    }
    for tool_id in gathered.joined_terms.iter().flat_map(|terms| terms.tool_ids()) {
        add("tool", tool_id);
    }
    for row in &gathered.acts_in {
        add("acts_in", &row.id);
    }
    for grant in &gathered.grants {
        add("grant", &grant.id);
    }
    for drift in &gathered.reality.drifts {
        add("drift", &drift.id);
    }
    for lifting in &gathered.reality.overrides {
        add("override", &lifting.check_id);
    }
    for link in gathered.delegations.iter().flat_map(|chain| &chain.0) {
        reads.push(Read { version: Some(link.version), ..read("delegation", &link.id) });
    }
    let policies = gathered.policies.iter().map(|policy| ("policy", policy));
    let observing = gathered.observing.iter().map(|policy| ("observing_policy", policy));
    for (kind, policy) in policies.chain(observing) {
        let (version, sha256) = (policy.reference.version, policy.reference.sha256.clone());
        let policy = read(kind, &policy.reference.id);
        reads.push(Read { version: Some(version), sha256: Some(sha256), ..policy });
    }
    for anchor in &gathered.reality.anchors {
        reads.push(Read { version: Some(anchor.version), ..read("anchor", &anchor.id) });
        reads.extend(anchor.newest.iter().map(|snapshot| read("snapshot", &snapshot.id)));
    }
    reads.sort();
    reads.dedup();
    reads
}

/// Returns the look-ups for the records that the request names.
fn named(request: &Request, facts: &Facts) -> Vec<Read> {
    let gathered = &facts.gathered;
    let chain = |id: &DelegationRef| {
        let id = gathered.successor_id.as_ref().unwrap_or(id);
        gathered.delegations.iter().any(|c| c.0.first().is_some_and(|link| link.id == *id))
    };
    let delegation = request.delegation_id.as_ref();
    [
        ("tenant", Some(request.tenant_id.as_str()), gathered.tenant.is_some()),
        ("principal", Some(request.subject.as_str()), gathered.subject.is_some()),
        ("delegation", delegation.filter(|id| !chain(id)).map(DelegationRef::as_str), false),
        ("tool", request.tool_id.as_deref(), gathered.tool.is_some()),
        ("purpose", request.purpose.as_deref(), gathered.purpose.is_some()),
        ("resource", request.resource_id.as_deref(), gathered.resource.is_some()),
        ("workspace", request.workspace_id.as_deref(), gathered.workspace.is_some()),
        ("project", request.project_id.as_deref(), gathered.project.is_some()),
    ]
    .into_iter()
    .filter_map(|(kind, id, found)| Some(Read { absent: !found, ..read(kind, id?) }))
    .collect()
}

fn read(kind: &str, id: &str) -> Read {
    let (kind, id) = (kind.to_owned(), id.to_owned());
    Read { kind, id, version: None, sha256: None, absent: false }
}
