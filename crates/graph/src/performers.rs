//! Finds the principals and delegations that could perform an action, and the roles that its tools
//! declare. The people behind the principals may not override findings that hold the action.

use std::collections::BTreeSet;

use authority_decision::{Draft, levels::DelegationState, pattern::covered};
use authority_ids::{DelegationRef, PrincipalRef};
use authority_presentation::RolePath;

use super::tenant::TenantGraph;

impl TenantGraph {
    /// Returns the principals that hold a delegation for the action, and all agents with `uses`
    /// rows.
    pub fn performers(&self, action: &str) -> BTreeSet<PrincipalRef> {
        let delegations = self.delegations.iter();
        let held = delegations.filter(|held| covered(&held.actions, action));
        let agents = self.uses.iter().map(|row| row.agent_id.clone());
        held.map(|held| held.delegate_id.clone()).chain(agents).collect()
    }

    /// Returns the roles that tools for the action declare for fields of their input.
    ///
    /// These are the roles of all such tools, whichever tool a request names: an agent cannot avoid
    /// a comparison by naming another tool or none.
    pub fn role_paths(&self, action: &str) -> BTreeSet<RolePath> {
        if self.role_paths.is_empty() {
            return BTreeSet::new();
        }
        let tools = self.tool_index.ids(action).filter_map(|id| self.role_paths.get(id));
        tools.flatten().cloned().collect()
    }

    /// Whether the principal has a delegation or a `uses` row for the action. Their bounds and windows
    /// do not matter.
    pub fn may_perform(&self, subject: &PrincipalRef, action: &str) -> bool {
        let mut held = self.delegations.on(subject).iter();
        let is_held = held
            .any(|held| held.state == DelegationState::Active && covered(&held.actions, action));
        let draft = Draft { action: action.to_owned(), ..Draft::default() };
        is_held || self.uses_of(subject, &draft).any(|uses| uses.row.allowed)
    }

    /// Returns the delegations that cover the action for this principal, in any state.
    pub fn delegations_for(&self, subject: &PrincipalRef, action: &str) -> Vec<DelegationRef> {
        let held = self.delegations.on(subject).iter();
        held.filter(|held| covered(&held.actions, action)).map(|held| held.id.clone()).collect()
    }
}
