//! Answers of the service: their status, and their members as plain values for comparisons.

use serde_json::Value;

/// A member of an answer, as a plain value. A tuple of such values can be compared.
pub(crate) trait Plain {
    /// Returns the text. Returns a text that no answer contains if the value is not a text.
    fn text(&self) -> &str;

    /// Returns the whole number. Returns a number that no answer contains if the value is not a
    /// whole number.
    fn number(&self) -> i64;

    /// Returns the texts of a list. Returns a text that no answer contains if the value is not a
    /// list.
    fn texts(&self) -> Vec<&str>;
}

impl Plain for Value {
    fn text(&self) -> &str {
        self.as_str().unwrap_or("(not a text)")
    }

    fn number(&self) -> i64 {
        self.as_i64().unwrap_or(i64::MIN)
    }

    fn texts(&self) -> Vec<&str> {
        self.as_array().map_or(vec!["(not a list)"], |all| all.iter().map(Self::text).collect())
    }
}

pub(crate) trait Answered {
    /// Checks the status, and returns the body.
    fn assert_status(self, expected: u16) -> Value;

    /// Checks that a record was created, and returns its id. `kind` is the member with the record.
    fn assert_made(self, kind: &str) -> String;

    /// Checks that a record was read, and returns it.
    fn assert_shown(self, kind: &str) -> Value;
}

impl Answered for (u16, Value) {
    #[track_caller]
    fn assert_status(self, expected: u16) -> Value {
        let (status, body) = self;
        assert_eq!(status, expected, "{body:#}");
        body
    }

    #[track_caller]
    fn assert_made(self, kind: &str) -> String {
        let body = self.assert_status(201);
        body[kind]["id"].as_str().unwrap_or_else(|| panic!("{body:#}")).to_owned()
    }

    #[track_caller]
    fn assert_shown(self, kind: &str) -> Value {
        self.assert_status(200)[kind].take()
    }
}
