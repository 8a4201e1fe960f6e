//! Times in tokens (RFC 7519, section 2): seconds since 1970, for which fractions are allowed. Some
//! providers write them as text.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// Seconds since 1970; finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NumericDate(f64);

impl NumericDate {
    /// `None` if the value is not a time.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let seconds = match value {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => {
                let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
                let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
                let is_decimal = digits(whole) && digits(fraction);
                if !is_decimal || whole.is_empty() || fraction.is_empty() {
                    return None;
                }
                text.parse().ok()?
            }
            _ => return None,
        };
        seconds.is_finite().then_some(Self(seconds))
    }

    #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
    pub(super) fn floor(self) -> i64 {
        self.0.floor() as i64
    }

    #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
    pub(super) fn ceil(self) -> i64 {
        self.0.ceil() as i64
    }
}

impl<'de> Deserialize<'de> for NumericDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::of(&value).ok_or_else(|| D::Error::custom("must be seconds since 1970"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fractions_and_texts_are_times() {
        for value in [json!(1_795_809_574), json!("1795809574"), json!(1_795_809_574.0)] {
            let time = NumericDate::of(&value).unwrap();
            assert_eq!((time.floor(), time.ceil()), (1_795_809_574, 1_795_809_574), "{value}");
        }
        for value in [json!(1_795_809_574.25), json!("1795809574.25")] {
            let time = NumericDate::of(&value).unwrap();
            assert_eq!((time.floor(), time.ceil()), (1_795_809_574, 1_795_809_575), "{value}");
        }
        for value in [
            json!(null),
            json!(""),
            json!("soon"),
            json!("1e9"),
            json!("-1"),
            json!("1."),
            json!([1]),
        ] {
            assert_eq!(NumericDate::of(&value), None, "{value}");
        }
    }
}
