//! Page tokens: where a page ended, with a code that only this installation can make.

use crate::{error::Refusal, keys::Keys};

/// The token for `place` in the list that `list` names; the place holds no dot.
pub(super) fn token(keys: &Keys, list: &str, place: &str) -> String {
    let code = keys.mac("page-place", format!("{list}\n{place}").as_bytes());
    format!("{place}.{}", hex::encode(&code[..8]))
}

/// The place that a token names; none for the first page.
///
/// # Errors
/// The token is none that this list gave.
pub(super) fn read(keys: &Keys, list: &str, given: &str) -> Result<Option<String>, Refusal> {
    if given.is_empty() {
        return Ok(None);
    }
    let place = given.split_once('.').map(|(place, _)| place);
    let place = place.filter(|place| token(keys, list, place) == given);
    let refused = || Refusal::field("page_token", "is none that this list gave");
    place.map(|place| Some(place.to_owned())).ok_or_else(refused)
}
