//! JSON numbers, without silent rounding.

/// From this number on, a double cannot represent every integer (RFC 8259, section 6).
const BEYOND_EXACT: f64 = 9_007_199_254_740_992.0;

/// The problem of a number of at least 2^53. The service has the same text for gRPC. It suggests
/// text only for identifiers, because a member that expects a number refuses text.
pub const BEYOND: &str =
    "is beyond 2^53-1, where numbers would be rounded; send an identifier as text";
/// The problem of a number that has more digits than a double keeps. It does not suggest a string:
/// members that expect a number refuse strings.
pub(super) const ROUNDED: &str =
    "would be rounded: a number here keeps about 16 digits; use fewer digits";

/// Parses an integer, also written as `5.0` or `5e2`; `None` for any other literal.
pub(crate) fn integer(literal: &str) -> Option<i128> {
    if let Ok(value) = literal.parse() {
        return Some(value);
    }
    let value: f64 = literal.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
    let whole = (value.fract() == 0.0 && value.abs() < BEYOND_EXACT && exact(literal, value))
        .then_some(value as i128);
    whole
}

/// Parses a finite double; `None` if the literal is too large.
pub(crate) fn double(literal: &str) -> Option<f64> {
    literal.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses a double that represents the literal: below 2^53, and without losing digits. The error is
/// the problem.
pub(super) fn unrounded(literal: &str) -> Result<f64, &'static str> {
    match double(literal) {
        Some(value) if value.abs() < BEYOND_EXACT => {
            if exact(literal, value) {
                Ok(value)
            } else {
                Err(ROUNDED)
            }
        }
        _ => Err(BEYOND),
    }
}

/// Returns whether the shortest text of `value` has the digits of `literal`.
fn exact(literal: &str, value: f64) -> bool {
    // Up to 15 digits survive the round trip, unless the number is too near to zero.
    if literal.len() <= 15 && value != 0.0 && value.abs() > 1e-290 {
        return true;
    }
    significant(literal) == significant(&format!("{value:e}"))
}

/// Returns the digits from the first to the last non-zero one, and the power of ten of the last.
fn significant(literal: &str) -> (String, i64) {
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: String = whole.trim_start_matches('-').to_owned() + fraction;
    let mut power = exponent.trim_start_matches('+').parse().unwrap_or(i64::MIN / 2);
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    power = i64::saturating_sub(power, length(fraction));
    let written = length(&digits);
    digits.truncate(digits.trim_end_matches('0').len());
    power = power.saturating_add(written - length(&digits));
    let digits = digits.trim_start_matches('0').to_owned();
    if digits.is_empty() { (digits, 0) } else { (digits, power) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_a_double_can_say() {
        for literal in [
            "0",
            "-0",
            "0e9223372036854775807",
            "0.0",
            "1.5",
            "0.1",
            "9007199254740991",
            "-9007199254740991",
            "1e3",
            "1.50e-7",
        ] {
            assert!(unrounded(literal).is_ok(), "{literal}");
        }
        assert!(unrounded("0.30000000000000004").is_ok());
        assert!(unrounded("123456789012345.6").is_ok());
    }

    #[test]
    fn refuses_what_it_cannot() {
        for literal in ["9007199254740992", "9007199254740993", "-1e16", "1e300", "1e400"] {
            assert_eq!(unrounded(literal), Err(BEYOND), "{literal}");
        }
        let digits = ["1e-400", "0.1000000000000000055511151231257827", "1234567890123456.789"];
        for literal in digits {
            assert_eq!(unrounded(literal), Err(ROUNDED), "{literal}");
        }
    }

    #[test]
    fn integers_may_be_written_with_point_or_exponent() {
        assert_eq!(integer("5"), Some(5));
        assert_eq!(integer("5.0"), Some(5));
        assert_eq!(integer("5e2"), Some(500));
        assert_eq!(integer("5.5"), None);
        assert_eq!(integer("4.9999999999999999999"), None);
        assert_eq!(integer("1e99"), None);
    }
}
