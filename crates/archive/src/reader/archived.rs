//! An archived decision.

use std::sync::Arc;

use authority_evidence::{Salts, Sealed, verify::sealed_in};
use authority_ids::TenantRef;
use authority_ledger::stored_decisions::Stored;
use authority_store::row_id;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error,
    format::{
        self,
        entry::{Entry, Summary},
    },
};

/// The entry of an archived decision, checked to belong to its tenant.
pub struct Archived {
    line: Vec<u8>,
}

/// The remaining parts of an erased entry.
#[derive(Default, Deserialize)]
struct Remains {
    context: Option<Salted>,
    facts: Option<Salted>,
}

#[derive(Deserialize)]
struct Salted {
    salt: String,
    value: Value,
}

impl Archived {
    /// Checks that the line is an entry of this tenant.
    ///
    /// # Errors
    /// The line is not an entry of this tenant.
    pub(super) fn new(line: Vec<u8>, tenant_id: &TenantRef) -> Result<Self, Error> {
        let archived = Self { line };
        if archived.summary()?.tenant_id != *tenant_id {
            return Err(format::Error::Unreadable("it belongs to another tenant").into());
        }
        Ok(archived)
    }

    /// Returns the entry.
    ///
    /// # Errors
    /// This does not happen: [`Self::new`] has read the entry.
    pub fn entry(&self) -> Result<Entry<'_>, Error> {
        Ok(Entry::read(&self.line)?)
    }

    /// Returns the exact text of the pack.
    ///
    /// # Errors
    /// This does not happen: [`Self::new`] has read the entry.
    pub fn pack(&self) -> Result<&str, Error> {
        Ok(self.entry()?.pack_text()?)
    }

    /// Returns the summary.
    ///
    /// # Errors
    /// This does not happen: [`Self::new`] has read the entry.
    pub fn summary(&self) -> Result<Summary<'_>, Error> {
        Ok(self.entry()?.summary()?)
    }

    /// Returns the decision in the form that the tables have.
    ///
    /// # Errors
    /// A part of the entry cannot be read.
    pub fn stored(&self) -> Result<Stored, Error> {
        let entry = self.entry()?;
        let summary = entry.summary()?;
        let sealed = match entry.bundle {
            Some(bundle) => sealed_in(bundle.get().as_bytes())
                .map_err(|why| Error::Damaged(entry.decision_id.to_string(), why.to_string()))?,
            None => remaining(&entry, &summary)?,
        };
        let signature = STANDARD.decode(summary.signature).unwrap_or_default();
        Ok(Stored {
            tenant_id: row_id(&summary.tenant_id)?,
            kid: summary.kid.to_owned(),
            signature,
            sealed,
            id: entry.decision_id,
        })
    }
}

fn remaining(entry: &Entry<'_>, summary: &Summary<'_>) -> Result<Sealed, Error> {
    let remains = entry.remains.map(|text| serde_json::from_str(text.get())).transpose();
    let remains: Remains = remains.map_err(format::Error::from)?.unwrap_or_default();
    let (context, context_salt) = salted(remains.context)?;
    let (facts, facts_salt) = salted(remains.facts)?;
    Ok(Sealed {
        record: summary.record.as_bytes().to_vec(),
        context,
        facts,
        salts: Salts { context: context_salt, facts: facts_salt },
        gathered: None,
        reality: None,
        texts: Arc::default(),
    })
}

/// Returns the stored bytes and their salt. Both are empty if they were erased.
fn salted(part: Option<Salted>) -> Result<(Vec<u8>, [u8; 16]), Error> {
    let Some(Salted { salt, value }) = part else { return Ok(Default::default()) };
    let salt = STANDARD.decode(salt).ok().and_then(|salt| salt.try_into().ok());
    let bytes = serde_json_canonicalizer::to_vec(&value).map_err(format::Error::from)?;
    Ok((bytes, salt.unwrap_or_default()))
}
