//! How values are shown to people.

mod moment;
mod request;

pub(crate) use authority_presentation::{Amount, Sums};
pub(crate) use moment::Moment;
pub(crate) use request::{Argument, arguments};

/// The last part of an id, by which people know it: `invoice-bot` of `svc:agent:acme:invoice-bot`.
pub(crate) fn short(id: &str) -> &str {
    id.rsplit(':').next().unwrap_or(id)
}

/// A count and its noun.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
