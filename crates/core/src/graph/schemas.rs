//! The schemas of a tenant's tools, each once by its digest, so that it is compiled once, whatever else changes.

use std::{collections::BTreeMap, sync::Arc};

use authority_decision::{
    JoinedTerms,
    input_schema::{InputReference, InputSchema, MOST_SCHEMAS},
    records::{Tool, Used, Uses},
};

use super::tenant::TenantGraph;

#[derive(Default)]
pub(super) struct Schemas(BTreeMap<String, Arc<InputSchema>>);

impl Schemas {
    /// Keeps one that is known, which may be compiled already.
    pub(super) fn put(&mut self, schema: InputSchema) {
        self.0.entry(schema.sha256().to_owned()).or_insert_with(|| schema.into());
    }

    /// Those that may be asked, in order of their digests.
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
        // More are not asked: they deny.
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
}

impl TenantGraph {
    pub(super) fn drop_unused_schemas(&mut self) {
        let named: std::collections::HashSet<&str> = self
            .tools
            .iter()
            .filter_map(|tool| tool.input.as_ref().map(|input| input.sha256.as_str()))
            .collect();
        self.schemas.0.retain(|sha256, _| named.contains(sha256.as_str()));
    }
}
