//! Reads the euro foreign exchange reference rates of the European Central Bank from its daily XML.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Number, Value};

use crate::commands::snapshot::{
    cubes::{Cube, cubes},
    document::{Document, observation},
};

/// The hour, in UTC, that applies to a day's rates. They are set at 14:10 CET and published at
/// about 16:00 CET.
const HOUR: u32 = 15;

/// Reads the rates. Each rate is observed at `/rates/<currency>`; the day is the version.
///
/// The rates are as of 15:00 UTC of their day, or as of now if that is earlier on that day: in
/// summer they are published at about 14:00.
pub(super) fn read(text: &str, now: DateTime<Utc>) -> Result<Document, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut days = cubes(text).map_err(|error| format!("is not XML: {error}"))?.into_iter();
    let (time, cubes) =
        days.next().ok_or("has no day: it is not the reference rates of the ECB")?;
    if days.next().is_some() {
        return Err("has several days: take the daily file, `eurofxref-daily.xml`".to_owned());
    }
    let day = NaiveDate::parse_from_str(&time, "%Y-%m-%d").ok().filter(|_| time.len() == 10);
    let day = day.ok_or_else(|| format!("the day `{time}` must be such as 2026-11-20"))?;
    let mut rates = BTreeMap::new();
    for cube in &cubes {
        let (currency, value) = one(cube)?;
        if rates.insert(currency, value).is_some() {
            return Err(format!("has `{currency}` twice"));
        }
    }
    if rates.is_empty() {
        return Err(format!("has no rates of {day}"));
    }
    let observed = |(currency, rate)| observation(&format!("/rates/{currency}"), rate);
    let published = day.and_hms_opt(HOUR, 0, 0).map(|at| at.and_utc());
    let is_today = now.date_naive() == day;
    Ok(Document {
        sampled_at: published.map(|at| if is_today { at.min(now) } else { at }),
        source_version: Some(day.to_string()),
        observations: rates.into_iter().map(observed).collect(),
    })
}

/// Reads a currency and its rate.
fn one(cube: &Cube) -> Result<(&str, Value), String> {
    let currency = cube.currency.as_str();
    if currency.len() != 3 || !currency.bytes().all(|letter| letter.is_ascii_uppercase()) {
        return Err(format!("`{currency}` is not a currency of ISO 4217"));
    }
    let rate = cube.rate.as_str();
    let number = rate.parse::<Number>().ok();
    let number = number.filter(|number| number.as_f64().is_some_and(|rate| rate > 0.0));
    let number = number.ok_or_else(|| format!("invalid rate `{rate}` of {currency}"))?;
    Ok((currency, Value::Number(number)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EXAMPLE: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/reference-rates/eurofxref-example.xml"
    ));

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn every_rate_of_the_day_is_observed() {
        let found = read(EXAMPLE, at("2026-01-07T00:00:00Z")).unwrap();
        assert_eq!(found.sampled_at, Some(at("2026-01-01T15:00:00Z")));
        assert_eq!(found.source_version.as_deref(), Some("2026-01-01"));
        let usd = observation("/rates/USD", json!(1.1512));
        assert!(found.observations.contains(&usd), "{:?}", found.observations);
        assert_eq!(found.observations.len(), EXAMPLE.matches("currency=").count());
    }

    #[test]
    fn they_are_as_of_15_utc_but_not_ahead_of_now_on_their_day() {
        let sampled_at = |now| read(EXAMPLE, at(now)).unwrap().sampled_at;
        assert_eq!(sampled_at("2026-01-01T14:05:00Z"), Some(at("2026-01-01T14:05:00Z")));
        assert_eq!(sampled_at("2026-01-01T15:05:00Z"), Some(at("2026-01-01T15:00:00Z")));
        // Rates of a later day stay in the future, and the service refuses them.
        assert_eq!(sampled_at("2025-12-31T23:00:00Z"), Some(at("2026-01-01T15:00:00Z")));
    }

    #[test]
    fn what_is_not_one_day_of_rates_is_refused() {
        let now = at("2026-01-07T00:00:00Z");
        let usd = "<Cube currency=\"USD\" rate=\"1.1512\"/>";
        assert!(EXAMPLE.contains(usd));
        let changed = |by: &str| read(&EXAMPLE.replace(usd, by), now).unwrap_err();
        for (rate, problem) in [
            ("<Cube currency=\"USD\" rate=\"N/A\"/>", "`N/A` of USD"),
            ("<Cube currency=\"USD\" rate=\"-1\"/>", "`-1` of USD"),
            ("<Cube currency=\"USD\"/>", "invalid rate `` of USD"),
            ("<Cube rate=\"1.1512\"/>", "currency"),
            ("<Cube currency=\"US/\" rate=\"1.1512\"/>", "currency"),
            ("<Cube currency=\"JPY\" rate=\"1\"/>", "`JPY` twice"),
            ("<Cube time=\"2025-12-31\"/>", "several days"),
            ("<Cube", "not XML"),
        ] {
            assert!(changed(rate).contains(problem), "{rate}: {}", changed(rate));
        }
        for (text, problem) in [
            (EXAMPLE.replace("time=\"2026-01-01\"", "time=\"today\""), "`today`"),
            (EXAMPLE.replace("2026-01-01\">", "+12026-01-01\">"), "`+12026"),
            (EXAMPLE.replace("eurofxref\"", "other\""), "no day"),
            ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>".to_owned(), "not XML"),
        ] {
            let refused = read(&text, now).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
