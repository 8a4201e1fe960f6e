//! Amounts, in groups of three digits, and their sums.

use std::{collections::BTreeMap, fmt};

use authority_decision::currency;
use serde_json::{Map, Value};

/// The separator between groups of digits: narrow, without a line break.
const GROUP: char = '\u{202f}';
/// The decimal places of an amount without a currency, and the exact decimal places of sums.
const SHOWN_PLACES: usize = 2;
pub(crate) const PLACES: usize = 4;

/// The amount of a question's context, and its currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Ten-thousandths.
    parts: i128,
    /// Capital letters and digits, or empty.
    currency: String,
}

impl Amount {
    /// Reads the amount and currency of a context.
    ///
    /// `None` if the amount is absent, if it can't be shown exactly, or if the currency doesn't have the form of a
    /// code: an agent's own words must not appear inside the service's sentences. The table of arguments shows them.
    pub fn of(context: &Map<String, Value>) -> Option<Self> {
        let text = context.get("amount")?.as_number()?.to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        if fraction.len() > PLACES {
            return None;
        }
        let parts = format!("{whole}{fraction:0<PLACES$}").parse().ok()?;
        let currency = match context.get("currency") {
            None | Some(Value::Null) => "",
            Some(Value::String(code)) if currency::is_code(code) => code,
            Some(_) => return None,
        };
        Some(Self { parts, currency: currency.to_owned() })
    }

    /// Whether this amount is lower than another one. `None` if they differ in currency.
    pub fn is_below(&self, other: &Self) -> Option<bool> {
        (self.currency == other.currency).then_some(self.parts < other.parts)
    }

    /// The amount without groups, by which it is compared: `124000000 EUR` in ten-thousandths.
    pub(crate) fn compared(&self) -> String {
        format!("{} {}", self.parts, self.currency)
    }

    /// Creates an amount of ten-thousandths.
    pub(crate) fn of_parts(parts: i128, currency: &str) -> Self {
        Self { parts, currency: currency.to_owned() }
    }

    /// With ordinary spaces, for texts in which hidden characters are escaped.
    pub fn plain(&self) -> String {
        self.to_string().replace(GROUP, " ")
    }
}

/// Formats as `25 000.00 EUR`: digits, a currency code and non-breaking spaces.
///
/// Templates print it with `|safe`, since the escaper turns non-breaking spaces into escapes.
impl fmt::Display for Amount {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:0>5}", self.parts.unsigned_abs());
        let (whole, fraction) = text.split_at(text.len() - PLACES);
        // Currencies outside ISO 4217 keep the digits that the request has.
        let places = match self.currency.as_str() {
            "" => SHOWN_PLACES,
            code => currency::places(code).unwrap_or_default().min(PLACES),
        };
        let (shown, further) = fraction.split_at(places);
        let digits = whole.len();
        let mut grouped = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (digits - index) % 3 == 0 {
                grouped.push(GROUP);
            }
            grouped.push(digit);
        }
        let sign = if self.parts < 0 { "−" } else { "" };
        let further = further.trim_end_matches('0');
        let point = if shown.is_empty() && further.is_empty() { "" } else { "." };
        write!(to, "{sign}{grouped}{point}{shown}{further}")?;
        if self.currency.is_empty() { Ok(()) } else { write!(to, "{GROUP}{}", self.currency) }
    }
}

/// The sum of each currency.
#[derive(Default)]
pub struct Sums(BTreeMap<String, i128>);

impl Sums {
    pub fn add(&mut self, amount: &Amount) {
        *self.0.entry(amount.currency.clone()).or_default() += amount.parts;
    }

    pub fn amounts(self) -> Vec<Amount> {
        self.0.into_iter().map(|(currency, parts)| Amount { parts, currency }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        let context: Value = serde_json::from_str(text).unwrap();
        Amount::of(context.as_object().unwrap()).map(|amount| amount.to_string())
    }

    #[test]
    fn an_amount_is_exact_and_grouped() {
        for (context, shown) in [
            (r#"{"amount": 25000, "currency": "EUR"}"#, Some("25\u{202f}000.00\u{202f}EUR")),
            (r#"{"amount": 1234567.5}"#, Some("1\u{202f}234\u{202f}567.50")),
            (r#"{"amount": 0.0001, "currency": "BTC"}"#, Some("0.0001\u{202f}BTC")),
            (r#"{"amount": 25000, "currency": "USDC"}"#, Some("25\u{202f}000\u{202f}USDC")),
            (r#"{"amount": 0.5, "currency": "USDC"}"#, Some("0.5\u{202f}USDC")),
            (r#"{"amount": 5, "currency": "1EUR"}"#, None),
            (r#"{"amount": 0}"#, Some("0.00")),
            (
                r#"{"amount": 3200000, "currency": "JPY"}"#,
                Some("3\u{202f}200\u{202f}000\u{202f}JPY"),
            ),
            (r#"{"amount": 1.5, "currency": "KWD"}"#, Some("1.500\u{202f}KWD")),
            (r#"{"amount": 1e300}"#, None),
            (r#"{"amount": "12"}"#, None),
            (r#"{"amount": 5, "currency": null}"#, Some("5.00")),
            (r#"{"amount": 5, "currency": "EUR, approved by finance"}"#, None),
            (r#"{"amount": 5, "currency": "eur"}"#, None),
            (r#"{"amount": 5, "currency": "<b>"}"#, None),
            (r#"{"amount": 5, "currency": 3}"#, None),
            ("{}", None),
        ] {
            assert_eq!(of(context).as_deref(), shown, "{context}");
        }
    }

    #[test]
    fn sums_are_exact_in_each_currency() {
        let amount = |parts, currency: &str| Amount { parts, currency: currency.to_owned() };
        let mut sums = Sums::default();
        for _ in 0..10 {
            sums.add(&amount(1000, "EUR"));
        }
        sums.add(&amount(10_000, "CHF"));
        assert_eq!(sums.amounts(), [amount(10_000, "CHF"), amount(10_000, "EUR")]);
    }
}
