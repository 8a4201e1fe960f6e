//! Waiting until windows of budgets end.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{Change, Kind, Search, State, change};
use crate::{budget::Budget, counters_needed, facts::Facts, moment, reason::Reason};

/// Returns the shortest wait that helps: until the current window of a budget ends.
pub(super) fn shortest(search: &Search<'_>, state: &State) -> Option<State> {
    if state.reason != Reason::ConstraintExceeded {
        return None;
    }
    let bounds = state.bounds().into_iter();
    let budgets = bounds.flat_map(|(holder, bounds)| Budget::of(holder, holder, bounds, search.at));
    let ends: BTreeSet<DateTime<Utc>> = budgets.filter_map(|budget| budget.resets_at()).collect();
    ends.into_iter().filter_map(|end| search.after(state, &at(end))).find(State::helps)
}

fn at(end: DateTime<Utc>) -> Change {
    let end = moment::text(end);
    let named = change(Kind::Wait, format!("ask again at {end}, when a new window begins"));
    Change { value: Some(end), ..named }
}

/// Returns the end of the wait.
pub(super) fn until(change: &Change) -> Option<DateTime<Utc>> {
    let parsed = DateTime::parse_from_rfc3339(change.value.as_deref()?).ok()?;
    Some(parsed.to_utc())
}

/// Sets the counters of windows that begin after the denial to zero.
pub(super) fn begin_windows(facts: &mut Facts, denied_at: DateTime<Utc>, at: DateTime<Utc>) {
    for key in counters_needed(&facts.gathered, at) {
        if key.window_start > denied_at.timestamp() {
            facts.spent.0.entry(key).or_default();
        }
    }
}
