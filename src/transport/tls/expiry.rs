//! Reads the end of a certificate's validity.

use chrono::NaiveDateTime;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The tag of the version, which precedes the serial number.
const VERSION: u8 = 0xa0;

/// Returns the end of a certificate's validity in seconds since 1970 (RFC 5280, 4.1).
pub(super) fn not_after(certificate: &[u8]) -> Option<i64> {
    let (signed, _) = element(SEQUENCE, certificate)?;
    let (fields, _) = element(SEQUENCE, signed)?;
    let fields = element(VERSION, fields).map_or(fields, |(_, rest)| rest);
    let (_serial, fields) = element(INTEGER, fields)?;
    let (_algorithm, fields) = element(SEQUENCE, fields)?;
    let (_issuer, fields) = element(SEQUENCE, fields)?;
    let (validity, _) = element(SEQUENCE, fields)?;
    let (_not_before, not_after) = time(validity)?;
    time(not_after).map(|(seconds, _)| seconds)
}

/// Reads a time, which is always in UTC and with seconds (RFC 5280, 4.1.2.5).
fn time(der: &[u8]) -> Option<(i64, &[u8])> {
    let (text, rest) = if let Some((text, rest)) = element(UTC_TIME, der) {
        let text = std::str::from_utf8(text).ok()?;
        let century = if text.get(..2)? < "50" { "20" } else { "19" };
        (format!("{century}{text}"), rest)
    } else {
        let (text, rest) = element(GENERALIZED_TIME, der)?;
        (std::str::from_utf8(text).ok()?.to_owned(), rest)
    };
    let time = NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%SZ").ok()?;
    Some((time.and_utc().timestamp(), rest))
}

/// Splits DER into the content of its first element, which must have this tag, and the bytes behind
/// the element.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([found, length], rest) = der.split_first_chunk()?;
    if *found != tag {
        return None;
    }
    if *length < 0x80 {
        return rest.split_at_checked(usize::from(*length));
    }
    // If the content has 128 bytes or more, this byte gives the number of length bytes that follow.
    let (length, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
    let joined = |joined: usize, byte: &u8| joined.checked_mul(256)?.checked_add((*byte).into());
    rest.split_at_checked(length.iter().try_fold(0, joined)?)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["authority.test".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 3, 4);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_is_read_in_both_forms() {
        // From 2050, times have four digits for the year.
        for (year, expected) in [(1999, 920_505_600), (2049, 2_498_428_800), (2050, 2_529_964_800)]
        {
            assert_eq!(not_after(&certificate(year)), Some(expected), "{year}");
        }
    }

    #[test]
    fn a_cut_certificate_has_no_end() {
        let whole = certificate(2049);
        for length in 0..whole.len() {
            assert_eq!(not_after(&whole[..length]), None, "{length}");
        }
    }
}
