//! The manifest `svc.archive.manifest.v1`: what an archived month of a tenant consists of, signed.

use authority_crypto::Signer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Error, signed::signed};

/// `kind` of a manifest.
pub const ARCHIVE_KIND: &str = "svc.archive.manifest.v1";

/// An archived month. Members are in the order of RFC 8785.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// RFC 3339.
    pub archived_at: String,
    /// How many changes to authority it has.
    pub changes: u64,
    /// The last signed checkpoint of the tenant's log when the month was archived; `None` if it had no log.
    pub checkpoint: Option<String>,
    pub decisions: u64,
    /// The first decision's id; `None` without decisions.
    pub first_id: Option<String>,
    /// The service's public URL.
    pub issuer: String,
    pub last_id: Option<String>,
    /// `2026-07`, of UTC.
    pub month: String,
    pub objects: Vec<Object>,
    pub tenant_id: String,
    /// How many versions of records it has.
    pub versions: u64,
}

/// What an object of an archive has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Decisions with all of their evidence.
    Decisions,
    /// Where each decision of the part with the same number is.
    Index,
    /// Versions of records that have ended.
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
    /// The first and last decision's id; `None` in versions and changes.
    pub first_id: Option<String>,
    pub last_id: Option<String>,
    /// Beside the manifest.
    pub name: String,
    /// Which part of the month it is, or is the index of: from 1, for each content.
    pub part: u32,
    /// `sha256:` and hex of the object.
    pub sha256: String,
}

impl Manifest {
    /// The manifest's text, RFC 8785, signed over itself without `signature`. `key`: the JWK of the signer.
    ///
    /// # Errors
    /// None occurs: its members are texts and numbers.
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
