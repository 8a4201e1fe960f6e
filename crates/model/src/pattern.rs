//! Descriptions of the patterns in the protos. They replace the regular expression in an error: a
//! client gets a sentence and an example.

/// The patterns and their descriptions, which follow "must be".
const PATTERNS: &[(&str, &str)] = &[
    (
        "^(0|[1-9][0-9]{0,13})([.][0-9]{1,4})?$",
        "an amount in digits, without a currency or separators, such as 1250 or 1250.50",
    ),
    ("^[A-Z]{3}$", "the three capital letters of a currency, such as EUR"),
    (
        "^[A-Z][A-Z0-9]{2,7}$",
        "a currency in 3 to 8 capital letters or digits, with a letter first, such as EUR or USDC",
    ),
    ("^[A-Z]{2}$", "the two capital letters of a country, such as DE"),
    (
        "^[A-Z]{2}(-[A-Z0-9]{1,3})?$",
        "the two capital letters of a country, such as DE, or one of its parts, such as US-CA",
    ),
    (
        "^([*]|[a-z0-9_-]+([.][a-z0-9_-]+)*([.][*])?)$",
        "an action in small letters, such as payment.execute, or a pattern of them, such as payment.*",
    ),
    (
        "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        "a time of day in hours and minutes, from 00:00 to 23:59, such as 08:30",
    ),
    (
        "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$",
        "a time of day in hours and minutes, from 00:00 to 24:00, such as 17:30",
    ),
    (
        "^(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$",
        "an offset from UTC, such as +01:00, or Z for UTC itself",
    ),
    ("^[Hh][Tt][Tt][Pp][Ss]?://", "an address that begins with https://"),
    ("^https?://[^ ]+$", "an address that begins with https:// or http://, without spaces"),
    (
        "^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?([/?#][!-~]*)?$",
        "an address that begins with https://, without spaces",
    ),
    (
        "^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?([/?#][!-~]*)?$",
        "an address that begins with https://, without spaces",
    ),
    (
        "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+([a-z]{2,63}|xn--[a-z0-9-]{0,58}[a-z0-9])$",
        "a domain in small letters, such as example.org",
    ),
    (
        "^([*]|(action|effect_class|risk_tier|principal_class|resource_kind|purpose|jurisdiction):.+)$",
        "* for everything, or a kind and a value, such as action:payment.execute or risk_tier:high",
    ),
    (
        "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        "small letters, digits and hyphens, with no hyphen at either end",
    ),
    ("^#[0-9A-Fa-f]{6}$", "a colour as # and six digits or letters from a to f, such as #0a6b3d"),
    ("^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,7}$", "a language's code, such as de or pt-BR"),
    (SLUG, "small letters, digits and hyphens, 63 at most, with no hyphen at either end"),
    (
        "^[a-z0-9]([a-z0-9_.-]{0,61}[a-z0-9])?$",
        "small letters, digits, dots, hyphens and underscores, 63 at most, with a letter or digit at both ends",
    ),
    (
        "^[a-z][a-z0-9_.-]{0,62}$",
        "small letters, digits, dots, hyphens and underscores, 63 at most, with a letter first",
    ),
    ("^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$", "a language tag, such as de or pt-BR"),
    ("^[a-z][a-z0-9_]*$", "small letters, digits and underscores, with a letter first"),
    ("^[a-z0-9][a-z0-9_-]*$", "small letters, digits, hyphens and underscores"),
    (
        "^[a-z0-9_-]+([.][a-z0-9_-]+)*$",
        "small letters, digits, hyphens and underscores, in parts with dots between them",
    ),
    (
        "^[A-Za-z_][A-Za-z0-9_.-]{0,99}$",
        "letters, digits, dots, hyphens and underscores, 100 at most, with a letter or an underscore first",
    ),
    (
        "^[A-Za-z0-9][A-Za-z0-9_.:-]*$",
        "letters, digits, dots, colons, hyphens and underscores, without spaces",
    ),
    ("^[A-Za-z0-9][A-Za-z0-9_. -]*$", "letters, digits, spaces, dots, hyphens and underscores"),
    (
        "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        "letters, digits, dots, hyphens and underscores, without spaces",
    ),
    ("^[!-~]+$", "letters, digits and signs of a keyboard, without spaces"),
    (
        "^(svc:decision:[0-9a-f]{64}|[a-z0-9_-]+([.][a-z0-9_-]+)*)$",
        "a decision's id, or an action, such as payment.execute",
    ),
    (
        "^[a-z0-9]+([._-][a-z0-9]+)*$",
        "small letters and digits, in parts with dots, hyphens or underscores between them",
    ),
    ("^[a-z0-9_-]+(\\.[a-z0-9_-]+)*$", "an action in small letters, such as payment.execute"),
    (
        "^svc:(agent:[a-z0-9-]+:[a-z0-9._-]+|ent:[a-z0-9-]+:principal:[0-9a-f]{32})$",
        "the id of an agent or another principal, such as svc:agent:acme:invoice-bot",
    ),
    ("^svc:[a-z_]+:[!-~]+$", "an id, such as svc:agent:acme:invoice-bot or svc:tenant:acme"),
    (
        "^svc:decision:[0-9a-f]{64}$",
        "the id of a decision: svc:decision: and 64 hexadecimal digits",
    ),
    (
        "^(/([^/~]|~[01])*)+$",
        "a JSON pointer to a member (RFC 6901), such as /amount or /order/total",
    ),
    ("^sha256:[0-9a-f]{64}$", "a digest: sha256: and 64 hexadecimal digits"),
    ("^[0-9a-f]{32}$", "32 hexadecimal digits in small letters"),
    ("^svc:event:[0-9a-f]{32}$", "the id of an event: svc:event: and 32 hexadecimal digits"),
    ("^svc[.][a-z_]+([.][a-z_]+)?$", "an event's type, such as svc.decision.denied"),
    (
        concat!(
            "^(stable_drift|verified_but_stale|source_of_truth_stale|operational_context_stale|",
            "policy_context_shifted|environment_state_mismatch|system_of_record_conflict|",
            "assumption_expired|semantic_anchor_drift|cross_[a-z0-9_]{1,58})$",
        ),
        "one of the types of drift, or a type of your own that begins with cross_",
    ),
];

/// The grammar of slugs and of names in ids.
const SLUG: &str = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";

/// The description of a pattern, to follow "must be"; `None` for an unknown pattern.
pub(crate) fn words(pattern: &str) -> Option<&'static str> {
    PATTERNS.iter().find(|(known, _)| *known == pattern).map(|(_, words)| *words)
}

#[cfg(test)]
mod tests {
    use prost_reflect::{DescriptorPool, Value};

    use super::*;

    fn patterns(rules: &Value, found: &mut Vec<String>) {
        let Some(rules) = rules.as_message() else { return };
        for (field, value) in rules.fields() {
            match value.as_str() {
                Some(pattern) if field.name() == "pattern" => found.push(pattern.to_owned()),
                _ => patterns(value, found),
            }
        }
    }

    #[test]
    fn every_pattern_of_the_protos_has_a_description() {
        let pool = DescriptorPool::decode(crate::DESCRIPTORS).unwrap();
        let rules = pool.get_extension_by_name("buf.validate.field").unwrap();
        let mut found = Vec::new();
        for field in pool.all_messages().flat_map(|message| message.fields().collect::<Vec<_>>()) {
            if field.parent_message().package_name().starts_with("authority.") {
                patterns(&field.options().get_extension(&rules), &mut found);
            }
        }
        assert!(found.len() > 100, "{found:?}");
        for pattern in &found {
            assert!(words(pattern).is_some(), "{pattern} has no description");
        }
        for (pattern, words) in PATTERNS {
            assert!(found.iter().any(|used| used == pattern), "no proto has {pattern}");
            assert!(!words.contains('^'), "{words}");
        }
    }
}
