//! Replaces the values in responses that differ from run to run. Whole responses can then be
//! compared.
//!
//! `insta::assert_snapshot!` compares a response with a stored snapshot. `INSTA_UPDATE=always cargo
//! test --test it` stores the snapshots of the tests that it runs.

use std::{collections::HashMap, sync::LazyLock};

use regex::{Captures, Regex};
use serde_json::Value;

/// Fields with numbers that depend on the run.
const COUNTS: [&str; 2] = ["authority_revision", "seconds_since_success"];

/// Matches times, revisions, signatures, digests, ids and addresses.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    let time = r"(?<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\b\d{16}\b)";
    let date = r"(?<date>\d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d:\d\d UTC)";
    let revision = r"(?<revision>Revision \d+)";
    let key = r"(?<key>svc-[a-z]+-\d{4}-[0-9a-f]{8})";
    let signature = r"(?<signature>[A-Za-z0-9+/]{86}==)";
    let digest = r"(?<digest>[0-9a-f]{64})";
    let id = r"(?<id>[0-9a-f]{32})";
    let address = r"(?<address>127\.0\.0\.1:\d+)";
    Regex::new(&[time, date, revision, key, signature, digest, id, address].join("|")).unwrap()
});

/// Returns `answer` as text with such values replaced by names. Equal ids get equal names.
pub(crate) fn redacted(mut answer: Value) -> String {
    without_counts(&mut answer);
    redacted_text(&format!("{answer:#}"))
}

pub(crate) fn redacted_text(text: &str) -> String {
    let mut names: HashMap<String, String> = HashMap::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let name = |found: &Captures<'_>| {
        let kind = VARIABLE.capture_names().flatten().find(|kind| found.name(kind).is_some());
        let kind = kind.unwrap_or_default();
        // Times get no numbered names, because two may be equal by chance.
        if ["time", "date", "revision"].contains(&kind) {
            return format!("<{kind}>");
        }
        let named = names.entry(found[0].to_owned()).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            format!("<{kind} {count}>")
        });
        named.clone()
    };
    VARIABLE.replace_all(text, name).into_owned()
}

fn without_counts(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if COUNTS.contains(&name.as_str()) {
                    *member = Value::from("<count>");
                } else {
                    without_counts(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_counts),
        _ => {}
    }
}
