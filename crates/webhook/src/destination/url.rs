//! The URL of an endpoint.

use std::{fmt, net::IpAddr};

use url::{Host, Url};

use super::address_rules::{AddressRules, Refused};

/// The maximum length of a URL in bytes, both as a client writes it and in normal form.
pub const LONGEST_URL: usize = 2048;

/// Ports that are permitted without configuration.
const PORTS: [u16; 2] = [443, 8443];

/// The URLs that an installation permits in addition to https on ports 443 and 8443.
#[derive(Clone, Debug, Default)]
pub struct UrlRules {
    /// Further ports.
    pub ports: Vec<u16>,
    /// Also permits http, and any port of a loopback host.
    pub development: bool,
    /// Checks hosts that are addresses; names are checked when they are resolved.
    pub addresses: AddressRules,
}

/// The reason for refusing a URL. The message is shown after the name of the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("is longer than 2048 bytes")]
    Long,
    #[error("must be an absolute URL such as https://example.com/hooks")]
    Unreadable,
    #[error("must begin with https://")]
    Scheme,
    #[error("must hold no space, control character or backslash; percent-encode them")]
    Character,
    #[error("must hold no user name or password; send credentials in headers")]
    UserInfo,
    #[error("must have no fragment: it is never sent")]
    Fragment,
    #[error("has port {port}; allowed are {allowed}")]
    Port { port: u16, allowed: String },
    #[error("has a host that is not public")]
    Host,
}

/// A permitted URL of an endpoint, in the normal form of the WHATWG URL standard.
///
/// The normal form is shown, signed and called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl(Url);

impl EndpointUrl {
    /// Parses and checks a URL without resolving its host.
    pub fn parse(text: &str, rules: &UrlRules) -> Result<Self, UrlError> {
        if text.len() > LONGEST_URL {
            return Err(UrlError::Long);
        }
        // The parser would strip white space and control characters, and treat a backslash as a
        // slash.
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(UrlError::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Unreadable)?;
        match scheme.to_ascii_lowercase().as_str() {
            "https" => {}
            "http" if rules.development => {}
            _ => return Err(UrlError::Scheme),
        }
        // The parser drops an empty user name and extra slashes before the host.
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(UrlError::Unreadable);
        }
        if authority.contains('@') {
            return Err(UrlError::UserInfo);
        }
        let url = Url::parse(text).map_err(|_| UrlError::Unreadable)?;
        if url.fragment().is_some() {
            return Err(UrlError::Fragment);
        }
        if url.as_str().len() > LONGEST_URL {
            return Err(UrlError::Long);
        }
        let local = check_host(&url, rules)?;
        check_port(&url, rules, local)?;
        Ok(Self(url))
    }

    /// Parses the URL of a stored endpoint, which was checked when it was written.
    pub fn of_record(text: &str) -> Option<Self> {
        Url::parse(text).ok().filter(Url::has_host).map(Self)
    }

    /// The normal form.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host as used in TLS and `Host`: a name in lower case, in Punycode where it is not ASCII,
    /// or an address, in brackets for IPv6.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// Whether the connection is encrypted; always true outside development.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The host if it is an address. It needs no resolution but is still checked.
    pub fn address(&self) -> Option<IpAddr> {
        match self.0.host()? {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }

    /// Scheme, host and port (RFC 6454, 6.2).
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Whether both URLs have the same scheme, host and port. An endpoint's URL can only change
    /// within its origin. Secrets and headers therefore never reach another host.
    pub fn has_origin_of(&self, other: &Self) -> bool {
        self.0.origin() == other.0.origin()
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

/// Checks the host and returns whether it is the machine itself.
fn check_host(url: &Url, rules: &UrlRules) -> Result<bool, UrlError> {
    let address: IpAddr = match url.host().ok_or(UrlError::Unreadable)? {
        Host::Ipv4(address) => address.into(),
        Host::Ipv6(address) => address.into(),
        Host::Domain(name) => return check_name(name, rules),
    };
    match rules.addresses.check(address) {
        Ok(()) => Ok(address.is_loopback()),
        Err(Refused::Unresolved | Refused::Address { .. }) => Err(UrlError::Host),
    }
}

fn check_name(name: &str, rules: &UrlRules) -> Result<bool, UrlError> {
    let local = name == "localhost" || name.ends_with(".localhost");
    // A trailing dot is another spelling of the same host, but certificates have only one spelling.
    if name.ends_with('.') || (local && !rules.development) {
        return Err(UrlError::Host);
    }
    Ok(local)
}

fn check_port(url: &Url, rules: &UrlRules, local: bool) -> Result<(), UrlError> {
    let port = url.port_or_known_default().ok_or(UrlError::Unreadable)?;
    let plain = url.scheme() == "http" && port == 80;
    let any = rules.development && (local || plain);
    if port != 0 && (any || PORTS.contains(&port) || rules.ports.contains(&port)) {
        return Ok(());
    }
    let all = PORTS.iter().chain(&rules.ports).map(u16::to_string).collect::<Vec<_>>();
    Err(UrlError::Port { port, allowed: all.join(", ") })
}
