//! The reason for a failed attempt, as shown to the managers of endpoints.

use std::fmt;

/// The class of a failed attempt. Its `Display` describes the failure for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The name does not resolve, or it resolves to a refused address. Neither the cause nor the
    /// time taken is reported: both would help to map internal networks.
    Address,
    /// The connection failed.
    Connect,
    /// The certificate is no longer valid.
    TlsExpired,
    /// The certificate is not valid yet.
    TlsNotYetValid,
    /// The certificate is for another name.
    TlsName,
    /// The certificate leads to no trusted authority.
    TlsAuthority,
    /// The receiver has neither TLS 1.2 nor TLS 1.3.
    TlsVersion,
    /// The receiver does not offer HTTP/1.1 over TLS, or its answer is not TLS.
    TlsProtocol,
    /// The receiver requires a client certificate.
    TlsClientCertificate,
    /// Another failure of TLS.
    Tls,
    Timeout,
    /// A response with a status other than 2xx, or a response that is not HTTP.
    Http,
}

impl ErrorClass {
    const ALL: [Self; 12] = [
        Self::Address,
        Self::Connect,
        Self::TlsExpired,
        Self::TlsNotYetValid,
        Self::TlsName,
        Self::TlsAuthority,
        Self::TlsVersion,
        Self::TlsProtocol,
        Self::TlsClientCertificate,
        Self::Tls,
        Self::Timeout,
        Self::Http,
    ];

    /// The value of the `error_class` field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Connect => "connect",
            Self::TlsExpired => "tls_expired",
            Self::TlsNotYetValid => "tls_not_yet_valid",
            Self::TlsName => "tls_name",
            Self::TlsAuthority => "tls_authority",
            Self::TlsVersion => "tls_version",
            Self::TlsProtocol => "tls_protocol",
            Self::TlsClientCertificate => "tls_client_certificate",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Http => "http",
        }
    }

    /// The class with this value.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }
}

/// Describes an attempt that got no response with a status.
impl fmt::Display for ErrorClass {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Address => "the name does not resolve, or it resolves to a refused address",
            Self::Connect => "no connection: nothing listens there, or the host cannot be reached",
            Self::TlsExpired => "the certificate has expired",
            Self::TlsNotYetValid => "the certificate is not valid yet",
            Self::TlsName => "the certificate is for another name",
            Self::TlsAuthority => "the certificate was not issued by a trusted authority",
            Self::TlsVersion => "the receiver supports neither TLS 1.2 nor TLS 1.3",
            Self::TlsProtocol => "the receiver does not offer HTTP/1.1 over TLS at this port",
            Self::TlsClientCertificate => {
                "the receiver requires a client certificate, which deliveries do not have"
            }
            Self::Tls => "the TLS handshake failed",
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
