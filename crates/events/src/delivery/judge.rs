//! Which events an endpoint takes.

use authority_webhook::{
    event_types::{EventType, Selection},
    filter::{Filter, Match},
};
use serde_json::Value;

use super::log::Event;

/// An endpoint's types and filter of this moment.
pub(super) struct Judge {
    /// `None` if they cannot be read: then it takes nothing, and each event counts as an error.
    rules: Option<(Selection, Option<Filter>)>,
    /// How often they could not be evaluated.
    pub(super) errors: i64,
}

impl Judge {
    pub(super) fn new(endpoint_id: &str, event_types: &[String], filter: Option<&str>) -> Self {
        let rules = rules(event_types, filter).inspect_err(|error| {
            tracing::error!(endpoint_id, error, "an endpoint's types or filter cannot be read");
        });
        Self { rules: rules.ok(), errors: 0 }
    }

    /// The types of which it may take events; `None` if events of all are to be judged.
    pub(super) fn types(&self) -> Option<Vec<&'static str>> {
        let (selection, _) = self.rules.as_ref()?;
        Some(selection.families().map(EventType::name).collect())
    }

    pub(super) fn takes(&mut self, event: &Event) -> bool {
        let Some((selection, filter)) = &self.rules else {
            self.errors += 1;
            return false;
        };
        let Some(event_type) = EventType::named(&event.event_type) else { return false };
        let Ok(body) = serde_json::from_slice::<Value>(&event.body) else { return false };
        if !selection.takes(event_type, &body["data"]) {
            return false;
        }
        match filter.as_ref().map_or(Match::Yes, |filter| filter.evaluate(&body)) {
            Match::Yes => true,
            Match::No => false,
            Match::Error => {
                self.errors += 1;
                false
            }
        }
    }
}

fn rules(
    event_types: &[String],
    filter: Option<&str>,
) -> Result<(Selection, Option<Filter>), String> {
    let selection = Selection::of_record(event_types).map_err(|fault| fault.to_string())?;
    let types: Vec<_> = selection.families().map(EventType::members).collect();
    let filter = filter.map(|text| Filter::parse(text, &types)).transpose();
    Ok((selection, filter.map_err(|fault| fault.to_string())?))
}
