//! Page tokens: the place where a page of a list ended, with an authentication code.
//!
//! The format is `base64url(code, place)`. The code is specific to this installation and covers
//! list and place: a client can neither forge a token nor use it with another list.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use authority_core::keys::Keys;
use authority_crypto::equal;

use super::error::ApiError;

/// The length of the truncated authentication code, in bytes.
const CODE: usize = 16;

/// Returns the token for `place` in the list with the name `list`.
pub fn write(keys: &Keys, list: &str, place: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode([&code(keys, list, place), place].concat())
}

/// Returns the place in a token; `None` for the first page, which has no token.
///
/// # Errors
/// The token was not returned by this list.
pub fn read(keys: &Keys, list: &str, token: &str) -> Result<Option<Vec<u8>>, ApiError> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    let parts = bytes.split_at_checked(CODE);
    let genuine = parts.filter(|(given, place)| equal(given, &code(keys, list, place)));
    let refused = || ApiError::field("page_token", "was not returned by this list");
    genuine.map(|(_, place)| Some(place.to_vec())).ok_or_else(refused)
}

fn code(keys: &Keys, list: &str, place: &[u8]) -> [u8; CODE] {
    let full = keys.mac("page-token", &[list.as_bytes(), b"\n", place].concat());
    let mut code = [0; CODE];
    code.copy_from_slice(&full[..CODE]);
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority_core::clock::Clock;

    #[test]
    fn a_token_reads_back_only_as_it_was_given() {
        let keys = Keys::ephemeral(Clock::default()).unwrap();
        let given = write(&keys, "tool", b"a place");
        assert_eq!(read(&keys, "tool", &given).unwrap().as_deref(), Some(&b"a place"[..]));
        assert_eq!(read(&keys, "tool", "").unwrap(), None);
        assert!(read(&keys, "team", &given).is_err());
        for broken in ["!", "AAAA", &given[1..]] {
            assert!(read(&keys, "tool", broken).is_err(), "{broken}");
        }
    }
}
