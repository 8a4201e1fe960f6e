//! The time zones whose offsets a decision still needs.

use std::collections::BTreeSet;

use super::{bounds::Bounds, gathered::Facts, records::Constraints, time_zone::named};

impl Facts {
    /// Returns the zones, in order of name, that a decision on this action reads but these facts
    /// lack.
    ///
    /// These are the zones of hours, and the tenant's zone if a policy reads `context.local`.
    /// Without a zone's offset, hours do not hold, and such a policy denies.
    pub fn missing_zones(&self, action: &str) -> Vec<String> {
        let gathered = &self.gathered;
        let links = gathered.delegations.iter().flat_map(|chain| &chain.0).map(|link| &link.bounds);
        let rows = gathered.uses.iter().filter_map(|uses| match &uses.row.constraints {
            Constraints::Bounds(bounds) => Some(bounds.as_ref()),
            Constraints::Malformed(_) => None,
        });
        let zone = |bounds: &'_ Bounds| bounds.hours.as_ref()?.time_zone().map(str::to_owned);
        let own = gathered.tenant.as_ref().and_then(|tenant| tenant.time_zone.as_ref());
        let mut policies = gathered.policies.iter().chain(&gathered.observing);
        let own = own.filter(|_| {
            policies.any(|policy| policy.statements(action).any(|one| one.reads("local")))
        });
        let all = links.chain(rows).filter_map(zone).chain(own.cloned());
        let missing: BTreeSet<String> =
            all.filter(|name| named(&self.zones, name).is_none()).collect();
        missing.into_iter().collect()
    }
}
