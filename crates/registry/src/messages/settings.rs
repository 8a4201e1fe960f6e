//! The settings of a channel: its actions and amounts, its quiet hours, and a substitute.

use authority_decision::Pattern;
use authority_graph::time_zones;
use authority_model::{
    proto::{
        events::{MessageSettings, QuietHours},
        registry::MessageDefaults,
    },
    validate::Violations,
    wire::Time,
};
use authority_presentation::Amount;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const DAY: i64 = 24 * 60;

/// The settings as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    label: Option<String>,
    actions: Vec<Pattern>,
    least_amount: Option<String>,
    currency: Option<String>,
    quiet_hours: Option<Quiet>,
    pub(super) away_until: Option<Time>,
    /// In lower case.
    pub(super) substitute: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Quiet {
    from: String,
    to: String,
    time_zone: String,
}

impl Settings {
    /// Checks the settings of a request.
    pub(super) fn of(given: MessageSettings, for_tenant: bool) -> Result<Self, Violations> {
        let mut faults = Violations::default();
        let mut actions = Vec::new();
        for (index, text) in given.actions.iter().enumerate() {
            match text.parse::<Pattern>() {
                Ok(pattern) => actions.push(pattern),
                Err(error) => faults.add(&format!("settings.actions[{index}]"), error.to_string()),
            }
        }
        if given.least_amount.is_some() != given.currency.is_some() {
            faults.add("settings.currency", "is required with `least_amount`, and only then");
        }
        if given.away_until.is_some() != given.substitute.is_some() {
            faults.add("settings.substitute", "is required with `away_until`, and only then");
        }
        if for_tenant && given.away_until.is_some() {
            faults.add("settings.away_until", "is only for a person's channel");
        }
        let fault =
            given.quiet_hours.as_ref().and_then(|hours| time_zones::fault(&hours.time_zone));
        if let Some(fault) = fault {
            faults.add("settings.quiet_hours.time_zone", fault);
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            label: given.label.filter(|label| !label.trim().is_empty()),
            actions,
            least_amount: given.least_amount,
            currency: given.currency,
            quiet_hours: given.quiet_hours.map(|hours| Quiet {
                from: hours.from,
                to: hours.to,
                time_zone: hours.time_zone,
            }),
            away_until: given.away_until,
            substitute: given.substitute.map(|address| address.trim().to_lowercase()),
        })
    }

    /// Whether the channel gets messages about a request for this action. `amount` is `None` if the
    /// request has none, or if it was erased.
    pub(super) fn admit(&self, action: &str, amount: Option<&Amount>) -> bool {
        let is_named = self.actions.is_empty() || self.actions.iter().any(|p| p.covers(action));
        let is_low = amount.zip(self.least()).and_then(|(amount, least)| amount.is_below(&least));
        is_named && is_low != Some(true)
    }

    fn least(&self) -> Option<Amount> {
        let number = serde_json::from_str(self.least_amount.as_deref()?).ok()?;
        let currency = Value::from(self.currency.as_deref()?);
        Amount::of(&Map::from_iter([("amount".into(), number), ("currency".into(), currency)]))
    }

    /// The time at which the quiet hours end; `None` outside them. An unknown zone has no quiet hours.
    pub(super) fn quiet_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let quiet = self.quiet_hours.as_ref()?;
        let offset = time_zones::offset_seconds(&quiet.time_zone, now)?;
        let (from, to) = (minute(&quiet.from)?, minute(&quiet.to)?);
        let local = (now.timestamp() + i64::from(offset)).rem_euclid(DAY * 60) / 60;
        let length = (to - from - 1).rem_euclid(DAY) + 1;
        let passed = (local - from).rem_euclid(DAY);
        let seconds_of_minute = now.timestamp().rem_euclid(60);
        let left = TimeDelta::seconds((length - passed) * 60 - seconds_of_minute);
        (passed < length).then(|| now + left)
    }

    pub(super) fn is_away(&self, now: DateTime<Utc>) -> bool {
        self.away_until.and_then(Time::moment).is_some_and(|until| now < until)
    }
}

impl From<Settings> for MessageSettings {
    fn from(own: Settings) -> Self {
        Self {
            label: own.label,
            actions: own.actions.iter().map(ToString::to_string).collect(),
            least_amount: own.least_amount,
            currency: own.currency,
            quiet_hours: own.quiet_hours.map(|quiet| QuietHours {
                from: quiet.from,
                to: quiet.to,
                time_zone: quiet.time_zone,
            }),
            away_until: own.away_until,
            substitute: own.substitute,
        }
    }
}

/// The settings that a tenant's defaults give to a person's channel.
pub(super) fn of_defaults(own: MessageDefaults) -> MessageSettings {
    let MessageDefaults { actions, least_amount, currency, quiet_hours } = own;
    MessageSettings { actions, least_amount, currency, quiet_hours, ..MessageSettings::default() }
}

/// Checks a tenant's defaults.
pub(crate) fn check_defaults(own: &MessageDefaults, found: &mut Violations) {
    let Err(faults) = Settings::of(of_defaults(own.clone()), false) else { return };
    for fault in faults.list {
        found.add(&fault.field.replacen("settings", "message_defaults", 1), fault.problem);
    }
}

/// The minute of the day of `22:30`.
fn minute(text: &str) -> Option<i64> {
    let (hour, minute) = text.split_once(':')?;
    Some(hour.parse::<i64>().ok()? * 60 + minute.parse::<i64>().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn amount(amount: f64, currency: &str) -> Amount {
        let context = json!({"amount": amount, "currency": currency});
        Amount::of(context.as_object().unwrap()).unwrap()
    }

    fn settings(given: MessageSettings) -> Settings {
        Settings::of(given, false).unwrap()
    }

    fn hours(from: &str, to: &str) -> Settings {
        let (from, to) = (from.to_owned(), to.to_owned());
        let quiet = QuietHours { from, to, time_zone: "Europe/Berlin".to_owned() };
        settings(MessageSettings { quiet_hours: Some(quiet), ..MessageSettings::default() })
    }

    #[test]
    fn only_a_lower_amount_in_the_same_currency_is_left_out() {
        let own = settings(MessageSettings {
            actions: vec!["payment.*".to_owned()],
            least_amount: Some("1000.50".to_owned()),
            currency: Some("EUR".to_owned()),
            ..MessageSettings::default()
        });
        for (action, asked, told) in [
            ("payment.execute", Some(amount(1000.5, "EUR")), true),
            ("payment.execute", Some(amount(1000.49, "EUR")), false),
            ("payment.execute", Some(amount(1.0, "USD")), true),
            ("payment.execute", None, true),
            ("refund.execute", Some(amount(5000.0, "EUR")), false),
        ] {
            assert_eq!(own.admit(action, asked.as_ref()), told, "{action} {asked:?}");
        }
        assert!(Settings::default().admit("refund.execute", None));
    }

    #[test]
    fn quiet_hours_are_local_and_may_pass_midnight() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        for (from, to, now, until) in [
            // In winter, Berlin is an hour ahead of UTC, in summer two.
            ("22:00", "07:00", "2026-01-10T20:59:59Z", None),
            ("22:00", "07:00", "2026-01-10T21:00:00Z", Some("2026-01-11T06:00:00Z")),
            ("22:00", "07:00", "2026-01-11T05:59:59Z", Some("2026-01-11T06:00:00Z")),
            ("22:00", "07:00", "2026-01-11T06:00:00Z", None),
            ("22:00", "07:00", "2026-07-10T20:30:10Z", Some("2026-07-11T05:00:00Z")),
            ("12:00", "13:00", "2026-01-10T11:30:00Z", Some("2026-01-10T12:00:00Z")),
            ("12:00", "12:00", "2026-01-10T11:00:00Z", Some("2026-01-11T11:00:00Z")),
        ] {
            assert_eq!(hours(from, to).quiet_until(at(now)), until.map(at), "{from} {to} {now}");
        }
    }

    #[test]
    fn settings_that_need_one_another_are_refused_alone() {
        let away = Some(Time::from(DateTime::UNIX_EPOCH));
        let zone = QuietHours {
            from: "22:00".to_owned(),
            to: "07:00".to_owned(),
            time_zone: "Europe/Nowhere".to_owned(),
        };
        for (given, field) in [
            (
                MessageSettings { currency: Some("EUR".to_owned()), ..MessageSettings::default() },
                "settings.currency",
            ),
            (
                MessageSettings { away_until: away, ..MessageSettings::default() },
                "settings.substitute",
            ),
            (
                MessageSettings { actions: vec!["Pay *".to_owned()], ..MessageSettings::default() },
                "settings.actions[0]",
            ),
            (
                MessageSettings { quiet_hours: Some(zone), ..MessageSettings::default() },
                "settings.quiet_hours.time_zone",
            ),
        ] {
            let faults = Settings::of(given, false).unwrap_err();
            assert_eq!(faults.list[0].field, field);
        }
    }
}
