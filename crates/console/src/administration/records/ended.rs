//! Detects a new or narrowed record that would already have ended. It would permit no action, which
//! is probably a mistake.

use crate::kit::prelude::*;

/// Members with the time at which a record ends.
const ENDS: [&str; 3] = ["expires_at", "effective_until", "until"];

/// The member with an end in the past, and the error.
pub(super) fn over(values: &Map<String, Value>, now: DateTime<Utc>) -> Option<(String, String)> {
    let is_past = |name: &str| {
        let end = values.get(name).and_then(Value::as_str);
        let end = end.and_then(|end| DateTime::parse_from_rfc3339(end).ok());
        end.is_some_and(|end| end <= now)
    };
    let name = ENDS.into_iter().find(|name| is_past(name))?;
    Some((name.to_owned(), t::records::IN_PAST.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_end_in_the_past_is_named() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let of = |values: Value| over(values.as_object().unwrap(), now).map(|(name, _)| name);
        for (values, expected) in [
            (json!({"expires_at": "2027-01-15T07:59:59Z"}), Some("expires_at")),
            (json!({"expires_at": "2027-01-15T08:00:00Z"}), Some("expires_at")),
            (json!({"effective_until": "2027-01-15T09:59:00+02:00"}), Some("effective_until")),
            (json!({"until": "2026-01-01T00:00:00Z"}), Some("until")),
            (json!({"expires_at": "2027-01-15T08:00:01Z"}), None),
            (json!({"effective_from": "2020-01-01T00:00:00Z"}), None),
        ] {
            assert_eq!(of(values.clone()).as_deref(), expected, "{values}");
        }
    }
}
