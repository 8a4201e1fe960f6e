//! Free-form objects with some members that the service knows: those are checked, all are kept.

use authority_model::{validate::Violations, wire::Json};
use serde_json::{Map, Value};

/// The most bytes of an object as JSON.
const MOST_BYTES: usize = 64 * 1024;

/// Reports an object that is too large.
pub(super) fn size(field: &str, object: &Json, found: &mut Violations) {
    // JSON of a map of JSON can be written.
    if serde_json::to_vec(&object.0).is_ok_and(|text| text.len() > MOST_BYTES) {
        found.add(field, "is larger than 64 KiB");
    }
}

/// A member of the object, with violations named below `field`.
pub(super) struct Object<'a, 'f> {
    pub(super) members: &'a Map<String, Value>,
    pub(super) found: &'f mut Violations,
}

impl<'a> Object<'a, '_> {
    /// A text that is not empty, of at most so many characters.
    pub(super) fn text(&mut self, name: &str, most: usize) -> Option<&'a str> {
        let value = self.members.get(name).filter(|value| !value.is_null())?;
        let text = value.as_str().filter(|text| (1..=most).contains(&text.chars().count()));
        if text.is_none() {
            self.found.add(name, format!("must be a text of 1 to {most} characters"));
        }
        text
    }

    /// One of some words.
    pub(super) fn word(&mut self, name: &str, words: &[&str]) {
        let Some(value) = self.members.get(name).filter(|value| !value.is_null()) else { return };
        if !value.as_str().is_some_and(|word| words.contains(&word)) {
            self.found.add(name, format!("must be one of {}", words.join(", ")));
        }
    }

    /// A whole number within bounds.
    pub(super) fn integer(&mut self, name: &str, least: i64, most: i64) -> Option<i64> {
        let value = self.members.get(name).filter(|value| !value.is_null())?;
        let number = value.as_i64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.found.add(name, format!("must be a whole number from {least} to {most}"));
        }
        number
    }

    /// A list of at most so many items; `problem` says so of what is none.
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

/// Checks the object's size and members.
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
