//! Builds an operation's request from a form's values.

use prost_reflect::{DynamicMessage, Value as Proto};
use serde_json::Value;

use super::{field::SubmittedForm, step::Act};
use crate::kit::kinds::{Shape, of_json, set_text};

impl Act {
    /// The request; `None` if it would change no field.
    pub(super) fn request(
        &self,
        filled: &SubmittedForm,
    ) -> Result<Option<DynamicMessage>, Vec<(String, String)>> {
        let operation = self.operation;
        let changed = self.changed(filled);
        if operation.shape == Shape::Edit && changed.is_empty() {
            return Ok(None);
        }
        let values = filled.values.clone().into_iter();
        let values =
            values.filter(|(name, _)| operation.shape != Shape::Edit || changed.contains(name));
        let mut message = of_json(&operation.form(), values.collect())?;
        let first_state = self.kind.exception.first_state;
        if let Some(state) = first_state.filter(|_| operation.shape == Shape::Create) {
            set_text(&mut message, "state", state);
        }
        let mut request = match &operation.body {
            Some(body) => {
                let mut request = DynamicMessage::new(operation.input.clone());
                request.set_field(body, Proto::Message(message));
                request
            }
            None => message,
        };
        if let Some(about) = &self.about {
            self.kind.name_in(&mut request, &about.id);
        }
        if operation.shape == Shape::Edit {
            let bound = |name: &str| {
                filled.fields.iter().any(|field| field.member.name == name && field.member.bounds)
            };
            let is_cleared = |name: &String| !filled.values.contains_key(name) && bound(name);
            let (cleared, changed) = changed.into_iter().partition(is_cleared);
            set_mask(&mut request, "update_mask", changed);
            set_mask(&mut request, "clear", cleared);
        }
        Ok(Some(request))
    }

    /// The members with a value other than the record's.
    pub(super) fn changed(&self, filled: &SubmittedForm) -> Vec<String> {
        let is_set = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false));
        let now = |name: &str| {
            let about = self.about.as_ref()?;
            about.members.get(name).filter(is_set)
        };
        let sent = filled.fields.iter().filter(|field| field.is_sent);
        let names = sent.map(|field| &field.member.name);
        let differs = |name: &&String| now(name) != filled.values.get(*name).filter(is_set);
        names.filter(differs).cloned().collect()
    }
}

/// Lists in the mask the fields that the request changes, or the bounding lists that it clears.
fn set_mask(request: &mut DynamicMessage, mask: &str, names: Vec<String>) {
    let names = Proto::List(names.into_iter().map(Proto::String).collect());
    if let Some(Proto::Message(mask)) = request.get_field_by_name_mut(mask) {
        mask.set_field_by_name("paths", names);
    }
}
