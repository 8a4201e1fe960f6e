//! The headers that an endpoint adds to its deliveries.

use http::{HeaderName, HeaderValue};

pub const MOST_HEADERS: usize = 10;
/// The maximum size of all names and values together, in bytes.
pub const LONGEST_HEADERS: usize = 4096;

/// Refused headers: headers of the connection, of the request itself and of proxies (RFC 9110,
/// 7.6.1), and headers that make receivers treat a request as a different request.
const REFUSED: [&str; 23] = [
    "accept-encoding",
    "connection",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "max-forwards",
    "proxy",
    "range",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "x-original-method",
];
/// Headers that only the service or a proxy may set.
///
/// The service's headers describe the body, its signatures and the delivery.
const REFUSED_PREFIXES: [&str; 8] =
    ["content-", "if-", "x-http-method", "x-envoy-", "proxy-", "signature", "webhook-", "svc-"];
/// Suffixes of headers that pass the client's address or the original host to receivers behind a
/// proxy: `true-client-ip`, `x-azure-clientip`, `x-remote-addr`, `x-original-host`.
const REFUSED_SUFFIXES: [&str; 7] =
    ["-ip", "-ipv6", "clientip", "socketip", "-addr", "-host", "-host-override"];

/// The reason for refusing headers. The message is shown after the name of the field or the header,
/// and never contains a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("has {0} members; 10 at most")]
    TooMany(usize),
    #[error("has {0} bytes of names and values; 4096 at most")]
    TooLong(usize),
    #[error("is not a header name: letters, digits and hyphens")]
    Name(String),
    #[error("is set by the service or by the connection; leave it out")]
    Refused(String),
    #[error("comes twice; upper and lower case are the same")]
    Twice(String),
    #[error("must have a value of visible ASCII that is not empty, with spaces only inside")]
    Value(String),
}

/// Checks the headers and returns them in the order given, with names in lower case.
pub fn check_headers<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<(HeaderName, HeaderValue)>, HeaderError> {
    let headers: Vec<_> = headers.into_iter().collect();
    if headers.len() > MOST_HEADERS {
        return Err(HeaderError::TooMany(headers.len()));
    }
    let bytes = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > LONGEST_HEADERS {
        return Err(HeaderError::TooLong(bytes));
    }
    let mut checked: Vec<(HeaderName, HeaderValue)> = Vec::new();
    for (given, value) in headers {
        let name = HeaderName::from_bytes(given.as_bytes())
            .map_err(|_| HeaderError::Name(given.escape_default().to_string()))?;
        let lower = name.as_str();
        // Some receivers treat `_` as `-`.
        if !lower.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(HeaderError::Name(lower.to_owned()));
        }
        let starts = |prefix: &&str| lower.starts_with(*prefix);
        let ends = |suffix: &&str| lower.ends_with(*suffix);
        if REFUSED.contains(&lower)
            || lower.contains("forwarded")
            || REFUSED_PREFIXES.iter().any(starts)
            || REFUSED_SUFFIXES.iter().any(ends)
        {
            return Err(HeaderError::Refused(lower.to_owned()));
        }
        if checked.iter().any(|(other, _)| *other == name) {
            return Err(HeaderError::Twice(lower.to_owned()));
        }
        let value = header_value(value).ok_or_else(|| HeaderError::Value(lower.to_owned()))?;
        checked.push((name, value));
    }
    Ok(checked)
}

/// Parses a field value of RFC 9110, 5.5, without its obsolete forms. The value is marked as
/// sensitive to keep it out of logs.
fn header_value(text: &str) -> Option<HeaderValue> {
    let visible = |byte: u8| byte.is_ascii_graphic();
    let inside = |byte: u8| visible(byte) || byte == b' ' || byte == b'\t';
    let bytes = text.as_bytes();
    let ends = visible(*bytes.first()?) && visible(*bytes.last()?);
    if !ends || !bytes.iter().all(|byte| inside(*byte)) {
        return None;
    }
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
