//! A typed id.

use std::{borrow::Borrow, fmt, marker::PhantomData, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::kind::Kind;

/// The id of a record of kind `K`.
///
/// It is cheap to clone. It compares and hashes as its text, which allows a look-up by text in a
/// map of ids.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<K> {
    text: Arc<str>,
    kind: PhantomData<K>,
}

/// A text does not have the form of the expected kind. The message lists the valid forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be `{}`", .forms.join("` or `"))]
pub struct InvalidId {
    forms: &'static [&'static str],
}

impl<K: Kind> Id<K> {
    /// # Errors
    /// The text does not have the form of this kind.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        Self::check(text).map(|()| Self::from_valid(text))
    }

    /// Checks a text without creating an id.
    ///
    /// # Errors
    /// The text does not have the form of this kind.
    pub fn check(text: &str) -> Result<(), InvalidId> {
        let has_form = K::FORMS.iter().any(|form| fits::<K>(form, text));
        if has_form { Ok(()) } else { Err(InvalidId { forms: K::FORMS }) }
    }
}

fn fits<K: Kind>(form: &str, text: &str) -> bool {
    let mut parts = text.split(':');
    let is_next = |wanted: &str| {
        let fits = |part| if wanted.starts_with('<') { K::admits(part) } else { part == wanted };
        parts.next().is_some_and(fits)
    };
    form.split(':').all(is_next) && parts.next().is_none()
}

impl<K> Id<K> {
    /// Wraps a text that is known to be a valid id of this kind.
    pub(crate) fn from_valid(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), kind: PhantomData }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the part at this index. Index 0 is `svc`.
    pub(crate) fn part(&self, place: usize) -> &str {
        self.text.split(':').nth(place).unwrap_or_default()
    }
}

impl<K: Kind> FromStr for Id<K> {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::parse(text)
    }
}

impl<K> fmt::Display for Id<K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(&self.text)
    }
}

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, to)
    }
}

impl<K> AsRef<str> for Id<K> {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl<K> Borrow<str> for Id<K> {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl<K> PartialEq<str> for Id<K> {
    fn eq(&self, other: &str) -> bool {
        &*self.text == other
    }
}

impl<K> From<Id<K>> for String {
    fn from(id: Id<K>) -> Self {
        Self::from(&*id.text)
    }
}

impl<K> From<&Id<K>> for String {
    fn from(id: &Id<K>) -> Self {
        Self::from(&*id.text)
    }
}

impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(|why| de::Error::custom(format_args!("`{text}` {why}")))
    }
}
