//! The facts of many stored decisions, with each policy and input schema compiled once.

use std::{collections::HashMap, sync::Arc};

use authority_decision::{CompiledPolicy, Facts, PolicyReference, input_schema::InputSchema};
use authority_evidence::{self as evidence, Sealed};
use authority_ids::EntityRef;

/// Rebuilds facts. Many decisions share a few policies.
#[derive(Default)]
pub(super) struct SealedFacts {
    compiled: Compiled,
    schemas: Schemas,
}

impl SealedFacts {
    /// Returns the facts of a decision.
    ///
    /// # Errors
    /// The facts or a text are missing, or cannot be read.
    pub(super) fn of(&mut self, sealed: &Sealed) -> Result<Facts, evidence::Error> {
        let Self { compiled, schemas } = self;
        evidence::sealed::facts_with(
            sealed.stored_facts()?,
            |reference| policy(compiled, reference, sealed.texts.get(&reference.sha256)),
            |sha256| schema(schemas, sha256, sealed.texts.get(sha256)),
        )
    }
}

/// Policies by id, version and digest.
type Compiled = HashMap<(EntityRef, i64, String), Arc<CompiledPolicy>>;

/// Input schemas by digest.
type Schemas = HashMap<String, Arc<InputSchema>>;

fn policy(
    all: &mut Compiled,
    reference: &PolicyReference,
    text: Option<&String>,
) -> Result<Arc<CompiledPolicy>, evidence::Error> {
    let key = (reference.id.clone(), reference.version, reference.sha256.clone());
    if let Some(known) = all.get(&key) {
        if known.reference == *reference {
            return Ok(Arc::clone(known));
        }
        let (rows, effective) = (reference.applies_to.clone(), reference.effective);
        return Ok(Arc::new(known.applied_to(rows, effective)));
    }
    let compiled = evidence::sealed::compiled(reference, text)?;
    all.insert(key, Arc::clone(&compiled));
    Ok(compiled)
}

fn schema(
    all: &mut Schemas,
    sha256: &str,
    text: Option<&String>,
) -> Result<Arc<InputSchema>, evidence::Error> {
    if let Some(known) = all.get(sha256) {
        return Ok(Arc::clone(known));
    }
    let read = evidence::sealed::schema(sha256, text)?;
    all.insert(sha256.to_owned(), Arc::clone(&read));
    Ok(read)
}
