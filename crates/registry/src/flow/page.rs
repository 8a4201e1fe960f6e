//! Pages of a list in the order of `(created_at, id)`. Each page starts after the previous page.

use authority_model::{
    record::{Page, Record},
    wire::Time,
};

use authority_api::{error::ApiError, page_token::PageTokens};

const SIZE: i32 = 100;

/// The part of a list to read.
pub(crate) struct Window {
    pub size: usize,
    /// The last record of the previous page.
    pub after: Option<(Time, String)>,
}

impl Window {
    pub(crate) fn of(page: Page<'_>, tokens: &PageTokens) -> Result<Self, ApiError> {
        let size = usize::try_from(page.limit.unwrap_or(SIZE)).unwrap_or_default();
        // An authentic token has a position: `place_at` wrote it.
        let after = tokens.read(page.token)?.and_then(|place| read(&place));
        Ok(Self { size, after })
    }

    /// One more than the page size, to find out whether there is a next page.
    pub(crate) fn query_limit(&self) -> i64 {
        i64::try_from(self.size).unwrap_or(i64::MAX - 1) + 1
    }
}

/// Returns the token to continue after the record.
pub(crate) fn place_of<R: Record>(record: &R, tokens: &PageTokens) -> Option<String> {
    Some(place_at(record.created_at()?, record.id(), tokens))
}

/// Returns the token to continue a list after the record with this time and ID.
pub(crate) fn place_at(at: Time, id: &str, tokens: &PageTokens) -> String {
    tokens.write(&[&at.micros().to_be_bytes(), id.as_bytes()].concat())
}

fn read(place: &[u8]) -> Option<(Time, String)> {
    let (micros, id) = place.split_first_chunk()?;
    Some((Time::from_micros(i64::from_be_bytes(*micros)), String::from_utf8(id.to_vec()).ok()?))
}
