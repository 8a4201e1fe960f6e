//! Gathered facts with their canonical bytes and digests. Several decisions can share them.

use authority_crypto::sha256;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::Error;
use authority_decision::{Facts, Gathered, Request, facts::sources, input_schema::InputSchema};

/// The bytes of facts (in RFC 8785 form) or of a text, stored once under their SHA-256.
pub struct Blob {
    pub body: Vec<u8>,
    pub sha256: [u8; 32],
}

impl Blob {
    fn new(facts: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json_canonicalizer::to_vec(facts)?;
        Ok(Self { sha256: sha256(&body), body })
    }

    fn of_text(schema: &InputSchema) -> Result<Self, Error> {
        let mut sha256 = [0; 32];
        hex::decode_to_slice(schema.sha256(), &mut sha256)
            .map_err(|_| Error::Unreadable("the digest of an input schema"))?;
        let text = schema.text().ok_or(Error::Unreadable("an input schema"))?;
        Ok(Self { body: text.as_bytes().to_vec(), sha256 })
    }
}

/// Facts from a tenant's graph, with their canonical bytes, digest and index.
pub struct PreparedFacts {
    pub gathered: Arc<Gathered>,
    /// All facts except reality. Policies are included by id, version and digest, without their
    /// texts.
    pub blob: Blob,
    /// The reality facts; `None` if reality does not concern the request.
    pub reality: Option<Blob>,
    /// The texts of the tools' input schemas.
    pub schemas: Vec<Blob>,
    /// The data that was read, in canonical JSON: ids, versions and SHA-256. Includes data that was
    /// looked for but does not exist.
    pub index: Box<RawValue>,
}

impl PreparedFacts {
    /// Prepares the facts for a request.
    ///
    /// # Errors
    /// The facts do not serialise, which is a bug.
    pub fn new(gathered: Gathered, request: &Request) -> Result<Self, Error> {
        Self::of(Arc::new(gathered), request)
    }

    /// Prepares shared facts for a request.
    ///
    /// # Errors
    /// The same as for [`Self::new`].
    pub fn of(gathered: Arc<Gathered>, request: &Request) -> Result<Self, Error> {
        let reality = &gathered.reality;
        let reality = (!reality.is_empty()).then(|| Blob::new(&**reality)).transpose()?;
        let blob = if reality.is_some() {
            Blob::new(&Gathered { reality: Arc::default(), ..Gathered::clone(&gathered) })?
        } else {
            Blob::new(&*gathered)?
        };
        let facts = Facts::new(Arc::clone(&gathered));
        let reads = sources::reads(request, &facts);
        let index = RawValue::from_string(serde_json_canonicalizer::to_string(&reads)?)?;
        let schemas = gathered.schemas.iter().map(|schema| Blob::of_text(schema));
        let schemas = schemas.collect::<Result<_, _>>()?;
        Ok(Self { gathered, blob, reality, schemas, index })
    }

    /// Returns the blobs to store.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        std::iter::once(&self.blob).chain(&self.reality).chain(&self.schemas)
    }

    /// Returns the revision of the tenant's authority in these facts.
    pub fn revision(&self) -> u32 {
        u32::try_from(self.gathered.revision).unwrap_or(u32::MAX)
    }
}
