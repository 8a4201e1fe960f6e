//! The `filter` of an audit stream: the events that the stream sends.

use serde_json::{Map, Value};

use crate::{
    event_types::{EventType, Selection, SelectionError},
    filter::{Filter, FilterError, Match},
};

/// Selects the events that an audit stream sends.
///
/// By default it selects all events, including events that are created only while a subscriber
/// selects their type.
#[derive(Clone, Debug)]
pub struct AuditFilter {
    pub selection: Selection,
    filter: Option<Filter>,
}

/// The reason for refusing a filter.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuditFilterError {
    #[error("is an unknown member; it has `event_types` and `filter`")]
    Unknown(String),
    #[error("must be a list of texts")]
    Types,
    #[error("must be a text")]
    Text,
    #[error("{0}")]
    Selection(SelectionError),
    #[error("{0}")]
    Filter(FilterError),
}

impl AuditFilterError {
    /// The field at fault, with a dot before it.
    pub fn member(&self) -> String {
        match self {
            Self::Unknown(name) => format!(".{name}"),
            Self::Types | Self::Selection(_) => ".event_types".to_owned(),
            Self::Text | Self::Filter(_) => ".filter".to_owned(),
        }
    }
}

impl AuditFilter {
    /// Reads the stream's `filter`; `None` accepts every event.
    pub fn read(given: Option<&Map<String, Value>>) -> Result<Self, AuditFilterError> {
        let empty = Map::new();
        let given = given.unwrap_or(&empty);
        let known = ["event_types", "filter"];
        if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(AuditFilterError::Unknown(name.clone()));
        }
        let patterns = match given.get("event_types").filter(|types| !types.is_null()) {
            None => vec!["*".to_owned()],
            Some(types) => texts(types).ok_or(AuditFilterError::Types)?,
        };
        let selection = Selection::parse(&patterns).map_err(AuditFilterError::Selection)?;
        let filter = match given.get("filter").filter(|text| !text.is_null()) {
            None => None,
            Some(text) => {
                let types: Vec<_> = selection.families().map(EventType::members).collect();
                let text = text.as_str().ok_or(AuditFilterError::Text)?;
                Some(Filter::parse(text, &types).map_err(AuditFilterError::Filter)?)
            }
        };
        Ok(Self { selection, filter })
    }

    /// Whether the stream sends the event. An event that the filter can't evaluate is sent: an
    /// audit must not miss events.
    pub fn takes(&self, event_type: &EventType, event: &Value) -> bool {
        let data = event.get("data").unwrap_or(&Value::Null);
        self.selection.takes(event_type, data)
            && self.filter.as_ref().is_none_or(|filter| filter.evaluate(event) != Match::No)
    }
}

fn texts(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(given: &Value) -> Result<AuditFilter, String> {
        let read = AuditFilter::read(given.as_object());
        read.map_err(|fault| format!("filter{} {fault}", fault.member()))
    }

    #[test]
    fn without_a_filter_it_takes_decisions_too() {
        for given in [json!(null), json!({}), json!({"event_types": null, "filter": null})] {
            let filter = read(&given).unwrap();
            let denied = EventType::named("svc.decision.denied").unwrap();
            assert!(filter.takes(denied, &json!({"data": {}})));
            assert_eq!(filter.selection.on_demand().count(), 3);
        }
    }

    #[test]
    fn a_filter_that_cannot_be_judged_sends() {
        let filter = read(&json!({"filter": "data.below > 2"})).unwrap();
        let revoked = EventType::named("svc.authority.revoked").unwrap();
        assert!(!filter.takes(revoked, &json!({"data": {"below": 1}})));
        assert!(filter.takes(revoked, &json!({"data": {"below": 3}})));
        assert!(filter.takes(revoked, &json!({"data": {}})));
    }

    #[test]
    fn faults_name_their_member() {
        for (given, expected) in [
            (json!({"types": []}), "filter.types is an unknown member"),
            (json!({"event_types": "svc.*"}), "filter.event_types must be a list of texts"),
            (json!({"event_types": ["svc.none.*"]}), "filter.event_types"),
            (json!({"filter": 1}), "filter.filter must be a text"),
            (json!({"filter": "data.none == 1"}), "filter.filter"),
        ] {
            let fault = read(&given).unwrap_err();
            assert!(fault.starts_with(expected), "{fault}");
        }
    }
}
