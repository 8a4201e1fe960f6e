//! The addresses to which a credential may be sent.

use reqwest::Url;

/// Whether the URL is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Parses the URL of a service. A token must not be sent over a network unencrypted.
///
/// # Errors
/// The reason the URL can't be used.
pub fn address(text: &str) -> Result<Url, String> {
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
