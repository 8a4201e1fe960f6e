//! The manifest of an archive: its row in the database, reading and signing.

use authority_crypto::sha256;
use authority_evidence::{
    archive::Manifest,
    verify::{Trust, key_set, verify_manifest},
};
use authority_ids::{TenantId, TenantRef};
use authority_keys::{Keys, Purpose};
use authority_store::row_id;
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Bytea, Text},
};

use crate::{Bucket, Error, bucket, format::names};

/// The most bytes of a manifest that is read. It has a few hundred bytes for each object of the
/// month.
pub(crate) const MOST_BYTES: u64 = 16 << 20;

/// An archived month: a row of the table `archives`.
#[derive(Clone, QueryableByName)]
pub(crate) struct Archive {
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(crate) tenant_id: TenantRef,
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

    /// The key of this archive in the memory cache.
    pub(crate) fn key(&self) -> Vec<u8> {
        [self.tenant_id.as_bytes(), self.month.as_bytes(), &self.manifest_sha256].join(&0)
    }

    /// Reads the manifest, which an evidence key of this service must have signed.
    ///
    /// The manifest must also belong to this tenant and month. Changing the row in the database is
    /// therefore not enough to make the service accept another manifest.
    ///
    /// # Errors
    /// The manifest is missing or differs from the committed one, or the bucket is unavailable.
    pub(crate) async fn manifest(&self, place: &Bucket, keys: &Keys) -> Result<Manifest, Error> {
        let damaged = |why: &str| Error::Damaged(self.manifest.clone(), why.to_owned());
        let path = names::path(&self.folder()?, &self.manifest);
        let text = match place.get(&path, MOST_BYTES).await {
            Err(bucket::Error::NotFound(_)) => return Err(Error::Elsewhere(path)),
            text => text?,
        };
        if sha256(&text)[..] != self.manifest_sha256 {
            return Err(damaged("its SHA-256 differs from the committed one"));
        }
        let published = key_set(keys.jwks().as_bytes());
        let published = published.map_err(|why| Error::Internal(why.to_string()))?;
        let trust = Trust { keys: Some(published), log_key: None };
        let (manifest, _) =
            verify_manifest(&text, &trust).map_err(|why| damaged(&why.to_string()))?;
        if (&manifest.tenant_id, &manifest.month) != (&self.tenant_id, &self.month) {
            return Err(damaged("it belongs to another tenant or month"));
        }
        Ok(manifest)
    }
}

/// A signed manifest.
pub(crate) struct Signed {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) sha256: [u8; 32],
}

/// Signs a manifest with the service's evidence key.
///
/// # Errors
/// Only a bug causes an error: the signing key has no public key.
pub(crate) fn sign(manifest: &Manifest, keys: &Keys) -> Result<Signed, Error> {
    let signer = keys.signer(Purpose::Evidence);
    let key = keys.public(signer.kid()).map(|key| key.published());
    let key = key.ok_or_else(|| Error::Internal(format!("no key {}", signer.kid())))?;
    let text = manifest.sign(&key, &signer)?;
    let sha256 = sha256(text.as_bytes());
    Ok(Signed { name: names::manifest(&sha256), text, sha256 })
}
