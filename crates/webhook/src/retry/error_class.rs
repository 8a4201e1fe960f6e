//! Why an attempt failed, as endpoints' managers see it.

use std::fmt;

/// Its `Display` says what happened, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The name does not resolve, or to an address that is refused. Nobody learns which, nor how long it
    /// took: that would map networks.
    Address,
    /// No connection.
    Connect,
    /// The certificate is not valid for the name, or TLS is too old.
    Tls,
    Timeout,
    /// An answer that is not 2xx, or none that is HTTP.
    Http,
}

impl ErrorClass {
    const ALL: [Self; 5] = [Self::Address, Self::Connect, Self::Tls, Self::Timeout, Self::Http];

    /// As in the member `error_class`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Http => "http",
        }
    }

    /// The class with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }
}

/// What happened if there was no answer with a status.
impl fmt::Display for ErrorClass {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Address => "the name does not resolve, or to an address that is refused",
            Self::Connect => "no connection: nothing listens there, or the host cannot be reached",
            Self::Tls => "TLS failed: the certificate is not valid for the name, or TLS is too old",
            Self::Timeout => "no answer in time",
            Self::Http => "the connection ended without an answer, or the answer was not HTTP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_found_by_its_name_and_says_what_happened() {
        for class in ErrorClass::ALL {
            assert_eq!(ErrorClass::named(class.as_str()), Some(class));
            assert!(class.to_string().len() > class.as_str().len(), "{class}");
        }
        assert_eq!(ErrorClass::named("Http"), None);
    }
}
