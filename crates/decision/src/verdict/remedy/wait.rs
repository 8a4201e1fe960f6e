//! Waiting until windows of budgets end.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{
    change::{Change, Kind, change},
    search::{Search, State},
};
use crate::{facts::budget::Budget, moment, reason::Reason};

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
