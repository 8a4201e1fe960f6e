//! Gathered facts, kept for as long as the tenant's authority stands still.
//!
//! Facts depend on a tenant's revision and on a request's look-up keys alone, so requests that
//! differ in context and time share them, with their canonical bytes and digest.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use parking_lot::Mutex;

use authority_core::graph::TenantGraph;
use authority_decision::{Draft, Request};
use authority_evidence::{self as evidence, PreparedFacts};

/// Shards keep cores out of each other's way.
const SHARDS: usize = 16;
/// Entries a shard holds before it starts afresh.
const MOST: usize = 512;

#[derive(Default)]
pub(super) struct Cache([Mutex<HashMap<String, Arc<PreparedFacts>>>; SHARDS]);

impl Cache {
    /// The facts for a request at the graph's revision: remembered, or gathered now.
    pub(super) fn gather(
        &self,
        graph: &TenantGraph,
        request: &Request,
    ) -> Result<Arc<PreparedFacts>, evidence::Error> {
        let key = key(request);
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let shard = usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or_default();
        let shard = &self.0[shard];
        if let Some(known) = shard.lock().get(&key)
            && known.gathered.revision == graph.revision
        {
            return Ok(Arc::clone(known));
        }
        let prepared = Arc::new(PreparedFacts::new(graph.gather(request), request)?);
        let mut entries = shard.lock();
        let full =
            if entries.len() >= MOST { std::mem::take(&mut *entries) } else { HashMap::new() };
        entries.insert(key, Arc::clone(&prepared));
        drop(entries);
        drop(full); // outside the lock: many texts go
        Ok(prepared)
    }
}

/// The look-up keys of a request; U+0000 stands in none of them.
fn key(request: &Draft) -> String {
    let (always, named) = request.keys();
    let mut key = String::with_capacity(256);
    for part in always {
        key.push_str(part);
        key.push('\0');
    }
    for part in named {
        // No text can look like an absent one.
        match part {
            Some(text) => {
                key.push('+');
                key.push_str(text);
            }
            None => key.push('-'),
        }
        key.push('\0');
    }
    key
}
