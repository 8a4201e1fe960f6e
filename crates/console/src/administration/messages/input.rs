//! The fields of a channel's settings, as text.

use authority_model::{
    proto::events::{MessageSettings, QuietHours},
    wire::Time,
};
use chrono::{NaiveDate, NaiveTime};

use crate::kit::prelude::*;

/// The address of the list.
pub(super) const LIST: &str = "/console/messages";

/// The text of the form, or the stored settings.
#[derive(Clone, Default)]
pub(super) struct Input {
    pub(super) label: String,
    /// Actions and patterns, separated by blanks.
    pub(super) actions: String,
    pub(super) least_amount: String,
    pub(super) currency: String,
    pub(super) quiet_from: String,
    pub(super) quiet_to: String,
    pub(super) time_zone: String,
    /// `2026-12-24`: the person is away until the beginning of this day, in UTC.
    pub(super) away_until: String,
    pub(super) substitute: String,
}

impl Input {
    pub(super) fn read(form: &Pairs) -> Self {
        let text = |name: &str| form.text(name).trim().to_owned();
        Self {
            label: text("label"),
            actions: text("actions"),
            least_amount: text("least_amount"),
            currency: text("currency"),
            quiet_from: text("quiet_from"),
            quiet_to: text("quiet_to"),
            time_zone: text("time_zone"),
            away_until: text("away_until"),
            substitute: text("substitute"),
        }
    }

    pub(super) fn of(settings: MessageSettings) -> Self {
        let quiet = settings.quiet_hours.unwrap_or_default();
        let away = settings.away_until.and_then(Time::moment);
        Self {
            label: settings.label.unwrap_or_default(),
            actions: settings.actions.join(" "),
            least_amount: settings.least_amount.unwrap_or_default(),
            currency: settings.currency.unwrap_or_default(),
            quiet_from: quiet.from,
            quiet_to: quiet.to,
            time_zone: quiet.time_zone,
            away_until: away.map_or_else(String::new, |at| at.format("%Y-%m-%d").to_string()),
            substitute: settings.substitute.unwrap_or_default(),
        }
    }

    /// # Errors
    /// The date cannot be read. The service checks all other fields.
    pub(super) fn settings(&self) -> Result<MessageSettings, Status> {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let is_quiet = [&self.quiet_from, &self.quiet_to, &self.time_zone];
        let is_quiet = is_quiet.iter().any(|text| !text.is_empty());
        Ok(MessageSettings {
            label: given(&self.label),
            actions: self.actions.split_whitespace().map(str::to_owned).collect(),
            least_amount: given(&self.least_amount),
            currency: given(&self.currency.to_uppercase()),
            quiet_hours: is_quiet.then(|| QuietHours {
                from: self.quiet_from.clone(),
                to: self.quiet_to.clone(),
                time_zone: self.time_zone.clone(),
            }),
            away_until: given(&self.away_until).map(|text| date(&text)).transpose()?,
            substitute: given(&self.substitute),
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
        let wrong = Input { away_until: "soon".to_owned(), ..Input::default() };
        assert!(wrong.settings().is_err());
    }
}
