//! The credential of a request's headers.

use http::{HeaderMap, header::AUTHORIZATION};

use super::error::Error;

/// The maximum length of a credential, in bytes. API keys and the tokens of common identity
/// providers are shorter.
const LONGEST: usize = 16 * 1024;

/// The bearer token (RFC 6750, section 2.1), if any.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // With two values, it would be unclear which of them applies.
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
