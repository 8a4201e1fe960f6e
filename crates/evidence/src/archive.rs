//! The manifest `svc.archive.manifest.v1`: the signed content list of a tenant's archived month.

use authority_crypto::Signer;
use authority_ids::{DecisionRef, TenantRef};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Error, signed::signed};

/// `kind` of a manifest.
pub const ARCHIVE_KIND: &str = "svc.archive.manifest.v1";

/// An archived month. Its fields are in the order of RFC 8785.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// In RFC 3339 form.
    pub archived_at: String,
    /// The number of changes to authority.
    pub changes: u64,
    /// The last signed checkpoint of the tenant's log when the month was archived.
    ///
    /// `None` if the tenant had no log.
    pub checkpoint: Option<String>,
    pub decisions: u64,
    /// The id of the first decision; `None` without decisions.
    pub first_id: Option<DecisionRef>,
    /// The service's public URL.
    pub issuer: String,
    pub last_id: Option<DecisionRef>,
    /// The month in UTC, for example `2026-07`.
    pub month: String,
    pub objects: Vec<Object>,
    pub tenant_id: TenantRef,
    /// The number of versions of records.
    pub versions: u64,
}

/// The content of an archive's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Decisions with all of their evidence.
    Decisions,
    /// The position of each decision in the `decisions` object with the same part number.
    Index,
    /// Versions of records that were replaced or deleted in the month.
    Versions,
    /// Changes to authority.
    Changes,
}

impl Content {
    pub fn word(self) -> &'static str {
        match self {
            Self::Decisions => "decisions",
            Self::Index => "index",
            Self::Versions => "versions",
            Self::Changes => "changes",
        }
    }
}

/// One object of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    pub bytes: u64,
    pub content: Content,
    pub entries: u64,
    /// The ids of the first and last decision; `None` in versions and changes.
    pub first_id: Option<DecisionRef>,
    pub last_id: Option<DecisionRef>,
    /// The object's name. It is in the same folder as the manifest.
    pub name: String,
    /// The number of the part; each content starts at 1. An index has the same number as the
    /// decisions that it lists.
    pub part: u32,
    /// `sha256:` and the object's SHA-256 in hex.
    pub sha256: String,
}

impl Manifest {
    /// Returns the manifest's text in RFC 8785 form. Its `signature` signs all other fields.
    ///
    /// `key` is the signer's public key as a JWK.
    ///
    /// # Errors
    /// This does not happen: all fields are strings and numbers.
    pub fn sign(&self, key: &Value, signer: &Signer) -> Result<String, Error> {
        let mut document = serde_json::to_value(self)?;
        document["key"] = key.clone();
        document["kind"] = json!(ARCHIVE_KIND);
        signed(document, signer)
    }

    pub fn objects_of(&self, content: Content) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |object| object.content == content)
    }
}
