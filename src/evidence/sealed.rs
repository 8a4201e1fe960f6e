//! A stored decision read back into what it was decided on, and decided again from that.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Error, PreparedFacts,
    record::{Asked, Salts, Written, write},
};
use crate::decision::{
    self, Facts, Gathered, Request, SEMANTICS, Verdict,
    facts::{Approval, FactsDocument, Spent},
    moment,
    policy::PolicyReference,
};

/// Everything that is stored of a decision.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The signed bytes.
    pub record: Vec<u8>,
    pub context: Vec<u8>,
    /// The gathered facts by digest, counters, approval.
    pub facts: Vec<u8>,
    pub salts: Salts,
    /// The gathered facts, policies by reference.
    pub gathered: Vec<u8>,
    /// Policies' texts by their SHA-256 in hex.
    pub texts: HashMap<String, String>,
}

/// The members of a record that stand outside its request and verdict.
#[derive(Deserialize)]
pub struct Head {
    pub authority_revision: i64,
    pub door: String,
    #[serde(with = "moment")]
    pub evaluated_at: DateTime<Utc>,
    pub nonce: String,
    pub semantics: String,
    pub tenant_id: String,
}

#[derive(Deserialize)]
struct Seen {
    approval: Option<Approval>,
    spent: Spent,
}

/// A decision, decided again.
pub struct Again {
    pub request: Request,
    pub facts: Facts,
    pub verdict: Verdict,
    pub written: Written,
}

impl Sealed {
    /// # Errors
    /// When the record cannot be read.
    pub fn head(&self) -> Result<Head, Error> {
        Ok(serde_json::from_slice(&self.record)?)
    }

    /// # Errors
    /// When record or context cannot be read.
    pub fn request(&self) -> Result<Request, Error> {
        request(&self.record, &self.context)
    }

    /// The facts, with policies compiled again from their texts.
    ///
    /// # Errors
    /// When they cannot be read, or a policy's text is missing or no longer compiles.
    pub fn facts(&self) -> Result<Facts, Error> {
        let seen: Seen = serde_json::from_slice(&self.facts)?;
        let gathered: Gathered<PolicyReference> = serde_json::from_slice(&self.gathered)?;
        let revision = self.head()?.authority_revision;
        let document = FactsDocument {
            gathered: Arc::new(Gathered { revision, ..gathered }),
            spent: seen.spent,
            approval: seen.approval,
        };
        let text = |sha256: &str| self.texts.get(sha256);
        document.rebuild(text).map_err(|why| Error::Facts(why.to_string()))
    }

    /// Decides on the sealed arguments: the same bytes and id, unless something was altered or
    /// deciding means something else now.
    ///
    /// # Errors
    /// When it was decided under semantics that this program does not know, or cannot be read.
    pub fn decide_again(&self) -> Result<Again, Error> {
        self.decide_with(self.facts()?)
    }

    /// The same with other facts.
    ///
    /// # Errors
    /// As [`Self::decide_again`].
    pub fn decide_with(&self, facts: Facts) -> Result<Again, Error> {
        let (head, request) = (self.head()?, self.request()?);
        if head.semantics != SEMANTICS {
            return Err(Error::Semantics(head.semantics));
        }
        let verdict = decision::decide(&request, &facts, head.evaluated_at);
        let prepared = PreparedFacts::of(Arc::clone(&facts.gathered), &request)?;
        let asked = Asked {
            door: &head.door,
            request: &request,
            facts: &prepared,
            spent: &facts.spent,
            approval: facts.approval.as_ref(),
            verdict: &verdict,
            evaluated_at: head.evaluated_at,
            nonce: &head.nonce,
        };
        let written = write(&asked, &self.salts)?;
        Ok(Again { request, facts, verdict, written })
    }
}

/// The request of a record, given the context that the record holds only a digest of.
///
/// # Errors
/// When either cannot be read as what this service wrote.
pub fn request(record: &[u8], context: &[u8]) -> Result<Request, Error> {
    let mut record: Map<String, Value> = serde_json::from_slice(record)?;
    let context: Value = serde_json::from_slice(context)?;
    let Some(Value::Object(mut request)) = record.remove("request") else {
        return Err(Error::Unreadable("its request"));
    };
    request.remove("context_digest");
    request.insert("context".to_owned(), context);
    let tenant_id = record.remove("tenant_id").ok_or(Error::Unreadable("its tenant"))?;
    request.insert("tenant_id".to_owned(), tenant_id);
    Ok(serde_json::from_value(Value::Object(request))?)
}
