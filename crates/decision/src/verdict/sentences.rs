//! Sentences for people about obligations of the agent and the end of a permission.

use super::permission_status::StopCondition;

/// Describes an obligation; `None` for a tenant's own obligation, which its policies name.
pub fn obligation(code: &str) -> Option<&'static str> {
    Some(match code {
        "audit.emit" => "The agent keeps a record of what it did.",
        "reality.overridden" => {
            "A source of truth had drifted, and a person decided that actions go on."
        }
        "reality.warn" => "A source of truth gave a warning that does not stop the action.",
        _ => return None,
    })
}

/// Describes a condition that ends the permission.
///
/// Returns `None` for a tenant's own condition, which the agent watches itself.
pub fn stop_condition(code: &str) -> Option<&'static str> {
    Some(match StopCondition::from_word(code)? {
        StopCondition::ActorStopSignal => {
            "Somebody stops the agent, or anyone whose authority it acts on."
        }
        StopCondition::ActorSuspended => "The agent is suspended.",
        StopCondition::AuthorityChanged => {
            "The authority that permits it has changed: it would now be denied or held."
        }
        StopCondition::AuthorityRevoked => "The authority that it acts on is revoked.",
        StopCondition::CapabilityQuarantined => "The action is put into quarantine.",
        StopCondition::DelegationRevoked => {
            "The delegation, or one above it, is revoked, suspended or over."
        }
        StopCondition::RealityDecoupled => "A source of truth that it depends on has drifted.",
        StopCondition::TenantSuspended => "The tenant is suspended.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_of_the_service_has_a_sentence_and_a_tenants_own_has_none() {
        for code in ["actor.stop_signal", "delegation.revoked", "reality.decoupled"] {
            assert!(stop_condition(code).is_some_and(|text| text.ends_with('.')), "{code}");
        }
        assert_eq!(stop_condition("treasury.closed"), None);
        assert_eq!(obligation("notify.treasury"), None);
    }
}
