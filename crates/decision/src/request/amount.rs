//! Exact amounts, such as money, with up to four decimals. They are never rounded.
//!
//! A request's amount is a JSON number, and therefore a double. The amount is the shortest decimal
//! text that parses to that double. It is stored in ten-thousandths, as in Cedar's decimal: a
//! policy and a bound can never compare it differently.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::Number;

const SCALE: i64 = 10_000;
const DECIMALS: usize = 4;

/// The reason why a text or number is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    #[error("must be a decimal number such as `2500` or `0.5`")]
    Malformed,
    #[error("has more than 4 decimals; amounts are never rounded")]
    Decimals,
    #[error("is beyond 922337203685477.5807")]
    Range,
}

/// An amount in ten-thousandths of a unit.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "Written", into = "String")]
pub struct Amount(i64);

/// An amount in JSON: decimal text or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(Number),
}

impl Amount {
    pub const ZERO: Self = Self(0);

    pub const fn from_ten_thousandths(units: i64) -> Self {
        Self(units)
    }

    pub const fn ten_thousandths(self) -> i64 {
        self.0
    }

    /// Converts a JSON number, using its shortest decimal text.
    pub fn from_number(number: &Number) -> Result<Self, AmountError> {
        if let Some(whole) = number.as_i64() {
            return whole.checked_mul(SCALE).map(Self).ok_or(AmountError::Range);
        }
        match number.as_f64() {
            // `Display` for f64 writes the shortest text that parses to the same value, without an
            // exponent.
            Some(double) if double.is_finite() => double.to_string().parse(),
            _ => Err(AmountError::Malformed),
        }
    }

    /// Formats the amount with at least two decimals, as is usual for money.
    pub fn to_money(self) -> String {
        let text = self.to_string();
        match text.split_once('.') {
            None => format!("{text}.00"),
            Some((whole, part)) => format!("{whole}.{part:0<2}"),
        }
    }

    /// Converts the amount to a JSON number: an integer if it is whole.
    pub fn to_number(self) -> Number {
        if self.0 % SCALE == 0 {
            return Number::from(self.0 / SCALE);
        }
        let double: f64 = self.to_string().parse().unwrap_or_default();
        Number::from_f64(double).unwrap_or_else(|| Number::from(0))
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    /// Parses plain decimals: an optional `-`, digits, optionally a point and one to four digits.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let number = |s: &str| !s.is_empty() && s.bytes().all(|c| c.is_ascii_digit());
        if !number(whole) || !number(part) {
            return Err(AmountError::Malformed);
        }
        let part = part.trim_end_matches('0');
        if part.len() > DECIMALS {
            return Err(AmountError::Decimals);
        }
        let padded = format!("{whole}{part:0<DECIMALS$}");
        let units: i128 = padded.parse().map_err(|_| AmountError::Range)?;
        let units = if negative { -units } else { units };
        i64::try_from(units).map(Self).map_err(|_| AmountError::Range)
    }
}

impl fmt::Display for Amount {
    /// Formats the shortest decimal text.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let scale = SCALE.unsigned_abs();
        let (whole, part) = (self.0.unsigned_abs() / scale, self.0.unsigned_abs() % scale);
        if part == 0 {
            return write!(to, "{sign}{whole}");
        }
        let part = format!("{part:0>DECIMALS$}");
        write!(to, "{sign}{whole}.{}", part.trim_end_matches('0'))
    }
}

impl TryFrom<Written> for Amount {
    type Error = AmountError;

    fn try_from(written: Written) -> Result<Self, AmountError> {
        match written {
            Written::Text(text) => text.parse(),
            Written::Number(number) => Self::from_number(&number),
        }
    }
}

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        amount.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<String, AmountError> {
        Amount::from_number(&serde_json::from_str(json).unwrap()).map(|a| a.to_string())
    }

    #[test]
    fn takes_the_shortest_text_of_the_double() {
        for (json, text) in [
            ("2500", "2500"),
            ("2500.0", "2500"),
            ("2.5e3", "2500"),
            ("0.1", "0.1"),
            ("0.1000000000000000055", "0.1"),
            ("-0.0", "0"),
            ("1e-4", "0.0001"),
            ("-12.34", "-12.34"),
            ("922337203685477", "922337203685477"),
        ] {
            assert_eq!(of(json).as_deref(), Ok(text), "{json}");
        }
    }

    #[test]
    fn never_rounds() {
        assert_eq!(of("0.00001"), Err(AmountError::Decimals));
        assert_eq!(of("0.30000000000000004"), Err(AmountError::Decimals));
        assert_eq!(of("922337203685478"), Err(AmountError::Range));
        assert_eq!(of("1e300"), Err(AmountError::Range));
    }

    #[test]
    fn reads_decimal_texts_only() {
        for text in ["", "-", ".5", "5.", "1e3", "+1", " 1", "1_000", "0x1", "١"] {
            assert_eq!(text.parse::<Amount>(), Err(AmountError::Malformed), "{text}");
        }
        assert_eq!("007.50000000".parse::<Amount>().map(|a| a.to_string()), Ok("7.5".to_owned()));
    }
}
