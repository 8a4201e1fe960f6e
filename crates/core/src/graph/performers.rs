//! Who could perform an action, and under which delegations: whose people may not lift what holds it.

use std::collections::BTreeSet;

use authority_decision::pattern::covered;

use super::tenant::TenantGraph;

impl TenantGraph {
    /// The principals that hold a delegation of the action, and the agents with capabilities of any kind.
    pub fn performers(&self, action: &str) -> BTreeSet<String> {
        let delegations = self.delegations.iter();
        let held = delegations.filter(|held| covered(&held.actions, action));
        let agents = self.uses.iter().map(|row| row.agent_id.clone());
        held.map(|held| held.delegate_id.clone()).chain(agents).collect()
    }

    /// The delegations under which the principal could perform it, whatever their state is at present.
    pub fn delegations_for(&self, subject: &str, action: &str) -> Vec<String> {
        let held = self.delegations.on(subject).iter();
        held.filter(|held| covered(&held.actions, action)).map(|held| held.id.clone()).collect()
    }
}
