//! How much of each pool is in use.

use super::Store;

/// The connections of one pool now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    pub pool: &'static str,
    /// Handed out.
    pub in_use: usize,
    /// Open, and not handed out.
    pub idle: usize,
    pub most: usize,
    /// Work that waits for a connection.
    pub waiting: usize,
}

impl Store {
    /// Every pool, from memory.
    pub fn usage(&self) -> [PoolUsage; 5] {
        let pools = [
            ("tenant", &self.tenant),
            ("system", &self.system),
            ("recorder", &self.recorder),
            ("events", &self.events),
            ("tail", &self.tail),
        ];
        pools.map(|(pool, connections)| {
            let status = connections.status();
            PoolUsage {
                pool,
                in_use: status.size.saturating_sub(status.available),
                idle: status.available,
                most: status.max_size,
                waiting: status.waiting,
            }
        })
    }
}
