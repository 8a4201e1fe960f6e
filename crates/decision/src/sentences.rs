//! For people: what an obligation asks of the agent, and what ends a permission.

use super::permission_status::StopCondition;

/// What an obligation asks; `None` for a tenant's own, which its policies name.
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

/// What ends the permission; `None` for a tenant's own condition, which the agent watches itself.
pub fn stop_condition(code: &str) -> Option<&'static str> {
    Some(match StopCondition::from_word(code)? {
        StopCondition::ActorStopSignal => {
            "Somebody stops the agent, or anyone whose authority it acts on."
        }
        StopCondition::ActorSuspended => "The agent is suspended.",
        StopCondition::AuthorityChanged => {
            "What permits it has changed, so that it would be denied or held now."
        }
        StopCondition::AuthorityRevoked => "The authority that it acts on is taken back.",
        StopCondition::CapabilityQuarantined => "What it does is put into quarantine.",
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
