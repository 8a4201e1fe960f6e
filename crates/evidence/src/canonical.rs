//! Writes the values that a decision stores as RFC 8785 JSON.
//!
//! Everything is written into one buffer. `serde_json_canonicalizer` allocates several buffers for
//! each field.

use serde_json::{Map, Number, Value};

/// The largest integer that is written directly. Up to this integer, a double represents every
/// integer exactly, and all implementations of RFC 8785 write it in the same way.
const EXACT: u64 = 1 << 53;

/// Writes an object.
///
/// # Errors
/// The object has a number that RFC 8785 cannot represent.
pub(crate) fn object(members: &Map<String, Value>) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::with_capacity(256);
    write_object(members, &mut text)?;
    Ok(text)
}

fn write(value: &Value, text: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(members) => write_object(members, text),
        Value::Array(items) => {
            text.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(b',');
                }
                write(item, text)?;
            }
            text.push(b']');
            Ok(())
        }
        Value::Number(number) if !is_exact(number) => {
            text.extend(serde_json_canonicalizer::to_vec(number)?);
            Ok(())
        }
        // `serde_json` escapes as RFC 8785 requires.
        plain => serde_json::to_writer(text, plain),
    }
}

/// Fields are sorted by the UTF-16 code units of their names.
fn write_object(members: &Map<String, Value>, text: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    text.push(b'{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        if place > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, name)?;
        text.push(b':');
        write(value, text)?;
    }
    text.push(b'}');
    Ok(())
}

fn is_exact(number: &Number) -> bool {
    number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= EXACT)
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};
    use serde_json::json;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1_000_000_i64..1_000_000).prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn it_is_what_a_canonicalizer_writes(value in values()) {
            let members = Map::from_iter([("b".to_owned(), value.clone()), ("a".to_owned(), value)]);
            prop_assert_eq!(object(&members).ok(), serde_json_canonicalizer::to_vec(&members).ok());
        }
    }

    #[test]
    fn names_are_sorted_by_utf_16_and_texts_escaped_as_little_as_can_be() {
        let Value::Object(members) = json!({
            "\u{fb33}": 1, "\u{1f600}": 2, "é": "\u{7f}\u{1}\n\"\\/<€", "a": [1.0, 1e21, -0.0, 0.1],
            "10": {"z": null, "Z": true}, "1": 9_007_199_254_740_992_u64,
        }) else {
            unreachable!()
        };
        let text = String::from_utf8(object(&members).unwrap()).unwrap();
        let wanted = "{\"1\":9007199254740992,\"10\":{\"Z\":true,\"z\":null},\"a\":[1,1e+21,0,0.1],\
             \"é\":\"\u{7f}\\u0001\\n\\\"\\\\/<€\",\"\u{1f600}\":2,\"\u{fb33}\":1}";
        assert_eq!(text, wanted);
    }
}
