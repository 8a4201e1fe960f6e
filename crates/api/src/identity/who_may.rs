//! The people who may call an operation, in words, from the rules in the protos.

use std::collections::BTreeSet;

use authority_model::access::{Access, RULES};

/// Describes the people who may call `rpc`, `/package.Service/Method`: `a tenant's admin or auditor,
/// and the owner of the installation`. `None` if no person may.
pub fn who_may(rpc: &str) -> Option<String> {
    let (_, bindings) = RULES.iter().find(|(known, _)| *known == rpc)?;
    people(bindings.iter().map(|binding| &binding.access))
}

/// Returns the roles that may call `rpc`, sorted. `owner` stands for the owner of the installation.
pub fn permitted_roles(rpc: &str) -> Vec<String> {
    let bindings = RULES.iter().find(|(known, _)| *known == rpc).map(|(_, bindings)| *bindings);
    let rules = bindings.unwrap_or_default().iter().map(|binding| &binding.access);
    let owner = rules.clone().any(|rule| rule.owner).then_some("owner");
    let roles: BTreeSet<&str> = rules.flat_map(|rule| rule.roles).copied().chain(owner).collect();
    roles.into_iter().map(str::to_owned).collect()
}

/// Describes the people that the rules admit. `None` if they admit no person.
pub(super) fn people<'a>(rules: impl Iterator<Item = &'a Access>) -> Option<String> {
    let rules: Vec<&Access> = rules.collect();
    let is_for_all = rules.iter().any(|rule| rule.member);
    let roles: BTreeSet<&str> = rules.iter().flat_map(|rule| rule.roles).copied().collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    let of_tenant = match roles.split_last() {
        _ if is_for_all => Some("everybody of a tenant".to_owned()),
        Some((last, [])) => Some(format!("a tenant's {last}")),
        Some((last, others)) => Some(format!("a tenant's {} or {last}", others.join(", "))),
        None => None,
    };
    let is_for_owner = rules.iter().any(|rule| rule.owner);
    let owner = is_for_owner.then(|| "the owner of the installation".to_owned());
    let parts: Vec<_> = [of_tenant, owner].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_an_operation_name_its_callers() {
        for (rpc, who) in [
            (
                "/authority.registry.v1.PrincipalService/DeletePrincipal",
                "the owner of the installation",
            ),
            (
                "/authority.registry.v1.PrincipalService/CreatePrincipal",
                "a tenant's admin, and the owner of the installation",
            ),
            (
                "/authority.delegation.v1.DelegationService/GetBlastRadius",
                "a tenant's admin, approver, auditor or legal, and the owner of the installation",
            ),
        ] {
            assert_eq!(who_may(rpc).as_deref(), Some(who), "{rpc}");
        }
        assert_eq!(who_may("/no.Such/Operation"), None);
    }
}
