//! Creates the ids of new rows, and parses the ids of stored rows.

use authority_crypto::random;
use authority_ids::{Id, Kind, Unique};
use diesel::QueryResult;
use parking_lot::Mutex;

use authority_process::clock::Clock;

/// The time in milliseconds and the number of the last id.
static LAST: Mutex<(u64, u16)> = Mutex::new((0, 0));
/// The largest number within a millisecond: 12 bits.
const MOST: u16 = 0xfff;

/// Returns a version 7 UUID (RFC 9562, 5.7).
///
/// The time in milliseconds comes first, which makes new rows adjacent in an index. A number
/// follows: the ids of a process increase (RFC 9562, 6.2, method 1). The last 62 bits are random.
///
/// # Panics
/// The operating system provides no random bytes.
#[must_use]
pub fn new_id() -> Unique {
    let random = random().expect("the operating system provides random bytes");
    let millis = u64::try_from(Clock::default().now().timestamp_millis()).unwrap_or_default();
    let last = {
        let mut last = LAST.lock();
        *last = following(*last, millis);
        *last
    };
    Unique::from(uuid(last, u64::from_ne_bytes(random)))
}

/// Returns the time and number after the last ones. If the numbers of a millisecond are used up,
/// the next millisecond begins early.
fn following((last, number): (u64, u16), millis: u64) -> (u64, u16) {
    match number {
        _ if millis > last => (millis, 0),
        MOST => (last + 1, 0),
        _ => (last, number + 1),
    }
}

fn uuid((millis, number): (u64, u16), random: u64) -> u128 {
    let [version, variant] = [7 << 76, 0b10 << 62];
    (u128::from(millis) << 80)
        | version
        | (u128::from(number) << 64)
        | variant
        | u128::from(random >> 2)
}

/// Parses the id that a row contains as text.
///
/// # Errors
/// The text is not such an id, which means that this service did not write the row. The error is
/// the same as for a column of the wrong type.
pub fn row_id<K: Kind>(text: &str) -> QueryResult<Id<K>> {
    Id::parse(text).map_err(|why| {
        diesel::result::Error::DeserializationError(format!("the stored id `{text}` {why}").into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_in_the_order_of_rfc_9562() {
        // The example in RFC 9562, A.6.
        let example = uuid((0x017f_22e2_79b0, 0xcc3), 0x18c4_dc0c_0c07_398f << 2);
        assert_eq!(example, 0x017f_22e2_79b0_7cc3_98c4_dc0c_0c07_398f);
    }

    #[test]
    fn ids_increase_within_a_millisecond_and_if_the_clock_is_set_back() {
        assert_eq!(following((5, 9), 6), (6, 0));
        assert_eq!(following((5, 9), 5), (5, 10));
        assert_eq!(following((5, 9), 4), (5, 10));
        assert_eq!(following((5, MOST), 5), (6, 0));
        let ids: Vec<_> = (0..10_000).map(|_| new_id().to_string()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
    }
}
