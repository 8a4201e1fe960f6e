//! `X-Request-Id`: identifies a request in the client's log and in the service's log.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use authority_crypto::hex;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// The longest accepted id of a client, in bytes.
const LONGEST: usize = 128;

/// The id of a request, in its extensions: the client's own id if it is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The id as text; it was checked to be visible ASCII.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// The id as a header value.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// The id as a header of the response. HTTP/2 adds the headers of responses to a table of 4 kB for
    /// each connection, but not a value that is marked as sensitive. With ids in the table, each new
    /// id was compared with up to fifty earlier ids, and displaced the headers that responses share.
    pub(super) fn of_response(&self) -> HeaderValue {
        let mut id = self.header();
        id.set_sensitive(true);
        id
    }

    /// Returns the client's id if it is valid, otherwise a new id. A new id is also set in the
    /// headers, which become the metadata of gRPC.
    pub(super) fn settle(headers: &mut HeaderMap) -> Self {
        if let Some(sent) = headers.get(NAME).filter(|sent| sane(sent)) {
            return Self(sent.clone());
        }
        let made = made();
        headers.insert(NAME, made.clone());
        Self(made)
    }
}

fn sane(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=LONGEST).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// Generates an id: sixteen hex digits of this process and sixteen of a counter. It is unique, not
/// secret.
fn made() -> HeaderValue {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = u128::from(*PROCESS) << 64 | u128::from(NEXT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::try_from(hex(&number.to_be_bytes())).unwrap_or(HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sane_id_is_kept_and_any_other_replaced() {
        for (sent, kept) in [("abc-1", true), ("", false), ("two words", false), ("é", false)] {
            let mut headers = HeaderMap::new();
            headers.insert(NAME, HeaderValue::from_bytes(sent.as_bytes()).unwrap());
            let id = RequestId::settle(&mut headers);
            assert_eq!(id.as_str() == sent, kept, "{sent}");
            assert_eq!(headers[NAME], id.header());
        }
        let mut headers = HeaderMap::new();
        headers.insert(NAME, HeaderValue::from_str(&"x".repeat(129)).unwrap());
        assert_eq!(RequestId::settle(&mut headers).as_str().len(), 32);
    }

    #[test]
    fn the_id_of_a_response_stays_out_of_the_table_of_headers() {
        let id = RequestId::settle(&mut HeaderMap::new());
        assert!(id.of_response().is_sensitive());
        assert_eq!(id.of_response(), id.header());
    }

    #[test]
    fn made_ids_differ() {
        assert_ne!(made(), made());
    }
}
