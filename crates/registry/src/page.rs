//! Pages of a list in the order of `(created_at, id)`. Each page starts where the last one ended.

use authority_model::{
    record::{Page, Record},
    wire::Time,
};

use authority_api::{error::ApiError, page_token};
use authority_core::keys::Keys;

const SIZE: i32 = 100;

/// The part of a list to read.
pub(super) struct Window {
    pub size: usize,
    /// The last record of the previous page.
    pub after: Option<(Time, String)>,
}

impl Window {
    pub(super) fn of<R: Record>(page: Page<'_>, keys: &Keys) -> Result<Self, ApiError> {
        Self::of_list(R::KIND, page, keys)
    }

    /// Creates the window of a list with its own page tokens. A record's list in another order
    /// counts as another list.
    pub(super) fn of_list(list: &str, page: Page<'_>, keys: &Keys) -> Result<Self, ApiError> {
        let size = usize::try_from(page.limit.unwrap_or(SIZE)).unwrap_or_default();
        let place = page_token::read(keys, list, page.token)?;
        // An authentic token has a position: `cut` created it.
        let after = place.and_then(|place| read(&place));
        Ok(Self { size, after })
    }

    /// One more than the page size, to find out whether there is a next page.
    pub(super) fn query_limit(&self) -> i64 {
        i64::try_from(self.size).unwrap_or(i64::MAX - 1) + 1
    }
}

/// Returns the token to continue after the record.
pub(super) fn place_of<R: Record>(record: &R, keys: &Keys) -> Option<String> {
    Some(place_at(R::KIND, record.created_at()?, record.id(), keys))
}

/// Returns the token to continue a list after the record with this time and ID.
pub(super) fn place_at(list: &str, at: Time, id: &str, keys: &Keys) -> String {
    page_token::write(keys, list, &place(at, id))
}

fn place(at: Time, id: &str) -> Vec<u8> {
    [&at.micros().to_be_bytes(), id.as_bytes()].concat()
}

fn read(place: &[u8]) -> Option<(Time, String)> {
    let (micros, id) = place.split_first_chunk()?;
    Some((Time::from_micros(i64::from_be_bytes(*micros)), String::from_utf8(id.to_vec()).ok()?))
}
