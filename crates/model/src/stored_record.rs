//! The records of decisions as the database stores them: compressed, and read back byte for byte.
//!
//! A record is a JSON text of 1 to 2 kB, and most of the text is the same in every record. zstd
//! (RFC 8878) with a dictionary of records makes a record a quarter as long. A stored record begins
//! with the number of its dictionary, or with `{` if it is not compressed.

use std::{cell::RefCell, sync::LazyLock};

use diesel::{
    deserialize::{self, FromSql},
    pg::{Pg, PgValue},
    query_builder::QueryId,
    sql_types::SqlType,
};
use zstd::{
    bulk::{Compressor, Decompressor},
    compress_bound,
    dict::{DecoderDictionary, EncoderDictionary},
    zstd_safe::CParameter,
};

/// The number of the dictionary. The dictionary is the output of `zstd --train` on the records in
/// `tests/golden` with changed names, ids and times. It must not change, because stored records
/// refer to it. A better dictionary gets the next number.
const DICTIONARY: u8 = 1;
const DICTIONARY_BYTES: &[u8] = include_bytes!("records-1.dict");

/// Higher levels save 2 % of the bytes and take twice as long.
const LEVEL: i32 = 1;

/// The maximum size of a record, in bytes. A larger record could not have been stored.
const LONGEST: usize = 1 << 26;

/// The SQL type of the column `decisions.record`. PostgreSQL's type is `bytea`.
#[derive(Clone, Copy, Debug, QueryId, SqlType)]
#[diesel(postgres_type(oid = 17, array_oid = 1001))]
pub struct StoredRecord;

impl FromSql<StoredRecord, Pg> for Vec<u8> {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        decompress(value.as_bytes())
    }
}

/// Appends the stored form of a record.
pub fn compress(record: &[u8], to: &mut Vec<u8>) {
    static PREPARED: LazyLock<EncoderDictionary<'static>> =
        LazyLock::new(|| EncoderDictionary::copy(DICTIONARY_BYTES, LEVEL));
    thread_local! {
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(compressor(&PREPARED));
    }
    let start = to.len();
    to.push(DICTIONARY);
    to.resize(start + 1 + compress_bound(record.len()), 0);
    let length = COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.as_mut()?.compress_to_buffer(record, &mut to[start + 1..]).ok()
    });
    if let Some(length) = length {
        to.truncate(start + 1 + length);
    } else {
        to.truncate(start);
        to.extend_from_slice(record);
    }
}

fn compressor(dictionary: &'static EncoderDictionary<'static>) -> Option<Compressor<'static>> {
    let mut compressor = Compressor::with_prepared_dictionary(dictionary).ok()?;
    // The number of the dictionary is stored in one byte instead of four.
    compressor.set_parameter(CParameter::DictIdFlag(false)).ok()?;
    Some(compressor)
}

/// Returns the record that was stored.
///
/// Damaged bytes are returned as they are. No reader takes them for a record, and a pack with them is
/// reported as altered, like a pack with any other wrong bytes.
///
/// # Errors
/// The record was stored in a form that this release does not know.
fn decompress(stored: &[u8]) -> deserialize::Result<Vec<u8>> {
    static PREPARED: LazyLock<DecoderDictionary<'static>> =
        LazyLock::new(|| DecoderDictionary::copy(DICTIONARY_BYTES));
    match stored {
        [DICTIONARY, frame @ ..] => {
            let length = Decompressor::upper_bound(frame);
            let record = length.filter(|length| (1..=LONGEST).contains(length)).map(|length| {
                Decompressor::with_prepared_dictionary(&PREPARED)?.decompress(frame, length)
            });
            Ok(record.and_then(Result::ok).unwrap_or_else(|| stored.to_vec()))
        }
        [first, ..] if *first < b' ' => {
            Err(format!("a later release stored the record of a decision, in the form {first}")
                .into())
        }
        _ => Ok(stored.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"authority_revision":22,"evaluated_at":"2026-11-29T15:01:24.271322Z","facts_digest":"sha256:df4531252f8bcd51f7a682aacdd7a5dfa0de89ef56e161b0c413f75fa52d2f3e","kind":"svc.decision.record.v1","semantics":"authority/1","tenant_id":"svc:tenant:acme","verdict":{"decision":"deny","reason_code":"actor_stopped"}}"#;

    fn stored(record: &[u8]) -> Vec<u8> {
        let mut stored = Vec::new();
        compress(record, &mut stored);
        stored
    }

    #[test]
    fn a_record_is_shorter_and_comes_back_byte_for_byte() {
        let short = stored(RECORD.as_bytes());
        assert!(short.len() * 2 < RECORD.len(), "{} bytes", short.len());
        assert_eq!(decompress(&short).unwrap(), RECORD.as_bytes());
        for record in ["{}", &format!("{{\"text\":\"{}\"}}", "ü".repeat(400_000))] {
            assert_eq!(decompress(&stored(record.as_bytes())).unwrap(), record.as_bytes());
        }
    }

    #[test]
    fn records_follow_each_other_in_one_buffer() {
        let mut both = stored(b"{}");
        let first = both.len();
        compress(RECORD.as_bytes(), &mut both);
        assert_eq!(decompress(&both[..first]).unwrap(), b"{}");
        assert_eq!(decompress(&both[first..]).unwrap(), RECORD.as_bytes());
    }

    /// With a changed dictionary, no earlier record could be read.
    #[test]
    fn what_was_stored_once_is_read_always() {
        let before = hex(
            "0128b52ffd6033001d030003860e3f7e8800fd1c70bc1ca73ca643a7252927b43c656ced57d37b3faa929016\
             46e89472bd8593293aa6d3e9196a267487c6079237b19aa8e9f0bdbb0efc209f81f8d802b2880bb9228bf27a\
             1ba54efd8e1b6120cb8fd88acd7d73989687b70c8104",
        );
        assert_eq!(decompress(&before).unwrap(), RECORD.as_bytes());
    }

    #[test]
    fn a_record_that_was_not_compressed_is_read_as_it_is() {
        assert_eq!(decompress(RECORD.as_bytes()).unwrap(), RECORD.as_bytes());
    }

    #[test]
    fn damaged_bytes_are_no_record_and_unknown_forms_are_refused() {
        let whole = stored(RECORD.as_bytes());
        for damaged in [&[][..], &[1], &whole[..9], &whole[..whole.len() - 1]] {
            assert_eq!(decompress(damaged).unwrap(), damaged);
        }
        let refused = decompress(&[2, 40, 181]).unwrap_err().to_string();
        assert_eq!(refused, "a later release stored the record of a decision, in the form 2");
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }
}
