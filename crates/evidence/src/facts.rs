//! Gathered facts, prepared once for all decisions that share them.

use authority_crypto::sha256;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::Error;
use authority_decision::{Facts, Gathered, Request, facts_index, input_schema::InputSchema};

/// Facts in their canonical form (RFC 8785), stored once by their SHA-256.
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

/// Facts from a tenant's graph, their canonical bytes, the digest, and the index of what was read.
pub struct PreparedFacts {
    pub gathered: Arc<Gathered>,
    /// All of them but reality; policies by reference.
    pub blob: Blob,
    /// Reality, unless nothing of it concerns the request.
    pub reality: Option<Blob>,
    /// The texts of the tools' input schemas.
    pub schemas: Vec<Blob>,
    /// Ids, versions and SHA-256 of what was read, absences too; canonical JSON.
    pub index: Box<RawValue>,
}

impl PreparedFacts {
    /// # Errors
    /// The facts do not serialise, which is a bug; then there is no decision.
    pub fn new(gathered: Gathered, request: &Request) -> Result<Self, Error> {
        Self::of(Arc::new(gathered), request)
    }

    /// # Errors
    /// As [`Self::new`].
    pub fn of(gathered: Arc<Gathered>, request: &Request) -> Result<Self, Error> {
        let reality = &gathered.reality;
        let reality = (!reality.is_empty()).then(|| Blob::new(&**reality)).transpose()?;
        let blob = if reality.is_some() {
            Blob::new(&Gathered { reality: Arc::default(), ..Gathered::clone(&gathered) })?
        } else {
            Blob::new(&*gathered)?
        };
        let facts = Facts::new(Arc::clone(&gathered));
        let reads = facts_index::reads(request, &facts);
        let index = RawValue::from_string(serde_json_canonicalizer::to_string(&reads)?)?;
        let schemas = gathered.schemas.iter().map(|schema| Blob::of_text(schema));
        let schemas = schemas.collect::<Result<_, _>>()?;
        Ok(Self { gathered, blob, reality, schemas, index })
    }

    /// What is stored for it.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        std::iter::once(&self.blob).chain(&self.reality).chain(&self.schemas)
    }

    /// The revision of the tenant's authority of these facts.
    pub fn revision(&self) -> u32 {
        u32::try_from(self.gathered.revision).unwrap_or(u32::MAX)
    }
}
