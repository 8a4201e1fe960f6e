//! Free-form objects with some known fields. The known fields are checked; all fields are stored.

use authority_model::{validate::Violations, wire::Json};
use serde_json::{Map, Value};

/// The maximum size of an object as JSON, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// Reports an object that is too large.
pub(super) fn size(field: &str, object: &Json, found: &mut Violations) {
    // Serialising a JSON map can't fail.
    if serde_json::to_vec(&object.0).is_ok_and(|text| text.len() > MOST_BYTES) {
        found.add(field, "is larger than 64 KiB");
    }
}

/// A free-form object. Its violations are reported at paths below `field`.
pub(super) struct Object<'a, 'f> {
    pub(super) members: &'a Map<String, Value>,
    pub(super) found: &'f mut Violations,
}

impl<'a> Object<'a, '_> {
    /// Returns a text of 1 to `most` characters.
    pub(super) fn text(&mut self, name: &str, most: usize) -> Option<&'a str> {
        let value = self.members.get(name).filter(|value| !value.is_null())?;
        let text = value.as_str().filter(|text| (1..=most).contains(&text.chars().count()));
        if text.is_none() {
            self.found.add(name, format!("must be a text of 1 to {most} characters"));
        }
        text
    }

    /// Checks that a field has an allowed value.
    pub(super) fn word(&mut self, name: &str, words: &[&str]) {
        let Some(value) = self.members.get(name).filter(|value| !value.is_null()) else { return };
        if !value.as_str().is_some_and(|word| words.contains(&word)) {
            self.found.add(name, format!("must be one of {}", words.join(", ")));
        }
    }

    /// Returns a whole number within bounds.
    pub(super) fn integer(&mut self, name: &str, least: i64, most: i64) -> Option<i64> {
        let value = self.members.get(name).filter(|value| !value.is_null())?;
        let number = value.as_i64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.found.add(name, format!("must be a whole number from {least} to {most}"));
        }
        number
    }

    /// Returns a list of at most `most` items. Other values are reported with the text `problem`.
    pub(super) fn list(&mut self, name: &str, most: usize, problem: &str) -> &'a [Value] {
        let Some(value) = self.members.get(name).filter(|value| !value.is_null()) else {
            return &[];
        };
        let list = value.as_array().filter(|list| list.len() <= most);
        if list.is_none() {
            self.found.add(name, problem);
        }
        list.map_or(&[], Vec::as_slice)
    }
}

/// Checks the object's size and fields.
pub(super) fn check(
    field: &str,
    object: Option<&Json>,
    found: &mut Violations,
    members: impl FnOnce(&mut Object<'_, '_>),
) {
    let Some(object) = object else { return };
    size(field, object, found);
    found.within(field, |found| members(&mut Object { members: &object.0, found }));
}
