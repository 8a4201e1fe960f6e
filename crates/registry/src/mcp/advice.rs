//! The advice of policies on calls of a tool, for the tool's description.

use authority_decision::{PolicyKeys, levels::PrincipalClass, statement::Effect};
use authority_graph::TenantGraph;
use chrono::{DateTime, Utc};

/// The most sentences for a tool. A model reads them with every list of tools.
const MOST: usize = 8;

/// Returns the advice of the policies in force that can deny or hold an agent's action: each
/// sentence once, in the order of the policies' ids.
pub(super) fn on(graph: &TenantGraph, action: &str, at: DateTime<Utc>) -> Vec<String> {
    let Some(index) = graph.policies() else { return Vec::new() };
    let principal_class = Some(PrincipalClass::Agent);
    let keys = PolicyKeys { action, purpose: None, principal_class, resource_kind: None };
    let mut found: Vec<String> = Vec::new();
    for policy in index.candidates(keys).filter(|policy| policy.reference.effective.holds(at)) {
        for statement in policy.statements(action).filter(|one| one.effect != Effect::Permit) {
            if let Some(advice) = statement.advice.as_ref().filter(|one| !found.contains(one)) {
                found.push(advice.clone());
            }
        }
    }
    found.truncate(MOST);
    found
}
