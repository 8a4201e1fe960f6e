//! Rules of the decision core that are checked when a record is written.

use authority_model::{validate::Violations, wire::Time};

use authority_decision::{Amount, Bounds, Pattern, Target, currency, hours::Hours, jurisdiction};
use authority_graph::time_zones;

/// The fields of a `uses` row's bounds.
const CONSTRAINTS: [&str; 6] =
    ["max_amount", "currency", "max_uses", "max_total_amount", "jurisdictions", "hours"];

/// Returns the problem of an applies-to target, if any.
pub(crate) fn target(text: &str) -> Option<String> {
    match text.parse::<Target>() {
        Ok(target) => target.fault(),
        Err(problem) => Some(problem.to_string()),
    }
}

/// Returns the problem of an action pattern, if any.
pub(crate) fn pattern(text: &str) -> Option<String> {
    text.parse::<Pattern>().err().map(|problem| format!("`{text}` {problem}"))
}

/// Reports invalid action patterns. Skips a list in which the proto's equivalent rule has reported
/// a pattern.
pub(crate) fn patterns(field: &str, patterns: &[String], found: &mut Violations) {
    if found.has_list(field) {
        return;
    }
    for (index, text) in patterns.iter().enumerate() {
        if let Some(problem) = pattern(text) {
            found.add(&format!("{field}[{index}]"), problem);
        }
    }
}

/// Reports the invalid codes in a list of jurisdictions.
pub(crate) fn places(field: &str, codes: &[String], found: &mut Violations) {
    for (index, code) in codes.iter().enumerate() {
        if let Some(fault) = jurisdiction::fault(code) {
            found.add(&format!("{field}[{index}]"), fault);
        }
    }
}

/// Warns about bounds that may be mistakes. These are currencies outside ISO 4217 and invalid
/// jurisdiction codes that are already stored.
pub(crate) fn doubts(currency: Option<&str>, places: &[String]) -> Vec<String> {
    let places = places.iter().filter_map(|code| jurisdiction::fault(code));
    let places = places.map(|fault| format!("a place in `jurisdictions` never matches: {fault}"));
    currency.and_then(currency::doubt).into_iter().chain(places).collect()
}

/// Reports an invalid country.
pub(crate) fn country(field: &str, code: &str, found: &mut Violations) {
    let subdivision = jurisdiction::subdivision(code);
    if let Some(fault) = jurisdiction::fault(code) {
        found.add(field, fault);
    } else if subdivision.is_some() {
        found.add(field, format!("`{code}` is a subdivision; use its country"));
    }
}

/// Returns the problem of `allowed_actions_json`, a JSON array of patterns, if any.
pub(crate) fn allowed_actions(json: &str) -> Option<String> {
    match serde_json::from_str::<Vec<String>>(json) {
        Err(_) => Some("is not a JSON array of action patterns, such as `[\"payment.*\"]`".into()),
        Ok(patterns) => patterns.iter().find_map(|text| {
            text.parse::<Pattern>().err().map(|problem| format!("has `{text}`, which {problem}"))
        }),
    }
}

/// Returns the problem of `constraints_json`, a JSON object of bounds, if any.
pub(crate) fn constraints(json: &str) -> Option<String> {
    let members: serde_json::Map<String, serde_json::Value> = match serde_json::from_str(json) {
        Ok(members) => members,
        Err(_) => return Some("is not a JSON object".to_owned()),
    };
    if let Some(other) = members.keys().find(|name| !CONSTRAINTS.contains(&name.as_str())) {
        return Some(format!(
            "contains the unknown field `{other}`; known fields are {}",
            CONSTRAINTS.join(", ")
        ));
    }
    let bounds = match Bounds::read(json) {
        Ok(bounds) => bounds,
        Err(problem) => return Some(format!("is malformed: {problem}")),
    };
    let zone = bounds.hours.as_ref().and_then(Hours::time_zone);
    if let Some(fault) = zone.and_then(time_zones::fault) {
        return Some(format!("contains an invalid `time_zone` in `hours`: {fault}"));
    }
    if let Some(fault) = bounds.jurisdictions.iter().find_map(|code| jurisdiction::fault(code)) {
        return Some(format!("contains an invalid place in `jurisdictions`: {fault}"));
    }
    if let Some(code) = bounds.currency.as_deref().filter(|code| !currency::is_code(code)) {
        return Some(format!(
            "holds the currency `{code}`: write 3 to 8 capital letters or digits, a letter first, \
             such as `EUR`"
        ));
    }
    let total = bounds.max_total_amount.map(|limit| limit.amount);
    for (member, amount) in [("max_amount", bounds.max_amount), ("max_total_amount", total)] {
        if amount.is_some_and(|amount| amount < Amount::ZERO) {
            return Some(format!("contains a `{member}` below zero"));
        }
    }
    let windows = [
        bounds.max_uses.map(|limit| limit.window_seconds),
        bounds.max_total_amount.map(|limit| limit.window_seconds),
    ];
    if windows.contains(&Some(0)) {
        return Some("contains a `window_seconds` of 0; it must be at least 1".to_owned());
    }
    let has_amount = bounds.max_amount.is_some() || bounds.max_total_amount.is_some();
    (has_amount && bounds.currency.is_none())
        .then(|| "bounds an amount without a `currency`".to_owned())
}

/// Reports a period that ends before it begins.
pub(crate) fn span(
    from: (&str, Option<Time>),
    until: (&str, Option<Time>),
    found: &mut Violations,
) {
    if let (Some(begin), Some(end)) = (from.1, until.1)
        && begin >= end
    {
        found.add(until.0, format!("is not after `{}`", from.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_the_known_bounds() {
        assert_eq!(constraints(r#"{"max_amount":"500","currency":"EUR"}"#), None);
        assert_eq!(constraints(r#"{"max_amount":500,"currency":"EUR"}"#), None);
        assert_eq!(constraints(r#"{"jurisdictions":["DE","FR-75"]}"#), None);
        assert_eq!(constraints(r#"{"max_amount":"5","currency":"USDC"}"#), None);
        let zoned = r#"{"hours":{"from":"08:00","to":"09:00","time_zone":"Europe/Berlin"}}"#;
        assert_eq!(constraints(zoned), None);
        assert_eq!(constraints("{}"), None);
        for bad in [
            "",
            "[]",
            "null",
            r#"{"max_amount":"500"}"#,
            r#"{"max_amount":0.00001,"currency":"EUR"}"#,
            r#"{"max_uses":{"count":1,"window_seconds":0}}"#,
            r#"{"purposes":["x"]}"#,
            r#"{"max_uses":{"count":1}}"#,
            r#"{"max_amount":-1,"currency":"EUR"}"#,
            r#"{"max_total_amount":{"amount":"-0.5","window_seconds":60},"currency":"EUR"}"#,
            r#"{"jurisdictions":["DEU"]}"#,
            r#"{"jurisdictions":["DE","UK"]}"#,
            r#"{"jurisdictions":["EL-I"]}"#,
            r#"{"max_amount":"5","currency":"usd"}"#,
            r#"{"max_amount":"5","currency":"1EUR"}"#,
            r#"{"jurisdictions":[]}"#,
            "{\"jurisdictions\": [ \n ] , \"hours\": {\"from\": \"08:00\", \"to\": \"09:00\"}}",
            r#"{"jurisdictions":[],"jurisdictions":["DE"]}"#,
            r#"{"jurisdictions":["DE"],"jurisdictions":[]}"#,
            r#"{"jurisdictions":[""]}"#,
            r#"{"jurisdictions":null}"#,
            r#"{"hours":{"from":"08:00","to":"09:00","days":[]}}"#,
            r#"{"hours":{"from":"08:00","to":"09:00","time_zone":"Europe/Berln"}}"#,
            r#"{"hours":{"from":"08:00","to":"09:00","time_zone":"Europe/Berlin","utc_offset":"Z"}}"#,
        ] {
            assert!(constraints(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn allowed_actions_are_patterns() {
        assert_eq!(allowed_actions("[]"), None);
        assert_eq!(allowed_actions(r#"["payment.*","*"]"#), None);
        for bad in ["", "{}", "[1]", r#"["Payment"]"#, "null"] {
            assert!(allowed_actions(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_place_of_another_list_is_told_the_likely_one() {
        let told = constraints(r#"{"jurisdictions":["UK"]}"#).unwrap();
        assert!(told.ends_with("write `GB`"), "{told}");
        let mut found = Violations::default();
        places("jurisdictions", &["DE".to_owned(), "EL-I".to_owned()], &mut found);
        let [one] = found.list.as_slice() else { panic!("{found:?}") };
        assert_eq!(one.field, "jurisdictions[1]");
        assert!(one.problem.ends_with("write `GR-I`"), "{}", one.problem);
    }
}
