//! Finds the largest amount that passes.

use super::{
    change::{Change, Kind, change},
    search::{Search, State},
};
use crate::{authority::limits, request::amount::Amount};

/// One ten-thousandth, the unit of amounts.
const PART: i64 = 1;
/// From this amount on, a double cannot represent every ten-thousandth. Only whole amounts are
/// tried.
const COARSE: i64 = 1 << 52;
const WHOLE: i64 = 10_000;
/// The maximum number of bounds to try as amounts. The other tries are left for bisection.
const MOST_BOUNDS: usize = 32;

/// Returns the largest amount that passes: the next one above it does not pass.
pub(super) fn largest(search: &Search<'_>, state: &State) -> Option<State> {
    let asked = state.request.amount()?.ten_thousandths();
    let step = if asked < COARSE { PART } else { WHOLE };
    let pass = |units: i64| search.after(state, &at_most(units)).filter(State::helps);
    let mut refused = asked;
    let mut passing: Option<(i64, State)> = None;
    for mark in limits_below(search, state, asked, step) {
        passing = pass(mark).map(|state| (mark, state));
        if passing.is_some() {
            break;
        }
        refused = mark;
    }
    let (mut largest, mut found) = passing?;
    // Usually the largest amount is the bound itself. Otherwise a policy sets the limit, and
    // bisection finds it.
    let mut next = largest + step;
    while refused - largest > step {
        match pass(next) {
            Some(better) => (largest, found) = (next, better),
            None => refused = next,
        }
        next = largest + (((refused - largest) / 2) / step * step).max(step);
    }
    Some(found)
}

fn at_most(units: i64) -> Change {
    let value = Amount::from_ten_thousandths(units).to_string();
    let named = change(Kind::Amount, format!("ask for {value} at most"));
    Change { member: Some("context.amount".to_owned()), value: Some(value), ..named }
}

/// Returns the bounds' limits that are below the requested amount, highest first, then the lowest
/// amount.
fn limits_below(search: &Search<'_>, state: &State, asked: i64, step: i64) -> Vec<i64> {
    let below = |mark: &i64| (step..asked).contains(mark);
    let bounds = marks(search, state).into_iter().map(|mark| mark - mark % step);
    bounds.filter(below).take(MOST_BOUNDS).chain([step].into_iter().filter(below)).collect()
}

/// Returns the largest amount under each bound, in ten-thousandths, highest first.
pub(super) fn marks(search: &Search<'_>, state: &State) -> Vec<i64> {
    let each = state.bounds().into_iter().flat_map(|(holder, bounds)| {
        let left = limits::left(&state.facts, holder, bounds, search.at);
        [bounds.max_amount.map(Amount::ten_thousandths), left]
    });
    let mut marks: Vec<i64> = each.flatten().collect();
    marks.sort_unstable_by(|one, other| other.cmp(one));
    marks.dedup();
    marks
}
