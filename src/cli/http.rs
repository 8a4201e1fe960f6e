//! HTTP helpers of commands: the addresses to which a secret may be sent, and short error texts.

use reqwest::Url;

use super::text::plain;

/// Returns the innermost cause of an error, without the address. The outer errors only report that
/// an error occurred.
pub(in crate::cli) fn deepest(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    plain(&cause.to_string())
}

/// Whether the URL is on this machine.
pub(in crate::cli) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Parses `--url`. A token must not be sent over a network unencrypted.
pub(in crate::cli) fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let safe = url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url);
    if !safe {
        return Err("a token goes over https only, or http on this machine".to_owned());
    }
    let bare = url.username().is_empty() && url.password().is_none();
    if !bare || url.query().is_some() || url.fragment().is_some() {
        return Err("only scheme, host, port and path".to_owned());
    }
    Ok(url)
}

/// Parses `--jwks`. Unencrypted addresses are refused: anyone who can change the keys in transit
/// could sign deliveries and evidence.
pub(in crate::cli) fn keys_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let safe = url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url);
    if safe {
        Ok(url)
    } else {
        Err("keys come over https only, or http on this machine".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_https_or_to_this_machine() {
        for good in [
            "https://a.example",
            "https://a.example/under/",
            "http://127.0.0.1:8080",
            "http://[::1]:1",
            "http://localhost",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "http://a.example",
            "ftp://a.example",
            "a.example:80",
            "https://u:p@a.example",
            "https://a.example?x=1",
            "http://127.0.0.1.example",
            "",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
