//! The people who may call an operation, in words, from the API's own rules.

use std::collections::BTreeSet;

use authority_api::error::PERMITTED_ROLES;
use authority_model::access::RULES;
use tonic::{Code, Status};
use tonic_types::{ErrorInfo, StatusExt};

/// The people who may call `rpc`, `/package.Service/Method`: `a tenant's admin or auditor, and the owner of the
/// installation`. `None` if no person may.
#[must_use]
pub fn who_may(rpc: &str) -> Option<String> {
    let (_, bindings) = RULES.iter().find(|(known, _)| *known == rpc)?;
    let is_for_all = bindings.iter().any(|binding| binding.access.member);
    let roles: BTreeSet<&str> = bindings.iter().flat_map(|b| b.access.roles).copied().collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    let of_tenant = match roles.split_last() {
        _ if is_for_all => Some("everybody of a tenant".to_owned()),
        Some((last, [])) => Some(format!("a tenant's {last}")),
        Some((last, others)) => Some(format!("a tenant's {} or {last}", others.join(", "))),
        None => None,
    };
    let owner = bindings.iter().any(|binding| binding.access.owner);
    let owner = owner.then(|| "the owner of the installation".to_owned());
    let parts: Vec<_> = [of_tenant, owner].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", and "))
}

/// Adds the people who may call an operation to the API's refusal of a role.
pub(crate) fn explained(status: Status, rpc: &str) -> Status {
    let has_roles = |info: ErrorInfo| info.metadata.contains_key(PERMITTED_ROLES);
    let is_of_rules = status.code() == Code::PermissionDenied
        && status.get_details_error_info().is_some_and(has_roles);
    let Some(who) = who_may(rpc).filter(|_| is_of_rules) else { return status };
    let message = format!("{}. It is open to {who}", status.message());
    let (details, metadata) = (status.details().to_vec(), status.metadata().clone());
    Status::with_details_and_metadata(status.code(), message, details.into(), metadata)
}

#[cfg(test)]
mod tests {
    use authority_api::error::{ApiError, ErrorCode};

    use super::*;

    #[test]
    fn who_may_call_an_operation_is_said_by_its_rules() {
        for (rpc, who) in [
            (
                "/authority.registry.v1.PrincipalService/CreatePrincipal",
                "the owner of the installation",
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

    #[test]
    fn a_refusal_of_the_rules_says_who_may() {
        let rpc = "/authority.registry.v1.PrincipalService/CreatePrincipal";
        let refused = ApiError::new(ErrorCode::Forbidden, "this operation is for others");
        let by_role = refused.with(PERMITTED_ROLES, "owner").into();
        let shown = explained(by_role, rpc).message().to_owned();
        assert!(shown.ends_with("others. It is open to the owner of the installation"), "{shown}");
        let other = ApiError::new(ErrorCode::Forbidden, "this operation is for others").into();
        assert_eq!(explained(other, rpc).message(), "this operation is for others");
    }
}
