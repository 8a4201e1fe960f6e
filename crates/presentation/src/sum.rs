//! Exact sums of JSON numbers.

use serde_json::Value;

/// The maximum number of decimal places of a number in a sum.
const MOST_PLACES: u32 = 18;

/// Returns the exact sum in decimal digits. `None` without numbers, if a value is not a number, and
/// if a number or the sum has too many digits to be exact.
pub(crate) fn sum<'v>(values: impl Iterator<Item = Option<&'v Value>>) -> Option<String> {
    let (mut total, mut places, mut is_empty) = (0_i128, 0, true);
    for value in values {
        let (number, own) = decimal(&value?.as_number()?.to_string())?;
        let most = places.max(own);
        total = raised(total, most - places)?.checked_add(raised(number, most - own)?)?;
        (places, is_empty) = (most, false);
    }
    (!is_empty).then(|| text(total, places))
}

/// A number as JSON writes it, as an integer and the decimal places in it.
fn decimal(text: &str) -> Option<(i128, u32)> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let exponent: i64 = exponent.parse().ok()?;
    let places = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    if places < 0 {
        return Some((raised(number, u32::try_from(-places).ok()?)?, 0));
    }
    let places = u32::try_from(places).ok().filter(|places| *places <= MOST_PLACES)?;
    Some((number, places))
}

/// The number with this many further digits.
fn raised(number: i128, digits: u32) -> Option<i128> {
    number.checked_mul(10_i128.checked_pow(digits)?)
}

fn text(number: i128, places: u32) -> String {
    let places = usize::try_from(places).unwrap_or_default();
    let sign = if number < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sum_is_exact_or_absent() {
        for (values, expected) in [
            (json!([0.1, 0.2]), Some("0.3")),
            (json!([19.5, 0.5, -3]), Some("17")),
            (json!([-0.05, 0.02]), Some("-0.03")),
            (json!([1e-7, 1]), Some("1.0000001")),
            (json!([1e20, 1]), Some("100000000000000000001")),
            (json!([18446744073709551615_u64, 1]), Some("18446744073709551616")),
            (json!([0]), Some("0")),
            (json!([]), None),
            (json!([1, "2"]), None),
            (json!([1, null]), None),
            (json!([1, true]), None),
            (json!([1e300]), None),
            (json!([1e-300, 1]), None),
        ] {
            assert_eq!(
                sum(values.as_array().unwrap().iter().map(Some)).as_deref(),
                expected,
                "{values}"
            );
        }
        assert_eq!(sum([Some(&json!(1)), None].into_iter()), None);
    }
}
