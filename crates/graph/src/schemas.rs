//! A tenant's tool schemas by digest. A schema is compiled only once, even when other data changes.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use authority_decision::{
    JoinedTerms,
    input_schema::{InputReference, InputSchema, MOST_SCHEMAS},
    records::{Tool, Used, Uses},
};

#[derive(Default)]
pub(super) struct Schemas(BTreeMap<String, Arc<InputSchema>>);

impl Schemas {
    /// Adds a schema. It may already be compiled.
    pub(super) fn put(&mut self, schema: InputSchema) {
        self.0.entry(schema.sha256().to_owned()).or_insert_with(|| schema.into());
    }

    /// Returns the schemas that a decision may need, in order of digest.
    pub(super) fn of(
        &self,
        tool: Option<&Tool>,
        joined: Option<&JoinedTerms>,
        uses: &[Uses],
    ) -> Vec<Arc<InputSchema>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let used = uses.iter().filter_map(|uses| match &uses.used {
            Used::Tool(tool) => tool.input.as_ref(),
            _ => None,
        });
        // A request with more schemas than the maximum is denied without evaluating them.
        let joined = joined.filter(|terms| terms.inputs.len() <= MOST_SCHEMAS);
        let joined = joined.iter().flat_map(|terms| &terms.inputs).map(|one| &one.schema);
        let named = tool.and_then(|tool| tool.input.as_ref()).into_iter();
        let mut found: Vec<_> =
            named.chain(joined).chain(used).filter_map(|named| self.get(named)).collect();
        found.sort_unstable_by(|one, other| one.sha256().cmp(other.sha256()));
        found.dedup();
        found
    }

    fn get(&self, named: &InputReference) -> Option<Arc<InputSchema>> {
        self.0.get(&named.sha256).cloned()
    }

    /// Keeps only the schemas of these tools.
    pub(super) fn keep<'t>(&mut self, tools: impl Iterator<Item = &'t Tool>) {
        let named: HashSet<&str> =
            tools.filter_map(|tool| Some(tool.input.as_ref()?.sha256.as_str())).collect();
        self.0.retain(|sha256, _| named.contains(sha256.as_str()));
    }
}
