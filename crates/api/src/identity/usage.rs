//! When each API key was last used: noted in memory and drained in batches.

use std::{
    collections::HashMap,
    mem,
    sync::atomic::{AtomicI64, Ordering},
};

use authority_ids::ApiKeyId;
use chrono::{DateTime, Utc};
use parking_lot::RwLock;

/// The most keys that are noted between two drains. The use of further keys is not noted.
const MOST: usize = 100_000;

#[derive(Default)]
pub struct LastUsed(RwLock<HashMap<ApiKeyId, AtomicI64>>);

impl LastUsed {
    pub(super) fn note(&self, key_id: &ApiKeyId, at: DateTime<Utc>) {
        let at = at.timestamp_micros();
        if let Some(noted) = self.0.read().get(key_id) {
            noted.fetch_max(at, Ordering::Relaxed);
            return;
        }
        let mut map = self.0.write();
        if map.len() < MOST {
            map.entry(key_id.clone()).or_default().fetch_max(at, Ordering::Relaxed);
        }
    }

    /// Removes and returns the entries since the last drain: each key's id and the time of its last
    /// use.
    pub fn drain(&self) -> Vec<(ApiKeyId, DateTime<Utc>)> {
        let noted = mem::take(&mut *self.0.write());
        let moment = |micros: AtomicI64| DateTime::from_timestamp_micros(micros.into_inner());
        noted.into_iter().filter_map(|(id, micros)| Some((id, moment(micros)?))).collect()
    }
}
