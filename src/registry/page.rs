//! Pages of a list: in order of `(created_at, id)`, each begun where the last one ended.
//!
//! A page token is `base64url(code, created_at, id)`; the code authenticates it, so that a client
//! can neither make one up nor use one list's with another.

use authority_model::{
    record::{Page, Record},
    wire::Time,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::Error;
use crate::keys::Keys;

const SIZE: i32 = 100;
/// How much of the authentication code a token carries.
const CODE: usize = 16;
const MICROS: usize = 8;

/// What of a list is read.
pub(super) struct Window {
    pub size: usize,
    /// The last record of the page before.
    pub after: Option<(Time, String)>,
}

impl Window {
    pub(super) fn of<R: Record>(page: Page<'_>, keys: &Keys) -> Result<Self, Error> {
        let size = usize::try_from(page.limit.unwrap_or(SIZE)).unwrap_or_default();
        let after = match page.token {
            "" => None,
            token => Some(
                read(R::KIND, token, keys)
                    .ok_or_else(|| Error::field("page_token", "is none that this list gave"))?,
            ),
        };
        Ok(Self { size, after })
    }

    /// One more than shown, which tells whether there is a next page.
    pub(super) fn wanted(&self) -> i64 {
        i64::try_from(self.size).unwrap_or(i64::MAX - 1) + 1
    }

    /// Cuts what was read down to the page, and says how to go on.
    pub(super) fn cut<R: Record>(&self, rows: &mut Vec<R>, keys: &Keys) -> Option<String> {
        if rows.len() <= self.size {
            return None;
        }
        rows.truncate(self.size);
        rows.last().and_then(|row| Some(token(R::KIND, row.created_at()?, row.id(), keys)))
    }
}

fn token(kind: &str, at: Time, id: &str, keys: &Keys) -> String {
    let mut place = at.micros().to_be_bytes().to_vec();
    place.extend_from_slice(id.as_bytes());
    let mut token = code(kind, &place, keys).to_vec();
    token.extend_from_slice(&place);
    URL_SAFE_NO_PAD.encode(token)
}

fn read(kind: &str, token: &str, keys: &Keys) -> Option<(Time, String)> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (given, place) = bytes.split_at_checked(CODE)?;
    // All of it is compared, whatever differs first.
    let difference = given.iter().zip(code(kind, place, keys)).fold(0, |sum, (a, b)| sum | (a ^ b));
    if difference != 0 {
        return None;
    }
    let (micros, id) = place.split_at_checked(MICROS)?;
    let micros = i64::from_be_bytes(micros.try_into().ok()?);
    Some((Time::from_micros(micros), String::from_utf8(id.to_vec()).ok()?))
}

fn code(kind: &str, place: &[u8], keys: &Keys) -> [u8; CODE] {
    let mut text = format!("{kind}\n").into_bytes();
    text.extend_from_slice(place);
    let full = keys.mac("page-token", &text);
    let mut code = [0; CODE];
    for (to, from) in code.iter_mut().zip(full) {
        *to = from;
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_token_reads_back_only_as_it_was_given() {
        let keys = Keys::ephemeral(Clock::default()).unwrap();
        let at = Time::from_micros(1_700_000_000_000_001);
        let given = token("tool", at, "svc:ent:a:tool:1", &keys);
        assert_eq!(read("tool", &given, &keys), Some((at, "svc:ent:a:tool:1".to_owned())));
        assert_eq!(read("team", &given, &keys), None);
        for broken in ["", "!", "AAAA", &given[1..]] {
            assert_eq!(read("tool", broken, &keys), None, "{broken}");
        }
    }
}
