//! A reference to a record: the text of an id, with the kind of the record.

use std::{borrow::Borrow, fmt, marker::PhantomData, ops::Deref};

use serde::{Deserialize, Serialize};

use crate::Id;

/// The text that names a record of kind `K` in a request, a row or a sealed document.
///
/// The form of the text is not checked and the record need not exist: a request may name a record
/// that was never stored. References of different kinds do not compare. A reference costs the same
/// as its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ref<K> {
    text: String,
    #[serde(skip)]
    kind: PhantomData<K>,
}

impl<K> Ref<K> {
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<K> Default for Ref<K> {
    fn default() -> Self {
        String::default().into()
    }
}

impl<K> Deref for Ref<K> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<K> AsRef<str> for Ref<K> {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl<K> Borrow<str> for Ref<K> {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl<K> fmt::Display for Ref<K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(&self.text)
    }
}

impl<K> fmt::Debug for Ref<K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, to)
    }
}

impl<K> PartialEq<str> for Ref<K> {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl<K> PartialEq<&str> for Ref<K> {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl<K> PartialEq<Id<K>> for Ref<K> {
    fn eq(&self, other: &Id<K>) -> bool {
        self.text == other.as_str()
    }
}

impl<K> From<String> for Ref<K> {
    fn from(text: String) -> Self {
        Self { text, kind: PhantomData }
    }
}

impl<K> From<&str> for Ref<K> {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl<K> From<Id<K>> for Ref<K> {
    fn from(id: Id<K>) -> Self {
        (&id).into()
    }
}

impl<K> From<&Id<K>> for Ref<K> {
    fn from(id: &Id<K>) -> Self {
        id.as_str().into()
    }
}

impl<K> From<Ref<K>> for String {
    fn from(reference: Ref<K>) -> Self {
        reference.text
    }
}

impl<K> From<&Ref<K>> for String {
    fn from(reference: &Ref<K>) -> Self {
        reference.text.clone()
    }
}
