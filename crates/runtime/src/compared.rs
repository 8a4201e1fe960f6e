//! The values by which a held request is compared with others.

use std::collections::{BTreeMap, BTreeSet};

use authority_decision::{Request, Verdict};
use authority_graph::TenantHandle;
use authority_keys::Keys;
use authority_presentation::role_values;

use super::recorder::ComparedFact;

/// The number of bytes of a code. Collisions are improbable, and only a warning depends on them.
const CODE: usize = 16;
/// The maximum number of codes of a role. With one more than the 32 that are promised, a reader knows
/// that some values are missing (`crates/registry/src/approvals/similar.rs`).
const MOST: usize = 33;

/// Returns a code for each value that a held request has for a role declared by a tool for its action.
/// Empty if the request is not held.
///
/// Only this installation can compute the codes, and equal values of two tenants have different
/// codes. An agent can therefore not choose which of many values are left out.
pub(super) fn compared_facts(
    keys: &Keys,
    handle: Option<&TenantHandle>,
    request: &Request,
    verdict: &Verdict,
) -> Vec<ComparedFact> {
    let Some(handle) = handle.filter(|_| verdict.approvals_needed.is_some()) else {
        return Vec::new();
    };
    let paths = handle.read().role_paths(&request.action);
    let values = role_values(&paths, &request.context);
    let mut codes: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for (role, value) in values {
        let code = value_code(keys, request.tenant().as_str(), &role, &value);
        codes.entry(role).or_default().insert(code.to_vec());
    }
    let facts = codes.into_iter().flat_map(|(role, codes)| {
        codes.into_iter().take(MOST).map(move |code| ComparedFact { role: role.clone(), code })
    });
    facts.collect()
}

/// Returns the code of a value that has the form in which values are compared.
pub(super) fn value_code(keys: &Keys, tenant_id: &str, role: &str, value: &str) -> [u8; CODE] {
    let full = keys.mac("approval-fact", [tenant_id, role, value].join("\n").as_bytes());
    let mut code = [0; CODE];
    code.copy_from_slice(&full[..CODE]);
    code
}
