//! The headers of the request.

use crate::VerifyError;

#[derive(Clone, Copy)]
pub(crate) struct Headers<'a>(pub(crate) &'a [(&'a str, &'a str)]);

impl<'a> Headers<'a> {
    pub(crate) fn has(self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Returns a header's value without surrounding spaces. The header must occur exactly once.
    pub(crate) fn one(self, name: &str) -> Result<&'a str, VerifyError> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value.trim_matches([' ', '\t'])),
            _ => Err(VerifyError::Malformed),
        }
    }

    fn all(self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = move |(own, _): &&(&str, &str)| own.eq_ignore_ascii_case(name);
        self.0.iter().filter(named).map(|(_, value)| *value)
    }
}
