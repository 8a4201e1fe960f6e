//! The credential of a request's headers.

use http::{HeaderMap, header::AUTHORIZATION};

use super::Error;

/// More than any token of ours or of a common identity provider.
const LONGEST: usize = 16 * 1024;

/// The one bearer token (RFC 6750, section 2.1), or none at all.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // Two of them would leave open which one counts.
    if values.next().is_some() || value.len() > LONGEST {
        return Err(Error::Unreadable);
    }
    let text = value.to_str().map_err(|_| Error::Unreadable)?;
    let (scheme, token) = text.split_once(' ').ok_or(Error::Unreadable)?;
    let token = token.trim_matches(' ');
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.contains([' ', '\t']) {
        return Err(Error::Unreadable);
    }
    Ok(Some(token))
}
