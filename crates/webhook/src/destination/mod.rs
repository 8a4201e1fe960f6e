//! Where a delivery may go.
//!
//! [`EndpointUrl`] is checked when an endpoint is created, without looking its name up. The name can point
//! anywhere later, so [`AddressRules::vet`] judges what it resolves to before each attempt, and the attempt
//! connects to an address that was vetted. [`check_headers`] keeps an endpoint's own headers from changing
//! what the request means.

mod address;
mod address_rules;
mod headers;
mod url;

pub use self::url::{EndpointUrl, LONGEST_URL, UrlError, UrlRules};
pub use address::AddressKind;
pub use address_rules::{AddressRules, Refused, RuleError};
pub use headers::{HeaderError, LONGEST_HEADERS, MOST_HEADERS, check_headers};

#[cfg(test)]
mod tests;
