//! The permitted destinations of deliveries.
//!
//! [`EndpointUrl`] is checked when an endpoint is created, without resolving its name. The name may
//! resolve to any address later. [`AddressRules::vet`] therefore checks the resolved addresses
//! before each attempt, and the attempt connects to a checked address. [`check_headers`] prevents
//! an endpoint's own headers from changing the meaning of the request.

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
