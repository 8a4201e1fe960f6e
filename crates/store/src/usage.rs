//! The usage of each pool.

use super::pool::Store;

/// The current connections of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    pub pool: &'static str,
    /// The connections that are handed out.
    pub in_use: usize,
    /// The connections that are open and not handed out.
    pub idle: usize,
    pub most: usize,
    /// The number of tasks that wait for a connection.
    pub waiting: usize,
}

impl Store {
    /// Returns the usage of every pool, from memory.
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
