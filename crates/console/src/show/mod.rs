//! How values are shown to people.

mod amount;
mod headline;
mod moment;
mod request;
mod tell;

pub(crate) use amount::{Amount, Sums};
pub(crate) use headline::{Headline, headline};
pub(crate) use moment::Moment;
pub(crate) use request::{Argument, arguments};
pub(crate) use tell::{Said, Tell};

/// The last part of an id, by which people know it: `invoice-bot` of `svc:agent:acme:invoice-bot`.
pub(crate) fn short(id: &str) -> &str {
    id.rsplit(':').next().unwrap_or(id)
}

/// A count and its noun.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
