//! A cache of gathered facts, valid while the tenant's authority does not change.
//!
//! Facts depend only on the tenant's revision and the request's look-up keys. Requests that differ
//! only in context and time therefore share the facts with their canonical bytes and digest.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use parking_lot::Mutex;

use authority_decision::{Draft, Request};
use authority_evidence::{self as evidence, PreparedFacts};
use authority_graph::TenantGraph;

/// The number of shards, which reduce lock contention.
const SHARDS: usize = 16;
/// The maximum number of entries of a shard. A full shard is cleared.
const MOST: usize = 512;

#[derive(Default)]
pub(super) struct Cache([Mutex<HashMap<String, Arc<PreparedFacts>>>; SHARDS]);

impl Cache {
    /// Returns the facts for a request at the graph's revision. They are cached or newly gathered.
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
        drop(full); // outside the lock, because it frees many texts
        Ok(prepared)
    }
}

/// Returns the look-up keys of a request, joined by U+0000, which no key contains.
pub(super) fn key(request: &Draft) -> String {
    let (always, named) = request.keys();
    let mut key = String::with_capacity(256);
    for part in always {
        key.push_str(part);
        key.push('\0');
    }
    for part in named {
        // The key must distinguish an empty text from an absent one.
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
