//! The parameters of a page's address, and the members of a form.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;

/// Names and values, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs(Vec<(String, String)>);

impl Pairs {
    pub(crate) fn read(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// `None` if the text is not UTF-8, since a person's text must not be altered.
    pub(crate) fn read_exact(text: &[u8]) -> Option<Self> {
        let is_exact = percent_encoding::percent_decode(text).decode_utf8().is_ok();
        is_exact.then(|| Self::read(text))
    }

    /// The parameters with these names and values.
    pub(crate) fn of<V: Into<String>>(pairs: impl IntoIterator<Item = (&'static str, V)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect())
    }

    /// The value of a name that is given once; empty and absent are the same.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let mut found = self.all(name);
        found.next().filter(|value| !value.is_empty() && found.next().is_none())
    }

    /// Like [`Self::one`], with the empty text if there is no value.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.one(name).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether a name is repeated that may occur only once. `these` lists the names that may be
    /// repeated. An entry that ends with `.` covers every name that begins with it.
    pub(crate) fn repeats(&self, these: [&str; 4]) -> bool {
        let may = |name: &str| {
            these
                .iter()
                .any(|known| name == *known || (known.ends_with('.') && name.starts_with(known)))
        };
        let mut names: Vec<&str> = self.iter().map(|(name, _)| name).collect();
        names.retain(|name| !may(name));
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The parameters of a request's address.
impl<S: Send + Sync> FromRequestParts<S> for Pairs {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

/// A text as a part of an address.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_is_no_utf8_is_not_read() {
        let read = |text: &[u8]| Pairs::read_exact(text);
        assert_eq!(read("a=%C3%BC+b&c=\u{fffd}".as_bytes()).unwrap().text("a"), "ü b");
        for wrong in [&b"a=%FF"[..], b"a=%C3&b=%BC", b"a=\xff", b"%C3=1"] {
            assert!(read(wrong).is_none(), "{wrong:?}");
        }
    }
}
