//! The manifest of an archive: as the database names it, read, and signed.

use authority_core::{
    keys::{Keys, Purpose},
    store::row_id,
};
use authority_crypto::sha256;
use authority_evidence::archive::Manifest;
use authority_ids::TenantId;
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Bytea, Text},
};

use crate::{Bucket, Error, bucket, format::names};

/// An archived month, by its row.
#[derive(Clone, QueryableByName)]
pub(crate) struct Archive {
    #[diesel(sql_type = Text)]
    pub(crate) tenant_id: String,
    #[diesel(sql_type = Text)]
    pub(crate) month: String,
    /// The manifest's name.
    #[diesel(sql_type = Text)]
    pub(crate) manifest: String,
    #[diesel(sql_type = Bytea)]
    pub(crate) manifest_sha256: Vec<u8>,
}

impl Archive {
    pub(crate) fn tenant_id(&self) -> QueryResult<TenantId> {
        row_id(&self.tenant_id)
    }

    pub(crate) fn folder(&self) -> QueryResult<String> {
        Ok(names::folder(&self.tenant_id()?, &self.month))
    }

    /// # Errors
    /// It is not there, or is not the one that was committed; the bucket is away.
    pub(crate) async fn manifest(&self, place: &Bucket) -> Result<Manifest, Error> {
        let damaged = |why: &str| Error::Damaged(self.manifest.clone(), why.to_owned());
        let path = format!("{}/{}", self.folder()?, self.manifest);
        let text = match place.get(&path).await {
            Err(bucket::Error::NotFound(_)) => return Err(Error::Elsewhere(path)),
            text => text?,
        };
        if sha256(&text)[..] != self.manifest_sha256 {
            return Err(damaged("its SHA-256 is not the one that was committed"));
        }
        serde_json::from_slice(&text).map_err(|why| damaged(&why.to_string()))
    }
}

/// A manifest that is signed.
pub(crate) struct Signed {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) sha256: [u8; 32],
}

/// Signs a manifest with the service's evidence key.
///
/// # Errors
/// A bug: the signing key has no public one.
pub(crate) fn sign(manifest: &Manifest, keys: &Keys) -> Result<Signed, Error> {
    let signer = keys.signer(Purpose::Evidence);
    let key = keys.public(signer.kid()).map(|key| key.published());
    let key = key.ok_or_else(|| Error::Internal(format!("no key {}", signer.kid())))?;
    let text = manifest.sign(&key, &signer)?;
    let sha256 = sha256(text.as_bytes());
    Ok(Signed { name: names::manifest(&sha256), text, sha256 })
}
