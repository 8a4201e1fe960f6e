//! Decides which events an endpoint accepts.

use authority_ids::EndpointRef;
use authority_webhook::{
    event_types::{EventType, Selection},
    filter::{Filter, Match},
};
use serde_json::Value;

use crate::log::Event;

/// The prefix of event types about endpoints.
const ENDPOINTS: &str = "svc.webhook_endpoint.";

/// The events that an endpoint accepts, by its current event types and filter.
pub(super) struct Acceptance {
    endpoint_id: EndpointRef,
    /// `None` if the types or the filter cannot be read. The endpoint then accepts no events, and
    /// each event counts as an error.
    rules: Option<(Selection, Option<Filter>)>,
    /// How many events could not be evaluated.
    pub(super) errors: i64,
}

impl Acceptance {
    pub(super) fn new(
        endpoint_id: &EndpointRef,
        event_types: &[String],
        filter: Option<&str>,
    ) -> Self {
        let rules = rules(event_types, filter).inspect_err(|error| {
            tracing::error!(
                endpoint.id = endpoint_id.as_str(),
                error,
                "failed to read the event types or the filter of a webhook endpoint"
            );
        });
        Self { endpoint_id: endpoint_id.clone(), rules: rules.ok(), errors: 0 }
    }

    /// Returns the event types that the endpoint may accept.
    ///
    /// `None` if events of all types must be read.
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
        // An endpoint gets no events about itself. The other endpoints get them.
        if event.event_type.starts_with(ENDPOINTS) && body["subject_ref"] == *self.endpoint_id {
            return false;
        }
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
    let selection =
        Selection::of_record(event_types).map_err(|fault| format!("event_types: {fault}"))?;
    let types: Vec<_> = selection.families().map(EventType::members).collect();
    let filter = filter.map(|text| Filter::parse(text, &types)).transpose();
    Ok((selection, filter.map_err(|fault| format!("filter: {fault}"))?))
}
