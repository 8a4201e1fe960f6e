//! Rust types for the well-known protobuf types, for both protobuf and SQL.
//!
//! The build script uses these types in place of prost's. Other code does not convert between them.

mod computed;
mod json;
pub(crate) mod jsonb;
mod mask;
mod time;

pub(crate) use computed::{Computed, ComputedSql, computed};
pub use json::Json;
pub(crate) use json::NOT_FINITE;
pub use mask::FieldMask;
pub use time::Time;

#[cfg(test)]
mod tests {
    use prost::Message;

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

    #[test]
    fn a_time_is_one_of_a_calendar() {
        for (seconds, nanos) in [(i64::MAX, 0), (0, -1), (0, 1_000_000_000), (253_402_300_800, 0)] {
            let bytes = prost_types::Timestamp { seconds, nanos }.encode_to_vec();
            assert_eq!(Time::decode(&bytes[..]).unwrap().moment(), None);
        }
    }
}
