//! Valid and invalid values of fields, derived from the fields' types and rules.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::routes::{Rules, message};

/// An invalid value and its fault. The value is JSON text, because a `Value` can't have, for
/// example, a duplicate field.
pub(crate) struct Bad {
    pub(crate) why: &'static str,
    pub(crate) json: String,
    /// The path below the field: `[0]`, `.x`.
    pub(crate) at: &'static str,
    /// Whether the error must name the field. It need not if the whole text is invalid.
    pub(crate) named: bool,
}

fn bad(why: &'static str, json: impl Into<String>) -> Bad {
    Bad { why, json: json.into(), at: "", named: true }
}

fn unnamed(why: &'static str, json: impl Into<String>) -> Bad {
    Bad { named: false, ..bad(why, json) }
}

/// Provides what valid values need: ids to refer to, and numbers that make names unique.
pub(crate) trait Source {
    /// Returns a value for a field that refers to a record; `None` for any other field.
    fn reference(&self, member: &str, owner: &str) -> Option<String>;
    /// Returns a number that was not returned before.
    fn next(&self) -> usize;
}

/// Returns an object with the required fields, and optionally with the optional references.
pub(crate) fn sample(
    of: &MessageDescriptor,
    whole: bool,
    source: &dyn Source,
) -> Map<String, Value> {
    let wanted = |field: &FieldDescriptor, rules: &Rules| {
        let optional = whole && field.name().ends_with("_id") && field.name() != "parent_id";
        !rules.output_only && (rules.required || optional)
    };
    let mut members = Map::new();
    for field in of.fields() {
        let rules = Rules::of(&field);
        if wanted(&field, &rules)
            && let Some(value) = good(&field, &rules, source)
        {
            members.insert(field.name().to_owned(), value);
        }
    }
    members
}

/// Returns a valid value for the field.
pub(crate) fn good(field: &FieldDescriptor, rules: &Rules, source: &dyn Source) -> Option<Value> {
    if field.is_list() {
        let items = rules.items.as_deref().cloned().unwrap_or_default();
        return Some(json!([one(field, &items, source)?]));
    }
    one(field, rules, source)
}

fn one(field: &FieldDescriptor, rules: &Rules, source: &dyn Source) -> Option<Value> {
    Some(match field.kind() {
        Kind::String => string(field, rules, source)?.into(),
        Kind::Bool => false.into(),
        Kind::Message(inner) => match inner.full_name() {
            // `sampled_at` is the time of an observation. All other times are ends of periods.
            "google.protobuf.Timestamp" if field.name() == "sampled_at" => {
                "2026-01-01T00:00:00Z".into()
            }
            "google.protobuf.Timestamp" => "2100-01-01T00:00:00Z".into(),
            "google.protobuf.Struct" if field.name() == "authority" => {
                json!({"owner_entity_id": source.reference("owner_principal_id", "")})
            }
            "google.protobuf.Struct" => json!({}),
            "google.protobuf.FieldMask" => return None,
            _ => Value::Object(sample(&inner, false, source)),
        },
        Kind::Int32 | Kind::Uint32 => rules.least.unwrap_or(1).into(),
        _ => 1.into(),
    })
}

fn string(field: &FieldDescriptor, rules: &Rules, source: &dyn Source) -> Option<String> {
    if let Some(word) = rules.one_of.first() {
        // `tool` refers to a kind of which every tenant has a record.
        return Some(rules.one_of.iter().find(|word| *word == "tool").unwrap_or(word).clone());
    }
    let owner = field.parent_message().name().to_owned();
    if let Some(id) = source.reference(field.name(), &owner) {
        return Some(id);
    }
    let n = source.next();
    if rules.email {
        return Some(format!("fuzz{n}@example.com"));
    }
    let Some(pattern) = &rules.pattern else { return Some(format!("fuzz {n}")) };
    let pattern = regex::Regex::new(pattern).ok()?;
    let tries = [
        format!("fuzz{n}"),
        format!("fuzz{n}.example.com"),
        "DE".to_owned(),
        "EUR".to_owned(),
        "100".to_owned(),
        "Z".to_owned(),
        "08:00".to_owned(),
        "https://example.com/".to_owned(),
        "svc:agent:fuzz:fuzz".to_owned(),
        "#a0b1c2".to_owned(),
        "stable_drift".to_owned(),
        format!("sha256:{n:064x}"),
        format!("{n:032x}"),
        format!("action:fuzz.{n}"),
    ];
    tries.into_iter().find(|text| pattern.is_match(text))
}

/// Returns values that break a rule of the field or have the wrong type.
pub(crate) fn bads(field: &FieldDescriptor, rules: &Rules, source: &dyn Source) -> Vec<Bad> {
    let mut found = Vec::new();
    if field.is_map() {
        return vec![bad("not an object", "[]")];
    }
    if !field.is_list() {
        return singles(field, rules);
    }
    found.push(bad("no list", r#""x""#));
    found.push(bad("no list", "{}"));
    let items = rules.items.as_deref().cloned().unwrap_or_default();
    for item in singles(field, &items) {
        found.push(Bad { json: format!("[{}]", item.json), at: "[0]", ..item });
    }
    let Some(item) = one(field, &items, source) else { return found };
    if let Some(most) = rules.max_items.filter(|most| *most <= 1000) {
        found.push(bad("too many", json!(vec![&item; most + 1]).to_string()));
    }
    if rules.unique && field.kind() == Kind::String {
        found.push(bad("a duplicate item", json!([item, item]).to_string()));
    }
    found
}

fn singles(field: &FieldDescriptor, rules: &Rules) -> Vec<Bad> {
    match field.kind() {
        Kind::String => {
            let mut found = strings(rules);
            if rules.refuse_empty(field) {
                found.push(bad("empty", r#""""#));
            }
            found
        }
        Kind::Bool => vec![bad("no bool", r#""yes""#), bad("no bool", "1"), bad("no bool", "{}")],
        Kind::Int32 | Kind::Uint32 => numbers(rules),
        Kind::Float | Kind::Double => {
            vec![bad("not a number", r#""x""#), bad("not a number", "{}")]
        }
        Kind::Enum(_) => vec![bad("unknown value", r#""no_such_word""#), bad("not a word", "{}")],
        Kind::Message(inner) => match inner.full_name() {
            "google.protobuf.Timestamp" => vec![
                bad("no time", r#""yesterday""#),
                bad("no time", "17"),
                bad("not a day of the calendar", r#""2026-02-30T00:00:00Z""#),
                bad("no zone", r#""2026-01-01T00:00:00""#),
                bad("beyond the calendar", r#""99999-01-01T00:00:00Z""#),
            ],
            "google.protobuf.Struct" => structs(),
            "google.protobuf.ListValue" => {
                vec![bad("no list", "5"), bad("no list", "{}"), bad("no list", r#""x""#)]
            }
            _ => vec![bad("no object", "5"), bad("no object", "[]"), bad("no object", r#""x""#)],
        },
        _ => Vec::new(),
    }
}

fn strings(rules: &Rules) -> Vec<Bad> {
    let mut found = vec![
        bad("no string", "17"),
        bad("no string", "true"),
        bad("no string", "{}"),
        bad("no string", r#"["x"]"#),
        bad("U+0000", r#""a\u0000b""#),
        unnamed("half a surrogate pair", r#""\ud800""#),
    ];
    if !rules.one_of.is_empty() {
        found.push(bad("unknown value", r#""no_such_word""#));
    }
    if let Some(wrong) = rules.pattern.as_deref().and_then(misfit) {
        found.push(bad("wrong shape", json!(wrong).to_string()));
    }
    if rules.email {
        found.push(bad("no e-mail", r#""nobody""#));
    }
    if let Some(most) = rules.max_len.filter(|most| *most < 200_000) {
        found.push(bad("too long", format!("\"{}\"", "a".repeat(most + 1))));
    }
    found
}

/// Returns a text that does not match the pattern.
fn misfit(pattern: &str) -> Option<&'static str> {
    let pattern = regex::Regex::new(pattern).ok()?;
    ["!! no", "\u{1}", ""].into_iter().find(|text| !pattern.is_match(text))
}

fn numbers(rules: &Rules) -> Vec<Bad> {
    let mut found = vec![
        bad("no number", r#""x""#),
        bad("no number", "{}"),
        bad("no number", "true"),
        bad("no integer", "1.5"),
        bad("beyond 32 bits", "9007199254740993"),
        bad("beyond 32 bits", "-9007199254740993"),
        unnamed("no JSON", "NaN"),
    ];
    let over = |limit: Option<i64>, by: i64| {
        let number = limit?.checked_add(by)?;
        i32::try_from(number).ok().map(|number| bad("out of bounds", number.to_string()))
    };
    found.extend(over(rules.most, 1));
    found.extend(over(rules.least, -1));
    found
}

fn structs() -> Vec<Bad> {
    let deep =
        |depth: usize| format!(r#"{{"a":{}1{}}}"#, r#"{"a":"#.repeat(depth), "}".repeat(depth));
    vec![
        bad("no object", "[]"),
        bad("no object", r#""x""#),
        bad("no object", "5"),
        bad("U+0000", r#"{"a":"b\u0000c"}"#),
        bad("U+0000 in a name", r#"{"a\u0000":1}"#),
        unnamed("too deep", deep(33)),
        unnamed("far too deep", deep(3000)),
        unnamed("a number over 2^53", r#"{"a":9007199254740993}"#),
        unnamed("a number above all doubles", r#"{"a":1e999}"#),
        unnamed("a duplicate field", r#"{"a":1,"a":1}"#),
        unnamed("not JSON", r#"{"a":NaN}"#),
    ]
}

/// A field of a request, with the messages that contain it.
pub(crate) struct Place {
    /// The fields of the enclosing messages, outermost first.
    pub(crate) around: Vec<FieldDescriptor>,
    pub(crate) field: FieldDescriptor,
}

impl Place {
    /// Returns the name of the field as errors show it: `gate.tightenings[0].oversight`.
    pub(crate) fn name(&self) -> String {
        let mut name = String::new();
        for outer in &self.around {
            name += outer.name();
            name += if outer.is_list() { "[0]." } else { "." };
        }
        name + self.field.name()
    }

    /// Returns a body in which only this field is invalid or absent.
    pub(crate) fn body(
        &self,
        base: &Map<String, Value>,
        json: Option<&str>,
        source: &dyn Source,
    ) -> String {
        let mut member = self.field.name().to_owned();
        let mut json = json.map(str::to_owned);
        for outer in self.around.iter().rev() {
            let inner = message(outer).map(|inner| sample(&inner, false, source));
            let object = with(&inner.unwrap_or_default(), &member, json.as_deref());
            json = Some(if outer.is_list() { format!("[{object}]") } else { object });
            outer.name().clone_into(&mut member);
        }
        with(base, &member, json.as_deref())
    }
}

/// Returns the object with one field replaced or removed.
fn with(base: &Map<String, Value>, member: &str, json: Option<&str>) -> String {
    let mut texts: Vec<_> = base
        .iter()
        .filter(|(name, _)| *name != member)
        .map(|(name, value)| format!("{}:{value}", json!(name)))
        .collect();
    texts.extend(json.map(|json| format!("{}:{json}", json!(member))));
    format!("{{{}}}", texts.join(","))
}

/// Returns the fields, and the fields of nested messages that the API defines.
pub(crate) fn places(fields: Vec<FieldDescriptor>) -> Vec<Place> {
    let mut found = Vec::new();
    descend(fields, &mut Vec::new(), &mut found);
    found
}

fn descend(fields: Vec<FieldDescriptor>, around: &mut Vec<FieldDescriptor>, to: &mut Vec<Place>) {
    for field in fields {
        to.push(Place { around: around.clone(), field: field.clone() });
        let inner = message(&field).filter(|_| around.len() < 4 && !field.is_map());
        let closed = Rules::of(&field).output_only;
        if let Some(inner) = inner.filter(|_| !closed) {
            around.push(field);
            descend(inner.fields().collect(), around, to);
            around.pop();
        }
    }
}
