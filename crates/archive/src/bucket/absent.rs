//! The bucket of a build without the feature `archive`: opening it is an error.

use std::{convert::Infallible, ops::Range};

use bytes::Bytes;

use super::{error::Error, listed::Listed};

/// A type without values. It has the same functions as `Bucket` in `store.rs`.
#[derive(Clone, Debug)]
pub struct Bucket(Infallible);

impl Bucket {
    /// # Errors
    /// Always [`Error::NoFeature`].
    pub fn open(_: &str) -> Result<Self, Error> {
        Err(Error::NoFeature)
    }

    /// # Errors
    /// Always [`Error::NoFeature`].
    pub fn with(_: &str, _: impl IntoIterator<Item = (String, String)>) -> Result<Self, Error> {
        Err(Error::NoFeature)
    }

    pub async fn put(&self, _: &str, _: Vec<u8>) -> Result<(), Error> {
        match self.0 {}
    }

    pub async fn get(&self, _: &str, _: u64) -> Result<Bytes, Error> {
        match self.0 {}
    }

    pub async fn get_range(&self, _: &str, _: Range<u64>) -> Result<Bytes, Error> {
        match self.0 {}
    }

    pub async fn delete(&self, _: &str) -> Result<(), Error> {
        match self.0 {}
    }

    pub async fn list(&self, _: &str) -> Result<Vec<Listed>, Error> {
        match self.0 {}
    }

    pub async fn delete_halves(&self, _: &str) -> Result<bool, Error> {
        match self.0 {}
    }
}
