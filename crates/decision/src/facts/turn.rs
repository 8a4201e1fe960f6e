//! Finds when the result of a decision may change through time alone.

use chrono::{DateTime, Utc};

use super::gathered::Gathered;
use crate::moment::Window;

/// Returns the first time after `at` when a window in these facts starts or ends. It ignores
/// reality's times.
///
/// Until then, the result stays the same unless a write occurs.
pub fn next_turn(gathered: &Gathered, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let links = gathered.delegations.iter().flat_map(|chain| &chain.0).map(|link| link.window);
    let denials = gathered.chain_denials.iter().map(|row| &row.denial);
    let uses = gathered.uses.iter().chain(denials).map(|uses| uses.row.window);
    let acts_in = gathered.acts_in.iter().map(|row| row.window);
    let memberships = gathered.memberships.iter().map(|row| row.window);
    let purpose = gathered.purpose.iter().map(|purpose| purpose.window);
    let policies = gathered.policies.iter().map(|policy| policy.reference.effective);
    let windows =
        links.chain(uses).chain(acts_in).chain(memberships).chain(purpose).chain(policies);
    let both = windows.flat_map(|Window { from, until }| [from, until]).flatten();
    both.filter(|turn| *turn > at).min()
}

/// Whether `before` and `present` are equal apart from their revision and reality.
pub fn is_same(before: &Gathered, present: &Gathered) -> bool {
    let before =
        Gathered { revision: present.revision, reality: present.reality.clone(), ..before.clone() };
    before == *present
}
