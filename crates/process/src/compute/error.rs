//! The reason for a missing result.

/// The reason for a missing result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0} requests of this kind of this tenant are waiting, the most that may wait")]
    TenantFull(usize),
    #[error("too many requests of this kind are waiting")]
    Full,
    #[error("the computation takes too long for one response; request less at a time")]
    TooLong,
    #[error("the work failed")]
    Failed,
}
