//! Decides a stored decision again from all of its stored input.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{
    Error, PreparedFacts,
    record::{DecidedRequest, Salts, Written, write},
    sealed::{self, StoredFacts},
};
use authority_decision::{Facts, Request, SEMANTICS, Verdict, moment};

/// All stored data of a decision.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The signed bytes.
    pub record: Vec<u8>,
    pub context: Vec<u8>,
    /// The decision's own facts: counters, the approval, the decline, the offsets of time zones,
    /// and the digests of the gathered facts and of reality.
    pub facts: Vec<u8>,
    pub salts: Salts,
    /// The gathered facts, with policies by reference; `None` if they were deleted.
    pub gathered: Option<Arc<Vec<u8>>>,
    /// The reality facts, if the decision depended on reality and they are still stored.
    pub reality: Option<Arc<Vec<u8>>>,
    /// Texts by their SHA-256 in hex. At least the texts of the decision's policies and input
    /// schemas are included.
    pub texts: Arc<HashMap<String, String>>,
}

/// The fields of a record outside its request and verdict.
#[derive(Deserialize)]
pub struct RecordFields {
    pub authority_revision: i64,
    pub operation: String,
    #[serde(with = "moment")]
    pub evaluated_at: DateTime<Utc>,
    pub nonce: String,
    pub semantics: String,
    pub tenant_id: String,
}

/// The result of deciding again.
pub struct Again {
    pub request: Request,
    pub facts: Facts,
    pub verdict: Verdict,
    pub written: Written,
}

impl Sealed {
    /// Returns the record's fields outside its request and verdict.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn head(&self) -> Result<RecordFields, Error> {
        Ok(serde_json::from_slice(&self.record)?)
    }

    /// Whether the decision's context or its own facts were erased.
    ///
    /// The record then still verifies but cannot be decided again.
    pub fn is_erased(&self) -> bool {
        self.context.is_empty() || self.facts.is_empty()
    }

    /// Whether all input of the decision is still stored.
    pub fn is_whole(&self) -> bool {
        let named = sealed::digests(&self.facts);
        let has_schemas = |gathered: &Arc<Vec<u8>>| {
            let named = sealed::schemas(gathered).unwrap_or_default();
            named.iter().all(|sha256| self.texts.contains_key(sha256))
        };
        !self.is_erased()
            && self.gathered.as_ref().is_some_and(has_schemas)
            && named.is_ok_and(|named| named.reality.is_none() || self.reality.is_some())
    }

    /// Returns the request.
    ///
    /// # Errors
    /// The record or the context cannot be read.
    pub fn request(&self) -> Result<Request, Error> {
        sealed::request(&self.record, &self.context)
    }

    /// Returns the facts, with policies compiled from their texts.
    ///
    /// # Errors
    /// The facts cannot be read, or an active policy's text is missing or no longer compiles.
    pub fn facts(&self) -> Result<Facts, Error> {
        let text = |sha256: &str| self.texts.get(sha256);
        let mut facts = sealed::facts(self.stored_facts()?, text)?;
        let revision = self.head()?.authority_revision;
        Arc::make_mut(&mut facts.gathered).revision = revision;
        Ok(facts)
    }

    /// Returns the facts as they are stored.
    ///
    /// # Errors
    /// The gathered facts were deleted.
    pub fn stored_facts(&self) -> Result<StoredFacts<'_>, Error> {
        let reality = self.reality.as_deref().map(Vec::as_slice);
        Ok(StoredFacts { own: &self.facts, gathered: self.gathered()?, reality })
    }

    /// Returns the gathered facts.
    ///
    /// # Errors
    /// The gathered facts were deleted.
    pub fn gathered(&self) -> Result<&[u8], Error> {
        let gathered = self.gathered.as_deref().map(Vec::as_slice);
        gathered.ok_or(Error::Unreadable("the gathered facts"))
    }

    /// Returns the recorded verdict and its time.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn recorded(&self) -> Result<sealed::Recorded, Error> {
        sealed::recorded(&self.record)
    }

    /// Decides again on the sealed request and facts.
    ///
    /// The result has the same bytes and id as the sealed record, unless data was altered or this
    /// program decides differently.
    ///
    /// # Errors
    /// This program does not know the semantics of the decision, or the decision cannot be read.
    pub fn decide_again(&self) -> Result<Again, Error> {
        self.decide_with(self.facts()?)
    }

    /// Decides again on the sealed request, with other facts.
    ///
    /// # Errors
    /// The same as for [`Self::decide_again`].
    pub fn decide_with(&self, facts: Facts) -> Result<Again, Error> {
        let (head, request) = (self.head()?, self.request()?);
        if head.semantics != SEMANTICS {
            return Err(Error::Semantics(head.semantics));
        }
        let verdict = authority_decision::decide(&request, &facts, head.evaluated_at);
        let prepared = PreparedFacts::of(Arc::clone(&facts.gathered), &request)?;
        let asked = DecidedRequest {
            operation: &head.operation,
            request: &request,
            facts: &prepared,
            spent: &facts.spent,
            approval: facts.approval.as_ref(),
            declined: facts.declined.as_ref(),
            open_requests: facts.open_requests,
            zones: &facts.zones,
            verdict: &verdict,
            evaluated_at: head.evaluated_at,
            nonce: &head.nonce,
        };
        let written = write(&asked, &self.salts)?;
        Ok(Again { request, facts, verdict, written })
    }
}
