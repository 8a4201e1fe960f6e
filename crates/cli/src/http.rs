//! HTTP of commands: the addresses from which keys come, and short error texts.

use authority_client::is_loopback;
use reqwest::Url;

use crate::text::plain;

/// Returns the innermost cause of an error, without the address.
pub(crate) fn deepest(error: reqwest::Error) -> String {
    plain(&authority_client::deepest(error))
}

/// Returns the remedy if no trusted authority issued the certificate of the other side.
pub(crate) fn authority_remedy(cause: &str) -> Option<&'static str> {
    cause.contains("UnknownIssuer").then_some(
        "if a private authority issued this certificate, set SSL_CERT_FILE to the authority's PEM \
         file",
    )
}

/// Parses `--jwks`. Unencrypted addresses are refused: anyone who can change the keys in transit
/// could sign deliveries and evidence.
pub fn keys_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let safe = url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url);
    if safe {
        Ok(url)
    } else {
        Err("keys come over https only, or http on this machine".to_owned())
    }
}
