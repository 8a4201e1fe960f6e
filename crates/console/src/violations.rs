//! What is wrong with a value, for people: the API names the pattern that a text must match, and few read those.

/// What a text of each pattern is, in words that end `must be …`.
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
        "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]{2,63}$",
        "a domain in small letters, such as example.org",
    ),
    (
        "^([*]|(action|effect_class|risk_tier|principal_class|resource_kind|purpose|jurisdiction):.+)$",
        "* for everything, or a kind and a value, such as action:payment.execute or risk_tier:high",
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
/// How a violation says that a text does not match.
const DIFFERS: &str = " does not match ";

/// Whether a text names a pattern. What is wrong with each member stands beside that, in words.
pub(crate) fn names_a_pattern(text: &str) -> bool {
    text.contains(DIFFERS)
}

/// What is wrong, without a pattern: `"100 EUR" must be an amount in digits, …`.
pub(crate) fn in_words(problem: &str) -> String {
    let Some((value, pattern)) = problem.rsplit_once(DIFFERS) else { return problem.to_owned() };
    let found = PATTERNS.iter().find(|(known, _)| *known == pattern);
    match found {
        Some((_, words)) => format!("{value} must be {words}"),
        None => format!("{value} has characters, or a form, that it may not have"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::{KINDS, Operation, patterns};

    #[test]
    fn a_pattern_is_said_in_words() {
        assert_eq!(
            in_words("`100 EUR` does not match ^(0|[1-9][0-9]{0,13})([.][0-9]{1,4})?$"),
            "`100 EUR` must be an amount in digits, without a currency or separators, such as 1250 or 1250.50"
        );
        assert_eq!(in_words("is unknown"), "is unknown");
        let other = in_words("`x` does not match ^y$");
        assert!(other.starts_with("`x` has characters") && !other.contains('^'), "{other}");
    }

    #[test]
    fn every_pattern_of_a_form_has_its_words() {
        let forms = KINDS.iter().flat_map(|kind| {
            let of_operations = kind.operations.iter().map(Operation::form);
            of_operations.chain([kind.list.input.clone()])
        });
        let used: BTreeSet<String> = forms.flat_map(|form| patterns(&form)).collect();
        assert!(used.len() > 10, "{used:?}");
        for pattern in used {
            assert!(PATTERNS.iter().any(|(known, _)| *known == pattern), "{pattern}");
        }
    }
}
