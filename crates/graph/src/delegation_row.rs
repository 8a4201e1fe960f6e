//! Converts a stored delegation to a fact. A delegation with an unreadable part permits no action.

use authority_model::{proto::delegation, wire::Time};
use serde_json::json;

use super::fields::{ENDED, patterns, window};
use authority_decision::{
    bounds::{Bounds, MaxTotalAmount, MaxUses},
    hours::Hours,
    levels::{DelegationState, RiskTier},
    records,
};

pub(super) fn delegation(row: delegation::Delegation) -> records::Delegation {
    let hours = row.hours.as_ref().map(hours);
    let window = window(row.not_before, row.expires_at);
    // An unreadable bound must not become unbounded. The delegation then counts as not active.
    let readable = !matches!(hours, Some(None)) && window.is_some();
    let state = DelegationState::from_word(&row.state).filter(|_| readable);
    records::Delegation {
        version: row.updated_at.map(Time::micros).unwrap_or_default(),
        state: state.unwrap_or(DelegationState::Revoked),
        window: window.unwrap_or(ENDED),
        actions: patterns(&row.actions),
        can_delegate: row.can_delegate,
        needs_standing_approval: row.needs_standing_approval,
        standing: row
            .standing
            .into_iter()
            .map(|act| records::Signature {
                by: act.by,
                role: act.role,
                own_interest: act.self_,
                at: None,
            })
            .collect(),
        bounds: Bounds {
            // An unreadable maximum becomes zero, which every amount exceeds.
            max_amount: row.max_amount.map(|text| text.parse().unwrap_or_default()),
            currency: row.currency,
            max_uses: row.max_uses.map(|limit| MaxUses {
                count: limit.count.try_into().unwrap_or_default(),
                window_seconds: limit.window_seconds.try_into().unwrap_or(u32::MAX),
            }),
            max_total_amount: row.max_total_amount.map(|limit| MaxTotalAmount {
                amount: limit.amount.parse().unwrap_or_default(),
                window_seconds: limit.window_seconds.try_into().unwrap_or(u32::MAX),
            }),
            jurisdictions: row.jurisdictions,
            hours: hours.flatten(),
            resource_ids: row.resource_ids.into_iter().map(Into::into).collect(),
            workspace_ids: row.workspace_ids.into_iter().map(Into::into).collect(),
            purposes: row.purposes,
            max_risk_tier: row
                .max_risk_tier
                .map(|word| RiskTier::from_word(&word).unwrap_or(RiskTier::Minimal)),
        },
        line_id: row.line_id.map(String::into_boxed_str),
        id: row.id.into(),
        parent_id: row.parent_id.map(Into::into),
        delegator_id: row.delegator_id.unwrap_or_default().into(),
        delegate_id: row.delegate_id.into(),
    }
}

fn hours(row: &delegation::Hours) -> Option<Hours> {
    // Hours with neither a zone nor an offset are refused: they would be read as hours in UTC.
    let clock = match (&row.time_zone, &row.utc_offset) {
        (Some(zone), None) => ("time_zone", zone),
        (None, Some(offset)) => ("utc_offset", offset),
        _ => return None,
    };
    let mut written = json!({"days": row.days, "from": row.from, "to": row.to});
    written[clock.0] = clock.1.as_str().into();
    serde_json::from_value(written).ok()
}

#[cfg(test)]
mod tests {
    use authority_decision::levels::ApprovalState;
    use authority_model::state;

    use super::*;

    /// The decision crate's own enums have the same words as the protos.
    #[test]
    fn decision_knows_the_states_of_the_protos() {
        let delegations = DelegationState::ALL.iter().map(|state| state.word());
        assert!(delegations.eq(state::DelegationState::ALL.iter().map(|state| state.as_str())));
        let approvals = ApprovalState::ALL.iter().map(|state| state.word());
        assert!(approvals.eq(state::ApprovalState::ALL.iter().map(|state| state.as_str())));
    }
}
