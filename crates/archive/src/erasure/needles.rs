//! Selects the lines that may mention a person, which the database then checks in detail.

use authority_model::wire::Json;
use serde_json::Value;

/// The person's names and ids as they appear in JSON strings, in lower case.
pub(super) struct Needles(Vec<String>);

impl Needles {
    pub(super) fn of(person: &Json) -> Self {
        let names =
            ["emails", "subjects"].iter().filter_map(|kind| person.0.get(*kind)?.as_object());
        let names = names.flat_map(|names| names.keys().cloned());
        let principals = person.0.get("principals").and_then(Value::as_array);
        let principals = principals.into_iter().flatten().filter_map(Value::as_str);
        let all = names.chain(principals.map(str::to_owned));
        let written = all.flat_map(|name| {
            let quoted = Value::from(name.as_str()).to_string();
            [quoted[1..quoted.len() - 1].to_lowercase(), name.to_lowercase()]
        });
        let mut needles: Vec<String> = written.collect();
        needles.sort();
        needles.dedup();
        Self(needles)
    }

    pub(super) fn are_in(&self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line).to_lowercase();
        self.0.iter().any(|needle| text.contains(needle))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_told_by_any_name_however_it_is_written() {
        let person = json!({"emails": {"ann@example.org": "c1"}, "subjects": {"dev|\"ann\"": "c2"},
                            "principals": ["svc:ent:acme:principal:1"], "within": null});
        let Value::Object(person) = person else { panic!() };
        let needles = Needles::of(&Json(person));
        for line in [
            r#"{"payee":"ANN@example.ORG"}"#,
            r#"{"by":"dev|\"ann\""}"#,
            r#"{"id":"svc:ent:acme:principal:1"}"#,
        ] {
            assert!(needles.are_in(line.as_bytes()), "{line}");
        }
        assert!(!needles.are_in(br#"{"payee":"bob@example.org"}"#));
    }
}
