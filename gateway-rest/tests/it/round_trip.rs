//! Random input: no panics, no lost data, and the same JSON as pbjson except for intended
//! differences.

use gateway_rest::{Shape, to_json, to_proto};
use gateway_rest_tests::{
    library::{Everything, Page, Wide, everything::Choice},
    tables,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use prost::Message;
use serde_json::{Map, Value, json};

#[track_caller]
fn shape() -> &'static Shape {
    tables::shape("library.v1.Everything").unwrap()
}

fn names() -> Vec<&'static str> {
    shape().fields.iter().map(|field| field.name).collect()
}

fn text() -> impl Strategy<Value = String> {
    "[^\u{0}]{0,12}"
}

/// Numbers with few digits, because `serde_json`, which parses for pbjson, can round the last digit
/// of long numbers differently.
fn plain_double() -> impl Strategy<Value = f64> {
    let eighths = (-1_000_000_i32..1_000_000).prop_map(|value| f64::from(value) / 8.0);
    prop_oneof![any::<i32>().prop_map(f64::from), eighths, Just(0.1)]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        plain_double()
            .prop_filter("integers are integers", |v| v.fract() != 0.0)
            .prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((text(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), json_value()), 0..5).prop_map(|members| members.into_iter().collect())
}

/// Converts JSON without pbjson, which loses nulls within a value.
fn value_of(json: Value) -> pbjson_types::Value {
    use pbjson_types::value::Kind;
    let kind = match json {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(value),
        Value::Number(value) => Kind::NumberValue(value.as_f64().unwrap()),
        Value::String(value) => Kind::StringValue(value),
        Value::Array(items) => Kind::ListValue(pbjson_types::ListValue {
            values: items.into_iter().map(value_of).collect(),
        }),
        Value::Object(members) => Kind::StructValue(struct_of(members)),
    };
    pbjson_types::Value { kind: Some(kind) }
}

fn struct_of(members: Map<String, Value>) -> pbjson_types::Struct {
    let fields = members.into_iter().map(|(name, value)| (name, value_of(value))).collect();
    pbjson_types::Struct { fields }
}

fn genre() -> impl Strategy<Value = i32> {
    select(vec![0, 1, 2])
}

fn timestamp() -> impl Strategy<Value = pbjson_types::Timestamp> {
    let micros = (0..1_000_000_i32).prop_map(|micros| micros * 1000);
    (-62_135_596_800_i64..=253_402_300_799, prop_oneof![Just(0), micros])
        .prop_map(|(seconds, nanos)| pbjson_types::Timestamp { seconds, nanos })
}

prop_compose! {
    fn numbers()(
        flag: bool, int: i32, signed: i32, signed_fixed: i32, unsigned: u32, unsigned_fixed: u32,
        single in -1e6_f32..1e6,
        double in prop_oneof![plain_double(), select(vec![1e300, -2.5e-200])],
        maybe_int in option::of(any::<i32>()), rank in option::of(any::<i32>()),
        ints in vec(any::<i32>(), 0..60), doubles in vec(plain_double(), 0..4),
    ) -> Everything {
        Everything {
            flag, int, signed, signed_fixed, unsigned, unsigned_fixed, single, double, maybe_int,
            rank: rank.map(|value| pbjson_types::Int32Value { value }), ints, doubles,
            ..Everything::default()
        }
    }
}

prop_compose! {
    fn texts()(
        text in text(), blob in vec(any::<u8>(), 0..150), genre in genre(),
        maybe in option::of(text()),
        nickname in option::of(text()), texts in vec(text(), 0..4),
        genres in vec(1..3_i32, 0..4), pages in vec("[a-z]{1,8}", 0..4),
        words in vec((text(), text()), 0..4), numbered in vec((any::<i32>(), "[a-z]{1,8}"), 0..3),
        maybe_genre in option::of(1..3_i32),
    ) -> Everything {
        let page = |name| Page { name };
        Everything {
            text, blob, genre, maybe, texts, genres, maybe_genre,
            nickname: nickname.map(|value| pbjson_types::StringValue { value }),
            pages: pages.into_iter().map(page).collect(),
            words: words.into_iter().collect(),
            numbered: numbered.into_iter().map(|(key, name)| (key, page(name))).collect(),
            ..Everything::default()
        }
    }
}

prop_compose! {
    fn special()(
        at in option::of(timestamp()), times in vec(timestamp(), 0..3),
        time in option::of((0..315_576_000_000_i64, 0..1_000_000_000_i32)),
        object in option::of(object()), anything in option::of(json_value()),
        nothing in option::of(Just(pbjson_types::Empty {})),
        choice in option::of(prop_oneof![
            text().prop_map(Choice::Left), any::<i32>().prop_map(Choice::Right),
        ]),
    ) -> Everything {
        Everything {
            at, times, nothing, choice,
            time: time.map(|(seconds, nanos)| pbjson_types::Duration { seconds, nanos }),
            object: object.map(struct_of),
            anything: anything.filter(|value| !value.is_null()).map(value_of),
            ..Everything::default()
        }
    }
}

fn everything() -> impl Strategy<Value = Everything> {
    let flat = (numbers(), texts(), special()).prop_map(|(mut one, two, three)| {
        for part in [two, three] {
            one.merge(part.encode_to_vec().as_slice()).unwrap();
        }
        one
    });
    flat.prop_recursive(3, 4, 1, |inner| {
        (inner.clone(), inner).prop_map(|(mut outer, inner)| {
            outer.inner = Some(Box::new(inner));
            outer
        })
    })
}

/// Converts pbjson's JSON to our form: enum values become words, integral numbers become integers,
/// and nulls and defaults are removed.
fn normal(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, normal(value)));
            members.filter(|(_, value)| !is_default(value)).collect()
        }
        Value::Array(items) => items.into_iter().map(normal).collect(),
        Value::Number(number) => {
            let value = number.as_f64().unwrap();
            #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
            if value.fract() == 0.0 && value.abs() < 9e15 {
                json!(value as i64)
            } else {
                json!(value)
            }
        }
        Value::String(text) => {
            let word = text.strip_prefix("GENRE_").map(str::to_lowercase);
            json!(word.unwrap_or(text))
        }
        other => other,
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Returns the first place where two values differ.
fn difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names = ours.keys().chain(theirs.keys());
            names.into_iter().find_map(|name| {
                let of = |members: &Map<String, Value>| members.get(name).cloned();
                let path = format!("{path}.{name}");
                match (of(ours), of(theirs)) {
                    (Some(ours), Some(theirs)) => difference(&path, &ours, &theirs),
                    (ours, theirs) => Some(format!("{path}: {ours:?} {theirs:?}")),
                }
            })
        }
        (ours, theirs) => (ours != theirs).then(|| format!("{path}: {ours} {theirs}")),
    }
}

/// Removes times and durations, which pbjson writes with a different number of decimals.
fn without_times(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !matches!(name.as_str(), "at" | "times" | "time" | "single"));
        if let Some(inner) = members.remove("inner") {
            members.insert("inner".to_owned(), without_times(inner));
        }
    }
    value
}

/// Returns our JSON without the scalars that pbjson leaves out.
fn without_zeros(mut value: Value) -> Value {
    let optional =
        ["maybe", "maybe_int", "rank", "nickname", "left", "right", "object", "anything"];
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, value| {
            let zero = *value == json!(0) || *value == json!("") || *value == json!(false);
            !zero || optional.contains(&name.as_str())
        });
        if let Some(inner) = members.remove("inner") {
            members.insert("inner".to_owned(), without_zeros(inner));
        }
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64, failure_persistence: None, ..Default::default()
    })]

    #[test]
    fn messages_come_back(message in everything()) {
        let json = to_json(shape(), &message.encode_to_vec()).unwrap();
        let back = to_proto(shape(), &json).unwrap();
        prop_assert_eq!(Everything::decode(back).unwrap(), message);
    }

    #[test]
    fn we_write_what_pbjson_writes(message in everything()) {
        let ours: Value =
            serde_json::from_slice(&to_json(shape(), &message.encode_to_vec()).unwrap()).unwrap();
        let theirs = serde_json::to_value(&message).unwrap();
        let ours = normal(without_zeros(without_times(ours)));
        let theirs = normal(without_zeros(without_times(theirs)));
        prop_assert_eq!(difference("", &ours, &theirs), None);
    }

    #[test]
    fn pbjson_reads_what_we_write(message in everything()) {
        let mut ours: Value =
            serde_json::from_slice(&to_json(shape(), &message.encode_to_vec()).unwrap()).unwrap();
        shout(&mut ours);
        let back: Everything = serde_json::from_value(ours).unwrap();
        // The messages are compared as our JSON, because pbjson loses nulls within a Struct.
        let (back, message) = (back.encode_to_vec(), message.encode_to_vec());
        prop_assert_eq!(to_json(shape(), &back).unwrap(), to_json(shape(), &message).unwrap());
    }

    #[test]
    fn we_read_what_pbjson_writes(message in everything()) {
        let mut theirs = serde_json::to_value(&message).unwrap();
        whisper(&mut theirs);
        let back = to_proto(shape(), theirs.to_string().as_bytes()).unwrap();
        prop_assert_eq!(Everything::decode(back).unwrap(), message);
    }

    #[test]
    fn random_text_is_no_panic(text in ".{0,60}") {
        let _ = to_proto(shape(), text.as_bytes());
    }

    #[test]
    fn random_json_is_no_panic(value in json_value(), object in object()) {
        let _ = to_proto(shape(), value.to_string().as_bytes());
        let both = json!({"object": object, "anything": value}).to_string();
        let read = to_proto(shape(), both.as_bytes());
        let message = Everything::decode(read.unwrap()).unwrap();
        let back = to_json(shape(), &message.encode_to_vec()).unwrap();
        let back: Value = serde_json::from_slice(&back).unwrap();
        prop_assert_eq!(&back["object"], &Value::Object(object));
        prop_assert_eq!(&back["anything"], &value);
    }

    #[test]
    fn members_of_any_type_are_no_panic(
        members in vec((select(names()), json_value()), 0..6),
    ) {
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
        let members: Map<_, _> = members.collect();
        if let Ok(read) = to_proto(shape(), Value::Object(members).to_string().as_bytes()) {
            prop_assert!(Everything::decode(read).is_ok());
        }
    }

    #[test]
    fn broken_json_is_no_panic(message in everything(), cut: prop::sample::Index, put: u8) {
        let mut json = to_json(shape(), &message.encode_to_vec()).unwrap();
        let at = cut.index(json.len());
        let _ = to_proto(shape(), &json[..at]);
        json[at] = put;
        let _ = to_proto(shape(), &json);
    }

    #[test]
    fn random_bytes_are_no_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = to_json(shape(), &bytes);
    }

    #[test]
    fn broken_messages_are_no_panic(message in everything(), cut: prop::sample::Index, put: u8) {
        let mut bytes = message.encode_to_vec();
        prop_assume!(!bytes.is_empty());
        let at = cut.index(bytes.len());
        let _ = to_json(shape(), &bytes[..at]);
        bytes[at] = put;
        if let Ok(json) = to_json(shape(), &bytes) {
            prop_assert!(serde_json::from_slice::<Value>(&json).is_ok());
        }
    }

    #[test]
    fn parts_are_merged_as_prost_merges_them(mut one in everything(), two in everything()) {
        without_choices(&mut one);
        let both = [one.encode_to_vec(), two.encode_to_vec()].concat();
        let merged = Everything::decode(both.as_slice()).unwrap();
        let ours = to_json(shape(), &both).unwrap();
        let expected = to_json(shape(), &merged.encode_to_vec());
        prop_assert_eq!(String::from_utf8(ours), String::from_utf8(expected.unwrap()));
    }

    #[test]
    fn wide_integers_are_strings(int: i64, unsigned: u64, signed: i64, ints in vec(any::<i64>(), 0..3)) {
        let shape = tables::shape("library.v1.Wide").unwrap();
        let wrapped = Some(pbjson_types::Int64Value { value: int });
        let message = Wide { int, unsigned, signed, fixed: unsigned, ints, wrapped };
        let json = to_json(shape, &message.encode_to_vec()).unwrap();
        let value: Value = serde_json::from_slice(&json).unwrap();
        prop_assert_eq!(&value["int"], &json!(int.to_string()));
        prop_assert_eq!(Wide::decode(to_proto(shape, &json).unwrap()).unwrap(), message);
    }
}

/// Clears the oneofs. If two parts set different members of a oneof, prost does not merge their
/// messages.
fn without_choices(message: &mut Everything) {
    message.choice = None;
    message.object = None;
    message.anything = None;
    if let Some(inner) = &mut message.inner {
        without_choices(inner);
    }
}

/// Converts enum values from our words to pbjson's names.
fn shout(value: &mut Value) {
    each_genre(value, &|word| *word = format!("GENRE_{}", word.to_uppercase()));
    drop_nulls(value);
}

fn whisper(value: &mut Value) {
    each_genre(value, &|word| *word = word.trim_start_matches("GENRE_").to_lowercase());
}

fn each_genre(value: &mut Value, change: &impl Fn(&mut String)) {
    let Some(members) = value.as_object_mut() else { return };
    for name in ["genre", "maybe_genre"] {
        if let Some(Value::String(word)) = members.get_mut(name) {
            change(word);
        }
    }
    for word in members.get_mut("genres").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::String(word) = word {
            change(word);
        }
    }
    if let Some(inner) = members.get_mut("inner") {
        each_genre(inner, change);
    }
}

/// Removes nulls. pbjson rejects a null if a field is not optional, and treats a null member of a
/// oneof as set.
fn drop_nulls(value: &mut Value) {
    let Some(members) = value.as_object_mut() else { return };
    members.retain(|_, value| !value.is_null());
    if let Some(inner) = members.get_mut("inner") {
        drop_nulls(inner);
    }
}
