//! Rust types for the well-known protobuf types, for both protobuf and SQL.
//!
//! The build script uses these types in place of prost's. Other code needs no conversions.

mod computed;
mod json;
pub(crate) mod jsonb;
mod mask;
mod time;

pub(crate) use computed::{Computed, ComputedSql, computed};
pub(crate) use json::NOT_FINITE;
pub use json::{Json, List};
pub use mask::FieldMask;
pub use time::Time;

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::value::Kind;
    use serde_json::Value;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_well_known_types() {
        let theirs = prost_types::Timestamp { seconds: 1_700_000_000, nanos: 5_000 };
        let ours = Time::decode(&theirs.encode_to_vec()[..]).unwrap();
        assert_eq!(ours.to_string(), "2023-11-14T22:13:20.000005Z");
        assert_eq!(ours.encode_to_vec(), theirs.encode_to_vec());
        let text = r#"{"a":true,"b":[1,null,{"x":-2.5}]}"#;
        let ours = Json(serde_json::from_str(text).unwrap());
        let theirs = prost_types::Struct::decode(&ours.encode_to_vec()[..]).unwrap();
        let back = Json::decode(&theirs.encode_to_vec()[..]).unwrap();
        assert_eq!(back, ours);
        assert_eq!(serde_json::to_string(&back.0).unwrap(), text);
    }

    /// Reads a `Struct` as prost does, then converts it.
    fn by_prost(bytes: &[u8]) -> Result<Value, String> {
        fn value(wire: prost_types::Value) -> Value {
            match wire.kind {
                None | Some(Kind::NullValue(_)) => Value::Null,
                Some(Kind::BoolValue(flag)) => flag.into(),
                Some(Kind::NumberValue(number)) if !number.is_finite() => NOT_FINITE.into(),
                Some(Kind::NumberValue(number)) if number.fract() == 0.0 && number.abs() < 1e15 => {
                    Value::from(number.to_string().parse::<i64>().unwrap())
                }
                Some(Kind::NumberValue(number)) => number.into(),
                Some(Kind::StringValue(text)) => text.into(),
                Some(Kind::ListValue(list)) => list.values.into_iter().map(value).collect(),
                Some(Kind::StructValue(map)) => object(map),
            }
        }
        fn object(map: prost_types::Struct) -> Value {
            Value::Object(map.fields.into_iter().map(|(key, of)| (key, value(of))).collect())
        }
        prost_types::Struct::decode(bytes).map(object).map_err(|error| error.to_string())
    }

    /// Changes each byte of texts with each kind of value to every other byte, and cuts the texts.
    #[test]
    fn objects_are_read_as_prost_reads_them() {
        let deep = "[".repeat(40) + &"]".repeat(40);
        let deep = format!(r#"{{"deep":{deep}}}"#);
        let texts = [
            r#"{"":"","a":true,"b":[1,null,{"x":-2.5,"y":[]}],"c":"\u00e9","d":{"e":{}},"f":300}"#,
            r#"{"text":"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789"}"#,
            "{}",
            &deep,
        ];
        let (mut refused, mut others) = (0, 0);
        for text in texts {
            let object = Json(serde_json::from_str(text).unwrap());
            let whole = object.encode_to_vec();
            assert_eq!(object.encoded_len(), whole.len(), "{text}");
            let changed = (0..whole.len()).flat_map(|at| {
                let with = |byte: u8| [&whole[..at], &[byte], &whole[at + 1..]].concat();
                let mut all: Vec<_> = (0..=u8::MAX).map(with).collect();
                all.push(whole[..at].to_vec());
                // Entries and fields that occur twice.
                all.push([&whole[..at], &whole[..]].concat());
                all
            });
            for bytes in changed.chain([whole.clone(), whole.repeat(2)]) {
                let ours = Json::decode(&bytes[..]).map(|json| Value::Object(json.0));
                let ours = ours.map_err(|error| error.to_string());
                // Prost reads entries of any wire type. Here, an entry must be a message.
                let entry = "Struct.fields: invalid wire type";
                if ours.as_ref().is_err_and(|error| error.contains(entry)) {
                    others += 1;
                    continue;
                }
                assert_eq!(ours, by_prost(&bytes), "{bytes:?}");
                refused += u32::from(ours.is_err());
            }
        }
        assert!(refused > 1000 && others < refused / 2, "{refused} {others}");
    }

    #[test]
    fn a_time_is_one_of_a_calendar() {
        for (seconds, nanos) in [(i64::MAX, 0), (0, -1), (0, 1_000_000_000), (253_402_300_800, 0)] {
            let bytes = prost_types::Timestamp { seconds, nanos }.encode_to_vec();
            assert_eq!(Time::decode(&bytes[..]).unwrap().moment(), None);
        }
    }
}
