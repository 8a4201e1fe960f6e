//! The steps of a search, in their order, and the search for one change that helps.

use super::{
    amount,
    change::{Change, Remedy},
    granted, request_changes,
    search::{Search, State},
    wait,
};

pub(super) enum SearchStep {
    /// Tries each of these changes.
    Propose(fn(&Search<'_>, &State) -> Vec<Change>),
    /// Searches for a change that depends on all other changes, and is therefore made last.
    Last(fn(&Search<'_>, &State) -> Option<State>),
}

pub(super) const STEPS: [SearchStep; 13] = [
    SearchStep::Propose(request_changes::purpose),
    SearchStep::Last(amount::largest),
    SearchStep::Propose(request_changes::jurisdiction),
    SearchStep::Propose(request_changes::delegation),
    SearchStep::Last(wait::shortest),
    SearchStep::Propose(granted::grant),
    SearchStep::Propose(granted::link),
    SearchStep::Propose(granted::principal),
    SearchStep::Propose(request_changes::context),
    SearchStep::Propose(request_changes::declaration),
    SearchStep::Propose(granted::stop),
    SearchStep::Propose(granted::quarantine),
    SearchStep::Propose(granted::denial),
];

/// The maximum number of changes that a step tries. It keeps a subject with very many delegations
/// from occupying a core for long.
pub(super) const MOST_TRIES: u32 = 128;

/// Returns the first single change that helps in addition to the earlier changes.
pub(super) fn one_more(search: &Search<'_>, state: &State) -> Option<Remedy> {
    let found = STEPS.iter().find_map(|step| {
        search.step.set(MOST_TRIES);
        match step {
            SearchStep::Last(last) => last(search, state),
            SearchStep::Propose(propose) => {
                let proposed = propose(search, state).into_iter();
                let tried = proposed.take(MOST_TRIES as usize);
                tried.filter_map(|change| search.after(state, &change)).find(State::helps)
            }
        }
    });
    found.map(State::remedy)
}
