//! The fields of a channel's settings, as text.

use authority_model::{
    proto::events::{MessageSettings, QuietHours},
    wire::Time,
};
use chrono::{NaiveDate, NaiveTime};

use crate::kit::prelude::*;

/// The address of the list.
pub(super) const LIST: &str = "/console/messages";

/// The fields of the form, as a person or the stored settings fill them.
#[derive(Clone, Default)]
pub(super) struct Input(Pairs);

impl Input {
    pub(super) fn read(form: &Pairs) -> Self {
        Self(form.clone())
    }

    pub(super) fn of(settings: MessageSettings) -> Self {
        let quiet = settings.quiet_hours.unwrap_or_default();
        let away = settings.away_until.and_then(Time::moment);
        Self(Pairs::of([
            ("label", settings.label.unwrap_or_default()),
            // Actions and patterns, separated by blanks.
            ("actions", settings.actions.join(" ")),
            ("least_amount", settings.least_amount.unwrap_or_default()),
            ("currency", settings.currency.unwrap_or_default()),
            ("quiet_from", quiet.from),
            ("quiet_to", quiet.to),
            ("time_zone", quiet.time_zone),
            // The person is away until the beginning of this day, in UTC.
            ("away_until", away.map_or_else(String::new, |at| at.format("%Y-%m-%d").to_string())),
            ("substitute", settings.substitute.unwrap_or_default()),
        ]))
    }

    /// The text of a field.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.text(name).trim()
    }

    /// # Errors
    /// The date cannot be read. The service checks all other fields.
    pub(super) fn settings(&self) -> Result<MessageSettings, Status> {
        let text = |name: &str| self.text(name).to_owned();
        let given = |name: &str| Some(text(name)).filter(|text| !text.is_empty());
        let quiet = ["quiet_from", "quiet_to", "time_zone"].map(text);
        let is_quiet = quiet.iter().any(|text| !text.is_empty());
        let [from, to, time_zone] = quiet;
        Ok(MessageSettings {
            label: given("label"),
            actions: self.text("actions").split_whitespace().map(str::to_owned).collect(),
            least_amount: given("least_amount"),
            currency: given("currency").map(|code| code.to_uppercase()),
            quiet_hours: is_quiet.then_some(QuietHours { from, to, time_zone }),
            away_until: given("away_until").map(|text| date(&text)).transpose()?,
            substitute: given("substitute"),
        })
    }
}

fn date(text: &str) -> Result<Time, Status> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d");
    let date = date.map_err(|_| Status::invalid_argument(t::administration::NO_DATE))?;
    Ok(Time::from(date.and_time(NaiveTime::MIN).and_utc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_a_person_wrote() {
        let form = "label=+Payments+&actions=payment.*++refund.execute%0Aorder.place&currency=eur\
                    &least_amount=1000&quiet_from=22%3A00&quiet_to=07%3A00\
                    &time_zone=Europe%2FBerlin&away_until=2026-12-24&substitute=bob%40example.org";
        let input = Input::read(&Pairs::read(form.as_bytes()));
        let settings = input.settings().unwrap();
        assert_eq!(settings.label.as_deref(), Some("Payments"));
        assert_eq!(settings.actions, ["payment.*", "refund.execute", "order.place"]);
        assert_eq!(settings.currency.as_deref(), Some("EUR"));
        let until = settings.away_until.and_then(Time::moment).unwrap();
        assert_eq!(until.to_rfc3339(), "2026-12-24T00:00:00+00:00");
        let again = Input::of(settings.clone()).settings().unwrap();
        assert_eq!(again, settings);
        assert_eq!(Input::default().settings().unwrap(), MessageSettings::default());
        assert!(Input(Pairs::of([("away_until", "soon")])).settings().is_err());
    }
}
